"""attach_memory: recall before each reply and capture of what is sent, by AutoGen's own hooks."""

from __future__ import annotations

from collections.abc import Callable

from kronmem import AgentMemory
from kronmem.autogen.capture import Capture, Extract
from kronmem.autogen.classic import Agent, ConversableAgent, Team, members
from kronmem.autogen.messages import Message
from kronmem.autogen.recall import Recall
from kronmem.packs.bounded import Outage

_BEFORE_REPLY = "process_all_messages_before_reply"
_BEFORE_SEND = "process_message_before_send"


class Attachment:
    """Memory at work on some agents, until `detach` or the end of a `with` block.

    Detach before you close the client: what was said last may still wait to be stored.
    """

    def __init__(self, timeout: float, capture: Capture | None) -> None:
        self._timeout, self._capture = timeout, capture
        self._hooks: list[tuple[ConversableAgent, str, Callable[..., object]]] = []

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def hook(self, agent: ConversableAgent, name: str, hook: Callable[..., object]) -> None:
        """Register a hook with an agent whose AutoGen knows that name."""
        if name in agent.hook_lists:
            agent.register_hook(name, hook)  # pyright: ignore[reportUnknownMemberType] -- AutoGen leaves it bare
            self._hooks.append((agent, name, hook))

    def heard(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Keep what an agent is told."""
        if self._capture is not None:
            self._capture.heard(recipient, message, sender)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until what was captured is stored; the answer is how many messages are not, after `timeout` seconds."""
        wait = self._timeout if timeout is None else timeout
        return 0 if self._capture is None else self._capture.flush(wait)

    def detach(self) -> None:
        """Take the agents back to what they were, and store what still waits. May be called twice."""
        while self._hooks:
            agent, name, hook = self._hooks.pop()
            if hook in agent.hook_lists[name]:
                agent.hook_lists[name].remove(hook)
        self.flush()


def attach_memory(
    memory: AgentMemory,
    agents: Team,
    *,
    recall: bool = True,
    capture: bool | Extract = True,
    limit: int = 5,
    min_length: int = 20,
    timeout: float = 2.0,
) -> Attachment:
    """Let agents remember by themselves: no tool, no prompt, nothing in their stored messages.

    Before each reply the memories that fit the last human or peer text are shown to the model. What the agents send
    is kept, in the background: attach the user's agent too if its words are to be kept. `capture` may be a function
    from a text to the texts worth keeping, such as `extract_facts`; otherwise messages shorter than `min_length` are
    left out. A reply waits for memory at most `timeout` seconds; memory that fails is logged once and done without.
    """
    extract = capture if callable(capture) else None
    unkept = Outage(f"capture into the memory of {memory.agent_id!r}")
    keep = Capture(memory, extract, min_length, timeout, unkept) if capture else None
    attachment = Attachment(timeout, keep)
    outage = Outage(f"memory of {memory.agent_id!r}")
    for agent in members(agents):
        if recall:
            before = Recall(agent, memory, limit, timeout, outage)
            attachment.hook(agent, _BEFORE_REPLY, before)
            attachment.hook(agent, f"a_{_BEFORE_REPLY}", before.awaited)
        if keep is not None:
            attachment.hook(agent, _BEFORE_SEND, keep.sent)
            attachment.hook(agent, f"a_{_BEFORE_SEND}", keep.a_sent)
    return attachment
