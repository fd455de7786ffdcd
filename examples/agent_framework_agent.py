"""Microsoft Agent Framework: a session that goes on in a second process, and a memory beside all sessions.

Offline: the model is scripted. With a real one, only `client=` changes.
"""

import asyncio
import os
import subprocess
import sys
import tempfile

from agent_framework import Agent
from scripted_client import ScriptedClient

from kronmem import AsyncClient
from kronmem.agent_framework import KronmemContextProvider, KronmemHistoryProvider


async def talk(session_id: str, message: str) -> None:
    async with AsyncClient() as client:
        history = KronmemHistoryProvider("user-ada", client=client)  # the words of each session
        memory = KronmemContextProvider("user-ada", client=client)  # what is worth knowing in all of them
        agent = Agent(client=ScriptedClient(), name="assistant", context_providers=[history, memory])
        answer = await agent.run(message, session=agent.create_session(session_id=session_id))
        kept = await history.get_messages(session_id)
    print(f"user: {message}\nassistant: {answer.text}")
    print(f"in the session: {len(kept)} messages, {sum('<memory' in one.text for one in kept)} with notes", flush=True)


DAYS = {
    "monday": [("planning", "I am allergic to peanuts."), ("planning", "Which snacks keep for three days?")],
    "tuesday": [("planning", "How many did we want?"), ("shopping", "Are peanuts fine for Ada?")],
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        for session_id, message in DAYS[sys.argv[1]]:
            asyncio.run(talk(session_id, message))
    else:
        with tempfile.TemporaryDirectory() as home:  # a home of its own, so that a second run starts afresh
            for day in DAYS:
                print(f"-- {day}, a process of its own", flush=True)
                subprocess.run([sys.executable, __file__, day], check=True, env={**os.environ, "KRONMEM_HOME": home})
