"""MemoryAgent, a ConversableAgent that remembers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kronmem import AgentMemory, Client, ConfigError
from kronmem.autogen.attach import attach
from kronmem.autogen.classic import Agent, ConversableAgent
from kronmem.autogen.messages import Message, is_traffic
from kronmem.autogen.recall import CONTEXT_LIMIT, MOST_LOADING, ContextHook
from kronmem.packs.block import fence_context, without_blocks
from kronmem.packs.capture import CaptureOption
from kronmem.packs.checks import ReadFrom, check_blocking
from kronmem.packs.deadlines import LogOnce, bounded, bounded_thread, is_cold, load_engine, warm_up


def _primed(
    agent: ConversableAgent, memory: AgentMemory, query: str, limit: int, timeout: float, log: LogOnce
) -> str | None:
    """Put the memories about `query` into the system message, in place of an earlier block of ours; None: no answer."""
    if is_cold(memory.client):
        load_engine()  # before the deadline begins
    block = None
    with log.swallowing():
        block = bounded(_asking(memory, query, limit, timeout), timeout)
    _show(agent, block)
    return block


def _asking(memory: AgentMemory, query: str, limit: int, timeout: float) -> Callable[[], str]:
    inner = memory.with_timeout(timeout).resolved()
    return lambda: fence_context(inner.inject_context(query, limit), inner.agent_id)


def _show(agent: ConversableAgent, block: str | None) -> None:
    if block:
        agent.update_system_message(f"{without_blocks(agent.system_message)}\n\n{block}".strip())


class MemoryAgent(ConversableAgent):
    """A ConversableAgent that recalls before it replies, and captures its messages as `attach_memory` does.

    Without `memory` it uses the default store of this machine or environment, as `Client().agent(agent_id)` does; all
    agents of a process share one client for it, and `close` gives it back. `memory_query` also puts the memories about
    it into the system message, when that is first needed; with a callable id they are shown with each reply instead,
    for a system message is one for all users.
    """

    _query: str | None = None
    _asked = False

    def __init__(
        self,
        name: str,
        *conversable_agent_positionals: Any,
        memory: AgentMemory | None = None,
        agent_id: str | Callable[[], str] | None = None,
        memory_query: str | None = None,
        recall: bool = True,
        capture: CaptureOption = "auto",
        limit: int = 5,
        timeout: float = 2.0,
        read_from: ReadFrom = (),
        ttl_days: int | None = None,
        **conversable_agent_arguments: Any,
    ) -> None:
        super().__init__(name, *conversable_agent_positionals, **conversable_agent_arguments)  # pyright: ignore[reportUnknownMemberType] -- AutoGen leaves parts bare
        _check_one(memory, agent_id)
        self._client: Client | None = None
        if memory is None:
            self._client = take_client()
            memory = self._client.agent(agent_id or "")
        self.memory = memory
        self.attachment = attach(memory, self, recall, capture, limit, 20, timeout, read_from, ttl_days, False)
        self._query, self._timeout = memory_query if memory.fixed else None, timeout
        self._asked, self._prime_log = False, LogOnce(str(memory))
        if memory_query is not None and not memory.fixed:
            self.attachment.recall(self, ContextHook(self, memory, memory_query, timeout), "context")

    @property
    def system_message(self) -> str:
        """The system message, with the memories about `memory_query`."""
        self._prime()
        return super().system_message

    def generate_reply(self, *args: Any, **options: Any) -> str | Message | None:
        """Reply, with the memories about `memory_query` in the system message."""
        warm_up(self.memory)
        self._prime()
        return self._replied(super().generate_reply(*args, **options))

    async def a_generate_reply(self, *args: Any, **options: Any) -> str | Message | None:
        """Reply, with the memories about `memory_query` in the system message."""
        warm_up(self.memory)
        await self._prime_async()
        return self._replied(await super().a_generate_reply(*args, **options))

    def _due(self) -> str | None:
        """The query until it is answered, once in each turn of this agent: an outage costs one wait."""
        query = None if self._asked else self._query
        self._asked = True
        return query

    def _replied(self, reply: str | Message | None) -> str | Message | None:
        self._asked = isinstance(reply, dict) and is_traffic(reply)  # while tools are at work it is the same turn
        return reply

    def _prime(self) -> None:
        query = self._due()
        if query is not None:
            block = _primed(self, self.memory, query, CONTEXT_LIMIT, self._timeout, self._prime_log)
            self._query = query if block is None else None

    async def _prime_async(self) -> None:
        query, block = self._due(), ""
        if query is None:
            return
        with self._prime_log.swallowing():
            if is_cold(self.memory.client):
                await bounded_thread(load_engine, MOST_LOADING)
            asking = _asking(self.memory, query, CONTEXT_LIMIT, self._timeout)
            block = await bounded_thread(asking, self._timeout)
            self._query = None
        _show(self, block)

    def receive(
        self,
        message: Message | str,
        sender: Agent,
        request_reply: bool | None = None,
        silent: bool | None = False,
    ) -> None:
        """Receive a message, and capture it."""
        warm_up(self.memory)
        self._prime()  # first: the new message is not yet a memory
        self.attachment.received(self, message, sender)
        super().receive(message, sender, request_reply, silent)

    async def a_receive(
        self,
        message: Message | str,
        sender: Agent,
        request_reply: bool | None = None,
        silent: bool | None = False,
    ) -> None:
        """Receive a message, and capture it."""
        warm_up(self.memory)
        await self._prime_async()  # first: the new message is not yet a memory
        await self.attachment.received_async(self, message, sender)
        await super().a_receive(message, sender, request_reply, silent)

    def close(self) -> None:
        """Store waiting messages, stop remembering, and close the client if it is this agent's own."""
        self.attachment.detach()
        client, self._client = self._client, None
        if client is not None:
            give_back(client)


def _check_one(memory: AgentMemory | None, agent_id: str | Callable[[], str] | None) -> None:
    """It must be clear which memory it is."""
    if memory is None and agent_id is None:
        raise ConfigError("MemoryAgent needs memory= or agent_id=")
    if memory is None or agent_id is None:
        return
    check_blocking(memory)
    if callable(agent_id) or agent_id != memory.agent_id:
        raise ConfigError(f"agent_id= names another agent than the {memory}: pass one of them")


# One client for the default store of this process, however many agents use it.

_lock = threading.Lock()
_shared: dict[object, tuple[Client, int]] = {}
"""By the identity of the store: the client, and how many agents have not closed it."""


def take_client() -> Client:
    """The client of the default store, made at the first call; opens nothing."""
    made = Client()
    with _lock:
        client, users = _shared.get(made.store, (made, 0))
        if client.closed:  # by a caller who took it for their own
            client, users = made, 0
        _shared[made.store] = (client, users + 1)
        return client


def give_back(client: Client) -> None:
    """Close the client when its last user has closed."""
    with _lock:
        shared, users = _shared.get(client.store, (None, 0))
        if shared is client:
            if users > 1:
                _shared[client.store] = (client, users - 1)
                return
            del _shared[client.store]
    client.close()
