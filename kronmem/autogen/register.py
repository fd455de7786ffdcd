"""Memory as tools: run once by each executor, offered to each caller, never one memory in the place of another."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import partial, update_wrapper
from typing import Any, TypeAlias, cast, overload
from weakref import WeakKeyDictionary

from anyio import to_thread

from kronmem import AgentMemory, AsyncAgentMemory, ConfigError, MemoryTools, memory_tools
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChat, Team, group_of, members, register_function
from kronmem.packs.toolset import TOOL_NAMES, ToolCoroutine, ToolName, check_only, tool_names

AnyMemory: TypeAlias = "AgentMemory | AsyncAgentMemory"
Only: TypeAlias = tuple[ToolName, ...]
Tools: TypeAlias = "MemoryTools[str] | MemoryTools[ToolCoroutine]"

# By tool name: the tools that each agent executes, and those that each agent's model may call. Both may hold tools
# that were removed through AutoGen since, so they are only looked at through `_executes` and `_offers`.
_executed: WeakKeyDictionary[ConversableAgent, dict[str, tuple[AnyMemory, Tools]]] = WeakKeyDictionary()
_offered: WeakKeyDictionary[ConversableAgent, dict[str, tuple[AnyMemory, list[Tools]]]] = WeakKeyDictionary()


@overload
def register_memory(
    memory: AgentMemory,
    *,
    caller: ConversableAgent,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
) -> MemoryTools[str]: ...
@overload
def register_memory(
    memory: AsyncAgentMemory,
    *,
    caller: ConversableAgent,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
) -> MemoryTools[ToolCoroutine]: ...
def register_memory(
    memory: AnyMemory,
    *,
    caller: ConversableAgent,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
) -> Tools:
    """Offer remember, recall and forget, or `only` some of them, to the caller's model; the executor runs them.

    May be called twice, and with further callers. The tool's name is all AutoGen goes by: a second memory on the same
    executor needs a `prefix`, and without one is a `ConfigError`. From an `AsyncAgentMemory` the tools are async;
    others run in a thread when the chat is awaited.
    """
    return _register(memory, [caller], executor, check_only(only), prefix)


@overload
def register_team_memory(
    memory: AgentMemory,
    team: Team,
    *,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
    add_transitions: bool = False,
) -> MemoryTools[str]: ...
@overload
def register_team_memory(
    memory: AsyncAgentMemory,
    team: Team,
    *,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
    add_transitions: bool = False,
) -> MemoryTools[ToolCoroutine]: ...
def register_team_memory(
    memory: AnyMemory,
    team: Team,
    *,
    executor: ConversableAgent,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
    add_transitions: bool = False,
) -> Tools:
    """Give every member with a model the same memory: all its tools, or `only` some of them.

    In a group chat the executor has to be a member, and able to speak after each caller: some versions end the chat
    without a word otherwise. `add_transitions` allows the missing transitions instead of refusing.
    """
    callers, only = [agent for agent in members(team) if agent.llm_config], check_only(only)
    group = group_of(team)
    if group is not None:
        _check_rivals(memory, members(group), executor, _names(only, prefix), prefix)
        callers = check_group(group, callers, executor, add_transitions)
    if not callers:
        raise ConfigError("no member of the team has an llm_config: no agent could call the tools")
    return _register(memory, callers, executor, only, prefix)


def _register(
    memory: AnyMemory, callers: list[ConversableAgent], executor: ConversableAgent, only: Only, prefix: str
) -> Tools:
    names = _names(only, prefix)
    for caller in callers:
        _check_caller(caller, memory, names)
    tools = _tools(memory, executor, names, prefix)
    for caller in callers:
        _connect(memory, tools, caller, executor, names)
    return tools.limited(only)


def _names(only: Only, prefix: str) -> list[str]:
    every = tool_names(prefix)
    return [every[name] for name in only]


def unregister_memory(
    memory: AnyMemory, *, caller: ConversableAgent, executor: ConversableAgent, prefix: str = ""
) -> None:
    """Take the tools of a memory away again; those that are not there any more are no error.

    The executor keeps them while another caller needs them.
    """
    for name in tool_names(prefix).values():
        executed, offered = _executes(executor, name), _offers(caller, name)
        for agent, known in ((executor, executed), (caller, offered)):
            if known is not None and known[0] != memory:
                raise _taken(name, known[0], agent)
        tools = executed[1] if executed is not None else None
        if offered is not None:
            _withdraw(name, caller, offered[1], tools)
        if tools is not None and not _needed(name, tools):
            _remove(executor, name)
            _executed[executor].pop(name)
            if not _executed[executor]:
                run_as_before(executor)


def _remove(executor: ConversableAgent, name: str) -> None:
    register: Callable[..., None] = executor.register_function
    if "silent_override" in inspect.signature(register).parameters:
        return register({name: None}, silent_override=True)
    with warnings.catch_warnings():  # of a function that is replaced, which older versions always emit
        warnings.simplefilter("ignore", UserWarning)
        return register({name: None})


def _withdraw(name: str, caller: ConversableAgent, known: list[Tools], tools: Tools | None) -> None:
    known[:] = [one for one in known if one is not tools]
    if known and tools is not None:
        return  # through another executor the caller still has them
    _offered[caller].pop(name)
    tool = next((one for one in getattr(caller, "tools", ()) if getattr(one, "name", None) == name), None)
    if tool is not None:
        caller.remove_tool_for_llm(tool)
    else:  # older versions keep nothing but the schema
        caller.update_tool_signature(name, is_remove=True)


def _needed(name: str, tools: Tools) -> bool:
    return any(any(one is tools for one in offers[name][1]) for offers in _offered.values() if name in offers)


def _connect(
    memory: AnyMemory, tools: Tools, caller: ConversableAgent, executor: ConversableAgent, names: list[str]
) -> None:
    """Register the missing tools only: AutoGen warns of each that is registered a second time."""
    for name, function in tools.function_map().items():
        if name not in names:
            continue
        _replace(executor, name, tools)
        description = function.__doc__ or name
        executed, offered = _executes(executor, name), _offers(caller, name)
        if executed is None and offered is None:
            register_function(function, caller=caller, executor=executor, name=name, description=description)
        elif executed is None:
            executor.register_for_execution(name=name)(function)
        elif offered is None:
            caller.register_for_llm(name=name, description=description)(function)
        _executed.setdefault(executor, {})[name] = (memory, tools)
        known = [] if offered is None else [one for one in offered[1] if one is not tools]
        _offered.setdefault(caller, {})[name] = (memory, [*known, tools])
    run_in_threads(executor, partial(_is_blocking, executor))


def _replace(executor: ConversableAgent, name: str, tools: Tools) -> None:
    """Remove tools of the same memory with a closed client; callers that were offered them get the new ones."""
    known = _executes(executor, name)
    if known is None or known[1] is tools:
        return
    _remove(executor, name)
    for offers in _offered.values():
        if name in offers:
            offers[name][1][:] = [tools if one is known[1] else one for one in offers[name][1]]


def _is_blocking(executor: ConversableAgent, name: str) -> bool:
    known = _executes(executor, name)
    return known is not None and isinstance(known[0], AgentMemory)


def _executes(executor: ConversableAgent, name: str) -> tuple[AnyMemory, Tools] | None:
    """Our tool of this name, if the executor still has it."""
    return _executed.get(executor, {}).get(name) if name in executor.function_map else None


def _offers(caller: ConversableAgent, name: str) -> tuple[AnyMemory, list[Tools]] | None:
    """Our tools of this name, if the caller's model may still call them."""
    return _offered.get(caller, {}).get(name) if name in _schema_names(caller) else None


