"""State beside memories: exact values of an agent without a framework, where a second process goes on.

Memories are texts, found by meaning; a state holds JSON under keys: a plan, a counter, how far a job has come.
"""

import os
import subprocess
import sys
import tempfile

from kronmem import Client

STEPS = ["collect the numbers", "draft the report", "send the report"]


class Clerk:
    """Works through its steps, each of them once, in any number of processes."""

    def __init__(self, client: Client, name: str) -> None:
        self.memory, self.state, self.name = client.agent("clerks"), client.state("clerks"), name

    def work(self, most: int) -> None:
        self.state.update("shifts", lambda count: count + 1, 0)  # in one step: no other clerk is counted out
        for step in STEPS[self.state.get("done", 0) :][:most]:
            print(f"{self.name}: {step}")
            self.memory.remember(f"{self.name} did this: {step}", "episodic")
            self.state.update("done", lambda count: count + 1, 0)

    def report(self) -> None:
        found = {key: self.state.get(key) for key in self.state.keys()}  # noqa: SIM118 -- a method, not a dict's
        print(f"{self.name} reads: {found}")
        print(f"{self.name} recalls: {self.memory.recall('Who did draft the report?')[0].content}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Client() as client:
            clerk = Clerk(client, sys.argv[1])
            clerk.work(most=2)
            clerk.report()
    else:
        with tempfile.TemporaryDirectory() as home:  # a home of its own, so that a second run starts afresh
            for name in ("Ann", "Ben"):
                print(f"-- {name}, a process of its own", flush=True)
                subprocess.run([sys.executable, __file__, name], check=True, env={**os.environ, "KRONMEM_HOME": home})
