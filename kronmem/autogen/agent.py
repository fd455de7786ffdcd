"""MemoryAgent, a ConversableAgent that remembers, and prime, which puts recalled context into a system message once."""

from __future__ import annotations

from typing import Any

from kronmem import AgentMemory, Client, ConfigError
from kronmem.autogen.attach import attach_memory
from kronmem.autogen.classic import Agent, ConversableAgent
from kronmem.autogen.messages import Message
from kronmem.packs.block import fence_context, without_blocks
from kronmem.packs.bounded import bounded
from kronmem.packs.capture import Extract
from kronmem.packs.limits import check_blocking
from kronmem.packs.log_once import LogOnce


def prime(agent: ConversableAgent, memory: AgentMemory, query: str, *, limit: int = 8, timeout: float = 2.0) -> str:
    """Put the memories about `query` into the agent's system message, in place of an earlier block of ours.

    The answer is the block: "" when nothing fits or memory does not answer within `timeout` seconds, and then the
    message stays as it is.
    """
    log = LogOnce(str(check_blocking(memory)))
    block = ""
    with log.swallowing():
        inner = memory.with_timeout(timeout).resolved()
        block = bounded(lambda: fence_context(inner.inject_context(query, limit), inner.agent_id), timeout)
    if block:
        agent.update_system_message(f"{without_blocks(agent.system_message)}\n\n{block}".strip())
    return block


class MemoryAgent(ConversableAgent):
    """A ConversableAgent that recalls before it replies, and keeps the messages that it receives and sends.

    Without `memory` it uses the default store of this machine or environment, `Client().agent(agent_id)`, and `close`
    closes it. `memory_query` also puts the memories about it into the system message, when that is first needed.
    """

    _query: str | None = None

    def __init__(
        self,
        name: str,
        *,
        memory: AgentMemory | None = None,
        agent_id: str | None = None,
        memory_query: str | None = None,
        recall: bool = True,
        capture: bool | Extract = True,
        timeout: float = 2.0,
        **conversable_agent_arguments: Any,
    ) -> None:
        super().__init__(name, **conversable_agent_arguments)  # pyright: ignore[reportUnknownMemberType] -- AutoGen leaves parts bare
        self._client: Client | None = None
        self.memory = self._found(memory, agent_id)
        self.attachment = attach_memory(self.memory, self, recall=recall, capture=capture, timeout=timeout)
        self._query, self._timeout = memory_query, timeout

    def _found(self, memory: AgentMemory | None, agent_id: str | None) -> AgentMemory:
        if memory is not None and agent_id is not None and agent_id != memory.agent_id:
            raise ConfigError(f"memory is of {memory.agent_id!r} and agent_id says {agent_id!r}: pass one of them")
        if memory is not None:
            return memory
        if agent_id is None:
            raise ConfigError("MemoryAgent needs memory= or agent_id=: whose memory is it?")
        self._client = Client()
        return self._client.agent(agent_id)

    @property
    def system_message(self) -> str:
        """The system message, with the memories about `memory_query`."""
        self._prime()
        return super().system_message

    def generate_reply(self, *args: Any, **options: Any) -> str | Message | None:
        """Reply, with the memories about `memory_query` in the system message."""
        self._prime()
        return super().generate_reply(*args, **options)

    async def a_generate_reply(self, *args: Any, **options: Any) -> str | Message | None:
        """Reply, with the memories about `memory_query` in the system message."""
        self._prime()
        return await super().a_generate_reply(*args, **options)

    def _prime(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            prime(self, self.memory, query, timeout=self._timeout)

    def receive(
        self,
        message: Message | str,
        sender: Agent,
        request_reply: bool | None = None,
        silent: bool | None = False,
    ) -> None:
        """Receive a message, and capture it."""
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
        self._prime()  # first: the new message is not yet a memory
        self.attachment.received(self, message, sender)
        await super().a_receive(message, sender, request_reply, silent)

    def close(self) -> None:
        """Store waiting messages, stop remembering, and close the client if it is this agent's own."""
        self.attachment.detach()
        if self._client is not None:
            self._client.close()
