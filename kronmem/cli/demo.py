"""`kronmem demo`: a team learns two facts, its process ends, another process knows them. Offline, in seconds.

Each process plays one scene and prints its events as JSON Lines: `python -m kronmem.cli.demo tell|ask URL AGENT`.
"""

from __future__ import annotations

import json as jsonlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from kronmem import AgentMemory, Client, ConfigError, KronmemError, NotFoundError, memory_tools, settings
from kronmem.cli import connection, printing

if TYPE_CHECKING:
    from autogen import ModelClient

    from kronmem.autogen.classic import Agent, ConversableAgent, GroupChat

WROTE = "kronmem-demo"
"""The key of the agent's state under which the demo notes the ids of its own memories, to remove only those."""
TITLES = {
    "tell": "The first process: a team of two agents is told something.\n",
    "ask": "\nThat process has ended. A second one, with new agents and the same memory:\n",
}


def run(agent: str, url: str | None, json: bool) -> None:
    """Play both scenes, each in a process of its own."""
    with connection.reported():
        where = url or f"sqlite:///{settings.default_file()}"
        missing = ""
        with Client(where, outbox=False, api_key=connection.key_for(where)) as client:
            there = _begin(client.agent(agent))
            for scene, title in TITLES.items():
                if not json:
                    printing.line(title)
                for who, what, words in _played(scene, where, agent):
                    missing = words if what == "missing" else missing
                    _tell(scene, who, what, words, json)
                _note(client.agent(agent), there)
        if not json:
            _next(url, where, agent, missing)


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
    texts = {part.arguments.get("content") for part in TELLING}
    new: list[JsonValue] = [one.id for one in memory.memories() if one.id not in there and one.content in texts]
    with suppress(ConfigError):
        memory.state().set(WROTE, new)


def _played(scene: str, url: str, agent: str) -> Iterator[tuple[str, str, str]]:
    command = [sys.executable, "-m", "kronmem.cli.demo", scene, url, agent]
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


def _next(url: str | None, where: str, agent: str, missing: str) -> None:
    path = settings.resolve(where, connection.key_for(where)).path
    place = path or printing.shown(where)
    printing.line(f"\nThe memories are in {place}; the model was a script, nothing left this machine. Next:\n")
    there = f" --url {shlex.quote(printing.shown(url))}" if url else ""
    command, whose = _as_typed(), f"--agent {shlex.quote(agent)}"
    printing.line(f"  {command} list {whose}{there}")
    printing.line(f'  {command} recall "when does the beta ship?" {whose}{there}')
    if path:
        printing.line(f"  {command} serve{there}    # then open http://127.0.0.1:7070/ to look at them")
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


# ── the script: a model that knows nothing and repeats its tools' answers ────────────────────────────────────────

USER = "ada"
PLANNER, ENGINEER = "planner", "engineer"
TOLD = "We ship the beta on Friday. And I prefer short answers."
ASKED = "When do we ship the beta? And how do I like my answers?"
UNKNOWN = "I do not know."

Message = Mapping[str, object]


@dataclass(frozen=True)
class Part:
    """The turn of one agent: ask for a tool, then say something about the answer."""

    agent: str
    tool: str
    arguments: Mapping[str, str]
    says: str


TELLING = (
    Part(
        PLANNER,
        "remember",
        {"content": "The beta ships on Friday", "memory_type": "decision"},
        "Noted: the beta ships on Friday.",
    ),
    Part(
        ENGINEER,
        "remember",
        {"content": "Ada prefers short answers", "memory_type": "preference"},
        "Short answers from now on.",
    ),
)
# Each asks for what the other one stored.
ASKING = (
    Part(
        PLANNER,
        "recall",
        {"query": "how does Ada like her answers?"},
        "Nobody told me, but the team remembers: {}.",
    ),
    Part(ENGINEER, "recall", {"query": "when does the beta ship?"}, "Nor me, but it is known: {}."),
)
SCENES = {"tell": (TOLD, TELLING), "ask": (ASKED, ASKING)}


def called(tool: str, arguments: Mapping[str, str]) -> str:
    """A call of a tool as a reader understands it."""
    return f"{tool}({', '.join(jsonlib.dumps(value, ensure_ascii=False) for value in arguments.values())})"


def spoken(part: Part, answer: str) -> str:
    """An agent's words about a tool's answer; of one without a memory in it, nothing."""
    if part.tool == "remember":
        return part.says if answer.startswith(("Stored", "Already")) else UNKNOWN
    return part.says.format(found(answer)) if found(answer) else UNKNOWN


def found(answer: str) -> str:
    """The first note in recall's answer, without its label."""
    first = re.search(r"^1\. \[[^\]]*\] (.*)$", answer, re.M)
    return first[1] if first else ""


def shown(answer: str) -> str:
    """A tool's answer as the demo shows it: without ids, which are never the same."""
    text = re.sub(r" ?\(id [^)]*\)|, similarity [\d.]+, id [0-9a-f-]+", "", answer)
    return text.split("\n", 1)[-1] if text.startswith("Notes from") else text


# ── one process: a real AutoGen team on one memory, or plain tools where AutoGen is missing ──────────────────────

