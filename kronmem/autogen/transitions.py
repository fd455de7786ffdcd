"""Who may speak after whom in a group chat, as far as tools depend on it."""

from __future__ import annotations

from typing import cast

from kronmem import ConfigError
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChat


def check_group(
    group: GroupChat, callers: list[ConversableAgent], executor: ConversableAgent, add: bool
) -> list[ConversableAgent]:
    """The callers with tool calls that reach the executor; `ConfigError` where the chat would end or go astray."""
    if executor not in group.agents:
        raise ConfigError(f"the executor {executor.name!r} is not in the group chat: add it to GroupChat(agents=…)")
    if not group.func_call_filter and group.speaker_selection_method == "round_robin":
        raise ConfigError("func_call_filter=False with round_robin hands tool calls to whoever is next: leave it True")
    # An executor with a model of its own calls tools only where it may speak twice in a row.
    callers = [one for one in callers if one is not executor or _may_repeat(group, one)]
    missing = _missing(group, callers, executor)
    if missing and not add:
        raise ConfigError(
            f"the group chat's speaker transitions would end it after a tool call: {', '.join(missing)} "
            "(allow these, or pass add_transitions=True)"
        )
    if missing:
        _allow(group, callers, executor)
    return callers


def _allowed(group: GroupChat) -> dict[Agent, list[Agent]]:
    # AutoGen's annotation says that the keys are names. They are agents.
    return cast("dict[Agent, list[Agent]]", group.allowed_speaker_transitions_dict)


def _may_repeat(group: GroupChat, agent: Agent) -> bool:
    return agent in _allowed(group).get(agent, ())


def _missing(group: GroupChat, callers: list[ConversableAgent], executor: ConversableAgent) -> list[str]:
    allowed = _allowed(group)
    to = [f"{one.name} → {executor.name}" for one in callers if executor not in allowed.get(one, ())]
    back = [] if allowed.get(executor) else [f"{executor.name} → anybody"]
    return to + back


def _allow(group: GroupChat, callers: list[ConversableAgent], executor: ConversableAgent) -> None:
    """Allow both ways, in the table itself: a manager runs on a copy of its group that shares nothing but this."""
    allowed = _allowed(group)
    for caller in callers:
        for first, then in ((caller, executor), (executor, caller)):
            others = allowed.setdefault(first, [])
            if then not in others:
                allowed[first] = [*others, then]
