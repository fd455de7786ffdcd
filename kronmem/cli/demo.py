"""`kronmem demo`: a team is told something, its process ends, another process knows it. Offline, in seconds."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, cast

import typer
from pydantic import JsonValue

from kronmem import AgentMemory, Client, ConfigError, KronmemError, NotFoundError, settings
from kronmem.cli import errors, options, printing
from kronmem.cli.api_keys import key_for
from kronmem.cli.demo_script import TELLING

AGENT = "kronmem-demo"
WROTE = "kronmem-demo"
"""The key of the agent's state under which the demo notes the ids of its own memories, to remove only those."""
DemoAgent = Annotated[
    str, typer.Option("--agent", "-a", help="The demo's agent. Memories that the demo did not write stay.")
]
SCENES = (
    ("tell", "The first process: a team of two agents is told something.\n"),
    ("ask", "\nThat process has ended. A second one, with new agents and the same memory:\n"),
)


def demo(agent: DemoAgent = AGENT, url: options.Url = None, json: options.Json = False) -> None:
    """Watch an AutoGen team remember across two processes: offline, in seconds, with a scripted model."""
    with errors.told():
        where = url or f"sqlite:///{settings.default_file()}"
        missing = ""
        with Client(where, outbox=False, api_key=key_for(where)) as client:
            there = _begin(client.agent(agent))
            for scene, title in SCENES:
                if not json:
                    printing.line(title)
                for who, what, words in _played(scene, where, agent):
                    missing = words if what == "missing" else missing
                    _tell(scene, who, what, words, json)
                _note(client.agent(agent), there)
        if not json:
            _next(where, agent, missing)


def _begin(memory: AgentMemory) -> set[str]:
    """Forget the memories of the last demo, by the ids that it noted; the ids of all others stay."""
    with suppress(ConfigError):  # a service without state: nothing was noted, nothing is removed
        wrote = memory.state().get(WROTE, [])
        for memory_id in wrote if isinstance(wrote, list) else []:
            with suppress(NotFoundError):
                memory.forget(str(memory_id))
    return {one.id for one in memory.memories()}


def _note(memory: AgentMemory, there: set[str]) -> None:
    """Note the memories that are new since the demo began and have its words."""
    texts = {part.wish.arguments.get("content") for part in TELLING}
    new: list[JsonValue] = [one.id for one in memory.memories() if one.id not in there and one.content in texts]
    with suppress(ConfigError):
        memory.state().set(WROTE, new)


def _played(scene: str, url: str, agent: str) -> Iterator[tuple[str, str, str]]:
    command = [sys.executable, "-m", "kronmem.cli.demo_team", scene, url, agent]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # AutoGen's own, about its dependencies
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        output, errors = process.communicate()
    for line in output.splitlines():
        who, what, words = cast("list[str]", jsonlib.loads(line))
        yield who, what, words
    if process.returncode:
        last = errors.strip().splitlines()[-1:] or ["no reason given"]
        raise KronmemError(f"the demo's process failed: {last[0]}")


def _tell(scene: str, who: str, what: str, words: str, json: bool) -> None:
    if json:
        event: dict[str, JsonValue] = {"process": 1 if scene == "tell" else 2, "who": who, "what": what, "words": words}
        printing.as_json(event)
    elif what == "says":
        printing.line(f"  {who:<9} {words}")
    elif what != "missing":
        arrow = "→" if what == "calls" else "←"
        printing.line(f"  {who:<9} {arrow} {words}", dim=True)


def _next(url: str, agent: str, missing: str) -> None:
    path = settings.resolve(url, key_for(url)).path
    where = path or printing.shown(url)
    printing.line(f"\nThe memories are in {where}; the model was a script, nothing left this machine. Next:\n")
    there = "" if _is_default(url) else f" --url {shlex.quote(printing.shown(url))}"
    kronmem, whose = _as_typed(), f"--agent {shlex.quote(agent)}"
    printing.line(f"  {kronmem} list {whose}{there}")
    printing.line(f'  {kronmem} recall "when does the beta ship?" {whose}{there}')
    if path:
        printing.line(f"  {kronmem} serve{there}    # then open http://127.0.0.1:7070/ to look at them")
    if missing:
        printing.note(f"\nWithout AutoGen the demo used the plain tools: {missing}")


def _as_typed() -> str:
    """The command by a name that the same shell finds: its path where it is not on PATH, as in a venv not activated."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m kronmem"
    found = shutil.which("kronmem")
    if typed.name != "kronmem" or (found and typed.exists() and Path(found).samefile(typed)):
        return "kronmem"
    return shlex.quote(sys.argv[0])


def _is_default(url: str) -> bool:
    try:
        return settings.resolve(None, None).path == settings.resolve(url, None).path
    except ConfigError:
        return False
