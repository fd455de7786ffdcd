"""AG2 1.x: a conversation that goes on in a second process, and a memory beside it.

Offline: AG2's own test model answers. With a real one, only `config=` changes.
"""

import asyncio
import os
import subprocess
import sys
import tempfile

from ag2 import Agent
from ag2.testing import TestConfig

from kronmem import AsyncClient
from kronmem.ag2 import KronmemPlugin, persisted


async def talk(message: str, answer: str) -> None:
    async with AsyncClient() as client:
        memory = KronmemPlugin("user-ada", client=client, tools=["recall"])  # the model reads, capture writes
        conversation = persisted(client.state("user-ada"), "chat")
        agent = Agent("assistant", "You plan hikes.", config=TestConfig(answer), plugins=[memory, conversation])
        reply = await agent.ask(message)
        print(f"user: {message}\nassistant: {reply.body}")
        print("events of the conversation:", len(list(await reply.history.get_events())))
        print("stored:", sorted([one.content async for one in client.memories("user-ada")]), flush=True)


DAYS = {
    "monday": ("I am allergic to peanuts. Which snacks keep?", "We agreed on dried apricots. Bread keeps as well."),
    "tuesday": ("Thanks! And what do we drink?", "Three litres of water each."),
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(talk(*DAYS[sys.argv[1]]))
    else:
        with tempfile.TemporaryDirectory() as home:  # a home of its own, so that a second run starts afresh
            for day in DAYS:
                print(f"-- {day}, a process of its own", flush=True)
                subprocess.run([sys.executable, __file__, day], check=True, env={**os.environ, "KRONMEM_HOME": home})