def _schema_names(caller: ConversableAgent) -> set[str]:
    config: Any = caller.llm_config or {}
    tools = config["tools"] if "tools" in config else None  # noqa: SIM401 -- some versions' config has no `get`
    return {tool["function"]["name"] for tool in tools or ()}


def _check_caller(caller: ConversableAgent, memory: AnyMemory, names: list[str]) -> None:
    if group_of(caller) is not None or not caller.llm_config:
        raise ConfigError(f"{caller.name!r} cannot call tools: it is a group chat manager or has no llm_config")
    for name in names:
        known = _offers(caller, name)
        if known is not None and known[0] != memory:
            raise _taken(name, known[0], caller)


def _check_rivals(
    memory: AnyMemory, agents: list[ConversableAgent], executor: ConversableAgent, names: list[str], prefix: str
) -> None:
    """AutoGen hands a call to any member that knows the name: one with another memory must not be among them."""
    for agent in agents:
        if agent is not executor:
            _tools(memory, agent, names, prefix)


def _tools(memory: AnyMemory, executor: ConversableAgent, names: list[str], prefix: str) -> Tools:
    """The tools that this executor runs for this memory, or new ones; `ConfigError` when their names are taken."""
    tools: Tools | None = None
    for name in tool_names(prefix).values():  # tools of the same memory are shared, whichever of them are offered
        known = _executes(executor, name)
        if name not in names and (known is None or known[0] != memory):
            continue
        if (known is not None and known[0] != memory) or (known is None and name in executor.function_map):
            raise _taken(name, known and known[0], executor)
        if known is not None and not known[0].client.closed:
            tools = known[1]
    return memory_tools(memory, prefix=prefix) if tools is None else tools


