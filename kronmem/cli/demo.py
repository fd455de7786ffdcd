"""`kronmem demo`: a team is told something, its process ends, another process knows it. Offline, in seconds."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, cast

import typer
from pydantic import JsonValue

from kronmem import Client, ConfigError, KronmemError, settings
from kronmem.cli import options, printing

AGENT = "kronmem-demo"
DemoAgent = Annotated[str, typer.Option("--agent", "-a", help="The demo's agent; what it remembered is cleared first.")]
SCENES = (
    ("tell", "The first process: a team of two agents is told something.\n"),
    ("ask", "\nThat process has ended. A second one, with new agents and the same memory:\n"),
)


def demo(agent: DemoAgent = AGENT, url: options.Url = None, json: options.Json = False) -> None:
    """Watch an AutoGen team remember across two processes: offline, in seconds, with a scripted model."""
    with printing.told():
        where = url or f"sqlite:///{settings.default_file()}"
        with Client(where, outbox=False) as client:
            client.clear(agent)
        missing = ""
        for scene, title in SCENES:
            if not json:
                printing.line(title)
            for who, what, words in _played(scene, where, agent):
                missing = words if what == "missing" else missing
                _tell(scene, who, what, words, json)
        if not json:
            _next(where, agent, missing)


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
    path = settings.resolve(url, None).path
    where = path or printing.shown(url)
    printing.line(f"\nThe memories are in {where}; the model was a script, nothing left this machine. Next:\n")
    there = "" if _is_default(url) else f" --url {shlex.quote(printing.shown(url))}"
    printing.line(f"  kronmem list --agent {agent}{there}")
    printing.line(f'  kronmem recall "when does the beta ship?" --agent {agent}{there}')
    printing.line(f"  kronmem serve{there if path else ''}    # then open http://127.0.0.1:7070/ to look at them")
    if missing:
        printing.note(f"\nWithout AutoGen the demo used the plain tools: {missing}")


def _is_default(url: str) -> bool:
    try:
        return settings.resolve(None, None).path == settings.resolve(url, None).path
    except ConfigError:
        return False