Event = tuple[str, str, str]
"""Who, whether it says something, calls a tool or is a tool's answer, and the words."""


def play(scene: str, url: str, agent: str) -> Iterator[Event]:
    """Play one scene and print its events."""
    opening, parts = SCENES[scene]
    with Client(url, outbox=False, api_key=connection.key_for(url)) as client:
        try:
            import_module("kronmem.autogen")  # is it there, and does it work?
        except ImportError as error:
            yield "kronmem", "missing", str(error)
            yield from _alone(client.agent(agent), opening, parts)
        else:
            yield from _team(client.agent(agent), opening, parts)


def _alone(memory: AgentMemory, opening: str, parts: Sequence[Part]) -> Iterator[Event]:
    """The same without AutoGen: the tools are plain functions."""
    tools = memory_tools(memory).function_map()
    yield USER, "says", opening
    for part in parts:
        answer = tools[part.tool](**part.arguments)
        yield part.agent, "calls", called(part.tool, part.arguments)
        yield "memory", "answers", shown(answer)
        yield part.agent, "says", spoken(part, answer)


def _team(memory: AgentMemory, opening: str, parts: Sequence[Part]) -> Iterator[Event]:
    from kronmem.autogen import register_team_memory
    from kronmem.autogen.classic import ConversableAgent, GroupChat, GroupChatManager

    user = ConversableAgent(USER, llm_config=False, human_input_mode="NEVER")
    planner, engineer = (_agent(ConversableAgent, name) for name in (PLANNER, ENGINEER))
    turns = {user: planner, planner: engineer}

    def next_speaker(last: Agent, chat: GroupChat) -> Agent | None:
        message = chat.messages[-1]
        if message.get("tool_calls"):
            return user
        if message.get("role") == "tool":
            return chat.agent_by_name(str(chat.messages[-2]["name"]))
        return turns.get(cast("ConversableAgent", last))

    group = GroupChat([user, planner, engineer], messages=[], max_round=12, speaker_selection_method=next_speaker)
    register_team_memory(memory, group, executor=user)
    for agent in (planner, engineer):
        # After the tools: registering one makes a new client. AutoGen's annotation wants an instance, its code a class.
        agent.register_model_client(cast("ModelClient", Scripted), parts=parts)
    manager = GroupChatManager(group, llm_config=False, human_input_mode="NEVER")
    user.initiate_chat(manager, message=opening, silent=True)
    yield from _events(cast("list[Message]", manager.groupchat.messages))


def _agent(kind: type[ConversableAgent], name: str) -> ConversableAgent:
    entry = {"model": name, "model_client_cls": Scripted.__name__}
    return kind(name, llm_config={"config_list": [entry], "cache_seed": None}, human_input_mode="NEVER")


class Scripted:
    """A model in AutoGen's own interface for models: no network, no key, always the same words."""

    def __init__(self, config: dict[str, str], parts: Sequence[Part]) -> None:
        self._part = next(part for part in parts if part.agent == config["model"])

    def create(self, params: dict[str, object]) -> SimpleNamespace:
        """Answer one request."""
        last = cast("list[Message]", params["messages"])[-1]
        if last.get("role") == "tool":
            message = _Said(spoken(self._part, str(last.get("content", ""))))
        else:
            message = _Said(None, [_call(self._part)])
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], model="scripted", cost=0)

    def message_retrieval(self, response: SimpleNamespace) -> list[object]:
        """The messages of an answer: text, or an object that asks for tools."""
        return [choice.message if choice.message.tool_calls else choice.message.content for choice in response.choices]

    def cost(self, response: SimpleNamespace) -> float:
        """Nothing."""
        return 0

    @staticmethod
    def get_usage(response: SimpleNamespace) -> dict[str, object]:
        """Nothing, in AutoGen's words."""
        return {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0, "model": "scripted"}


@dataclass(frozen=True)
class _Said:
    """A message as AutoGen takes it from a model."""

    content: str | None
    tool_calls: list[dict[str, object]] | None = None
    function_call: None = None

    def model_dump(self) -> dict[str, object]:
        """As a dictionary."""
        return {"role": "assistant", **asdict(self)}


def _call(part: Part) -> dict[str, object]:
    function = {"name": part.tool, "arguments": jsonlib.dumps(dict(part.arguments))}
    return {"id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}


def _events(messages: Sequence[Message]) -> Iterator[Event]:
    for message in messages:
        if message.get("role") == "tool":
            yield "memory", "answers", shown(str(message["content"]))
        elif calls := cast("list[dict[str, dict[str, str]]]", message.get("tool_calls") or []):
            for call in calls:
                function = call["function"]
                words = called(function["name"], jsonlib.loads(function["arguments"]))
                yield str(message["name"]), "calls", words
        else:
            yield str(message["name"]), "says", str(message["content"])


def main() -> None:
    """Play one scene for the process that started this one."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # AutoGen prints and logs there, and ours is read by a program
        for event in play(*sys.argv[1:4]):
            out.write(jsonlib.dumps(event) + "\n")


if __name__ == "__main__":
    main()
