"""A team that is killed half-way and goes on: SIGKILL, a new process, and nothing finished is done twice."""

import asyncio
import os
import subprocess
import sys
import tempfile
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import CreateResult
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory, persisted

STEPS = ["Collect the numbers", "Draft the report", "Send the report"]


class Model(ReplayChatCompletionClient):  # the first process never gets an answer to its second question
    async def create(self, messages: Any, **options: Any) -> CreateResult:
        answers = [one.content for one in messages if one.source == "clerk"]
        task = [one.content for one in messages if one.source == "user"][-1]
        print(f"  the model sees {len(answers)} answer(s) of its own, the task is: {task}", flush=True)
        if os.environ["PROCESS"] == "1" and len(answers) == 1:
            print("stuck", flush=True)
            await asyncio.Event().wait()
        return await super().create(messages, **options)


async def work() -> None:
    async with AsyncClient() as client:
        state = client.state("report-team")
        model = Model([f"Done: {step}." for step in STEPS])
        agent = AssistantAgent("clerk", model, memory=[KronMemory("report-team", client=client)], system_message=None)
        team = RoundRobinGroupChat([agent], max_turns=1)
        for step in STEPS:
            if await state.get(step) != "finished":
                async with persisted(state, "team", team):
                    await team.run(task=step)
                await state.set(step, "finished")
                print(f"finished: {step}", flush=True)


def start(number: int, home: str) -> None:
    print(f"-- process {number}", flush=True)
    settings = {**os.environ, "KRONMEM_HOME": home, "PROCESS": str(number)}
    command = [sys.executable, __file__, "work"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as worker:
        for line in worker.stdout or ():
            print("-- killed half-way\n" if line == "stuck\n" else line, end="")
            if line == "stuck\n":
                worker.kill()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work())
    else:
        with tempfile.TemporaryDirectory() as home:
            start(1, home)
            start(2, home)