def _taken(name: str, memory: AnyMemory | None, agent: ConversableAgent) -> ConfigError:
    owner = "a function of yours" if memory is None else f"the {memory}"
    return ConfigError(
        f"{name!r} of {agent.name!r} already belongs to {owner}, and AutoGen finds a tool by its name alone. "
        "Pass a prefix, such as prefix='private_', to give this memory tools of its own; or serve many users with one "
        "memory, client.agent(current_user.get); or only read a second one: attach_memory(…, read_from=[…])"
    )


# Who may speak after whom in a group chat, as far as tools depend on it.


def check_group(
    group: GroupChat, callers: list[ConversableAgent], executor: ConversableAgent, add: bool
) -> list[ConversableAgent]:
    """The callers with tool calls that reach the executor; `ConfigError` where the chat would end or go astray."""
    if executor not in group.agents:
        raise ConfigError(f"the executor {executor.name!r} is not in the group chat: add it to GroupChat(agents=…)")
    if not group.func_call_filter and group.speaker_selection_method == "round_robin":
        raise ConfigError("func_call_filter=False with round_robin hands tool calls to the next speaker: leave it True")
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


# Runs blocking tools of ours in a thread when a chat is awaited: AutoGen would run them in the event loop.

_METHOD = "a_execute_function"


def run_in_threads(executor: ConversableAgent, is_blocking: Callable[[str], bool]) -> None:
    """Put it on the executor, as AutoGen provides for; other functions are executed as before."""
    if hasattr(vars(executor).get(_METHOD), "kronmem_threads"):
        return
    awaited: Callable[..., Any] = getattr(executor, _METHOD)

    async def a_execute_function(func_call: dict[str, Any], *args: Any, **options: Any) -> Any:
        if not is_blocking(func_call.get("name", "")):
            return await awaited(func_call, *args, **options)
        # The thread has the caller's context, and is not for long: a tool ends by its timeout.
        work = partial(executor.execute_function, func_call, *args, **options)
        return await to_thread.run_sync(work, abandon_on_cancel=True)

    update_wrapper(a_execute_function, awaited)
    a_execute_function.kronmem_threads = True  # type: ignore[attr-defined] # found again above
    setattr(executor, _METHOD, a_execute_function)


def run_as_before(executor: ConversableAgent) -> None:
    """Remove it again, unless other code has wrapped the method since."""
    if hasattr(vars(executor).get(_METHOD), "kronmem_threads"):
        delattr(executor, _METHOD)
