"""Real agents of AutoGen, ready for a chat with the scripted model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from autogen import ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent

from kronmem.autogen import Resumed
from tests.services.openai import OpenAIServer


def ends(message: dict[str, Any]) -> bool:
    return "TERMINATE" in str(message.get("content"))


def assistant(server: OpenAIServer, name: str = "assistant", **options: Any) -> ConversableAgent:
    options = {"system_message": f"You are {name}.", "llm_config": server.llm_config(), **options}
    return ConversableAgent(name, human_input_mode="NEVER", is_termination_msg=ends, **options)


def user(name: str = "user", **options: Any) -> UserProxyAgent:
    options = {"code_execution_config": False, "llm_config": False, "is_termination_msg": ends, **options}
    return UserProxyAgent(name, human_input_mode="NEVER", **options)


def manager(server: OpenAIServer, agents: list[Any], method: str = "round_robin", **options: Any) -> GroupChatManager:
    options = {"max_round": 8, **options}
    group = GroupChat(agents=agents, messages=[], speaker_selection_method=method, **options)
    return GroupChatManager(group, llm_config=server.llm_config(), is_termination_msg=ends, silent=True)


def put_back(where: AbstractContextManager[Resumed]) -> Resumed:
    """A saved chat, put back into its agents and left as it is."""
    with where as resumed:
        return resumed


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message.get("content")) for message in messages]


def tool_results(request: dict[str, Any]) -> list[str]:
    """What the tools have answered so far in this prompt."""
    return contents([message for message in request["messages"] if message["role"] == "tool"])


def tool_names(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", [])]


def selects(request: dict[str, Any]) -> bool:
    """Tell whether the manager asks who speaks next."""
    return "select the next role" in " ".join(contents(request["messages"])).lower()


def well_formed(prompt: list[dict[str, Any]]) -> bool:
    """OpenAI's rule: every result right after the call that asked for it, and no call without its results."""
    waiting: list[str] = []
    for message in prompt:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        waiting += [one["id"] for one in message.get("tool_calls") or []]
    return not waiting
