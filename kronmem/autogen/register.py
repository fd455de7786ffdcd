"""Memory as tools: run once by each executor, offered to each caller, never one memory in the place of another."""

from __future__ import annotations

from typing import TypeAlias, overload
from weakref import WeakKeyDictionary

from kronmem import AgentMemory, AsyncAgentMemory, ConfigError, MemoryTools, memory_tools
from kronmem.autogen.classic import ConversableAgent, Team, group_of, members, register_function
from kronmem.autogen.transitions import check_group
from kronmem.packs.tool_text import ToolCoroutine, tool_names

AnyMemory: TypeAlias = "AgentMemory | AsyncAgentMemory"
Tools: TypeAlias = "MemoryTools[str] | MemoryTools[ToolCoroutine]"
Named: TypeAlias = "dict[str, tuple[AnyMemory, Tools]]"

# By tool name: the tools that each agent executes, and those that each agent's model may call.
_executed: WeakKeyDictionary[ConversableAgent, Named] = WeakKeyDictionary()
_offered: WeakKeyDictionary[ConversableAgent, Named] = WeakKeyDictionary()


@overload
def register_memory(
    memory: AgentMemory, *, caller: ConversableAgent, executor: ConversableAgent, prefix: str = ""
) -> MemoryTools[str]: ...
@overload
def register_memory(
    memory: AsyncAgentMemory, *, caller: ConversableAgent, executor: ConversableAgent, prefix: str = ""
) -> MemoryTools[ToolCoroutine]: ...
def register_memory(
    memory: AnyMemory, *, caller: ConversableAgent, executor: ConversableAgent, prefix: str = ""
) -> Tools:
    """Offer remember, recall and forget to the caller's model, and let the executor run them.

    May be called twice, and with further callers. The tool's name is all AutoGen goes by: a second memory on the same
    executor needs a `prefix`, and without one is a `ConfigError`. From an `AsyncAgentMemory` the tools are async.
    """
    return _register(memory, [caller], executor, prefix)


@overload
def register_team_memory(
    memory: AgentMemory, team: Team, *, executor: ConversableAgent, prefix: str = "", add_transitions: bool = False
) -> MemoryTools[str]: ...
@overload
def register_team_memory(
    memory: AsyncAgentMemory, team: Team, *, executor: ConversableAgent, prefix: str = "", add_transitions: bool = False
) -> MemoryTools[ToolCoroutine]: ...
def register_team_memory(
    memory: AnyMemory, team: Team, *, executor: ConversableAgent, prefix: str = "", add_transitions: bool = False
) -> Tools:
    """Give every member with a model the same memory.

    In a group chat the executor has to be a member, and able to speak after each caller: some versions end the chat
    without a word otherwise. `add_transitions` allows the missing transitions instead of refusing.
    """
    callers = [agent for agent in members(team) if agent.llm_config]
    group = group_of(team)
    if group is not None:
        _check_rivals(memory, members(group), executor, prefix)
        callers = check_group(group, callers, executor, add_transitions)
    if not callers:
        raise ConfigError("no member of the team has an llm_config: nobody could call the tools")
    return _register(memory, callers, executor, prefix)


def _register(memory: AnyMemory, callers: list[ConversableAgent], executor: ConversableAgent, prefix: str) -> Tools:
    for caller in callers:
        _check_caller(caller, memory, prefix)
    tools = _tools(memory, executor, prefix)
    for caller in callers:
        _connect(memory, tools, caller, executor)
    return tools


def _connect(memory: AnyMemory, tools: Tools, caller: ConversableAgent, executor: ConversableAgent) -> None:
    """Register the missing tools only: AutoGen warns of each that is registered a second time."""
    executed, offered = _executed.setdefault(executor, {}), _offered.setdefault(caller, {})
    for name, function in tools.function_map().items():
        description = function.__doc__ or name
        if name not in executed and name not in offered:
            register_function(function, caller=caller, executor=executor, name=name, description=description)
        elif name not in executed:
            executor.register_for_execution(name=name)(function)
        elif name not in offered:
            caller.register_for_llm(name=name, description=description)(function)
        executed[name] = offered[name] = (memory, tools)


def _check_caller(caller: ConversableAgent, memory: AnyMemory, prefix: str) -> None:
    if group_of(caller) is not None or not caller.llm_config:
        raise ConfigError(f"{caller.name!r} cannot call tools: it is a group chat manager or has no llm_config")
    for name in tool_names(prefix).values():
        known = _offered.get(caller, {}).get(name)
        if known is not None and known[0] != memory:
            raise _taken(name, known[0], caller)


def _check_rivals(memory: AnyMemory, agents: list[ConversableAgent], executor: ConversableAgent, prefix: str) -> None:
    """AutoGen hands a call to any member that knows the name: one with another memory must not be among them."""
    for agent in agents:
        if agent is not executor:
            _tools(memory, agent, prefix)


def _tools(memory: AnyMemory, executor: ConversableAgent, prefix: str) -> Tools:
    """The tools that this executor runs for this memory, or new ones; `ConfigError` when their names are taken."""
    executed = _executed.get(executor, {})
    for name in tool_names(prefix).values():
        known = executed.get(name)
        if (known is not None and known[0] != memory) or (known is None and name in executor.function_map):
            raise _taken(name, known and known[0], executor)
        if known is not None:
            return known[1]
    return memory_tools(memory, prefix)


def _taken(name: str, memory: AnyMemory | None, agent: ConversableAgent) -> ConfigError:
    owner = "a function of yours" if memory is None else f"the {memory}"
    return ConfigError(
        f"{name!r} of {agent.name!r} already belongs to {owner}, and AutoGen finds a tool by its name alone: "
        f"pass a prefix, such as prefix='private_', to give this memory tools of its own"
    )
