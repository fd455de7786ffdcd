"""One process of the demo: a real AutoGen team on one memory, or plain tools where AutoGen is missing.

Prints each event as JSON Lines: `python -m kronmem.cli.demo_team tell|ask URL AGENT`.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from kronmem import AgentMemory, Client, memory_tools
from kronmem.cli.api_keys import key_for
from kronmem.cli.demo_script import ENGINEER, PLANNER, SCENES, USER, Message, Part, Wish, reply, shown, spoken

if TYPE_CHECKING:
    from autogen import ModelClient

    from kronmem.autogen.classic import Agent, ConversableAgent, GroupChat

Event = tuple[str, str, str]
"""Who, whether it says something, calls a tool or is a tool's answer, and the words."""


def play(scene: str, url: str, agent: str) -> Iterator[Event]:
    """Play one scene and print its events."""
    opening, parts = SCENES[scene]
    with Client(url, outbox=False, api_key=key_for(url)) as client:
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
        answer = tools[part.wish.tool](**part.wish.arguments)
        yield part.agent, "calls", part.wish.words()
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
        said = reply(self._part, cast("list[Message]", params["messages"]))
        message = _Said(None, [_call(said)]) if isinstance(said, Wish) else _Said(said)
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


def _call(wish: Wish) -> dict[str, object]:
    function = {"name": wish.tool, "arguments": json.dumps(dict(wish.arguments))}
    return {"id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}


def _events(messages: Sequence[Message]) -> Iterator[Event]:
    for message in messages:
        if message.get("role") == "tool":
            yield "memory", "answers", shown(str(message["content"]))
        elif calls := cast("list[dict[str, dict[str, str]]]", message.get("tool_calls") or []):
            for call in calls:
                function = call["function"]
                yield str(message["name"]), "calls", Wish(function["name"], json.loads(function["arguments"])).words()
        else:
            yield str(message["name"]), "says", str(message["content"])


def main() -> None:
    """Play one scene for the process that started this one."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # AutoGen prints and logs there, and ours is read by a program
        for event in play(*sys.argv[1:4]):
            out.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    main()
