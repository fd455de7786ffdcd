"""attach_memory: recall before each reply and capture of sent messages, by AutoGen's own hooks."""

from __future__ import annotations

from collections.abc import Callable

from kronmem import AgentMemory
from kronmem.autogen.capture import CaptureHooks
from kronmem.autogen.classic import Agent, ConversableAgent, Team, members
from kronmem.autogen.messages import Message
from kronmem.autogen.recall import RecallHook
from kronmem.packs.capture import Capture, CaptureRules, Extract
from kronmem.packs.limits import check_blocking, check_limits
from kronmem.packs.log_once import LogOnce

_BEFORE_REPLY = "process_all_messages_before_reply"
_BEFORE_SEND = "process_message_before_send"


class Attachment:
    """Memory at work on some agents, until `detach` or the end of a `with` block.

    Detach before you close the client: the last messages may still wait to be stored.
    """

    def __init__(self, timeout: float, capture: CaptureHooks | None) -> None:
        self._timeout, self._capture = timeout, capture
        self._hooks: list[tuple[ConversableAgent, str, Callable[..., object]]] = []

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def hook(self, agent: ConversableAgent, name: str, hook: Callable[..., object]) -> None:
        """Register a hook, if this version of AutoGen has one of that name."""
        if name in agent.hook_lists:
            agent.register_hook(name, hook)  # pyright: ignore[reportUnknownMemberType] -- AutoGen leaves it bare
            self._hooks.append((agent, name, hook))

    def received(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Capture a message that an agent is about to receive."""
        if self._capture is not None:
            self._capture.received(recipient, message, sender)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until captured messages are stored; the answer is how many are not, after `timeout` seconds."""
        wait = self._timeout if timeout is None else timeout
        return 0 if self._capture is None else self._capture.flush(wait)

    def detach(self) -> None:
        """Remove the hooks, and store the messages that still wait. May be called twice."""
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

    Before each reply the memories that fit the last human or peer text are shown to the model. Messages that the
    agents send are stored in the background: attach the user's agent too to keep its words. `capture` may be a
    function from a text to the texts worth keeping, such as `extract_facts`; otherwise messages shorter than
    `min_length` are left out. A reply waits for memory at most `timeout` seconds; memory that fails is logged once
    and done without.
    """
    check_blocking(memory)
    check_limits(limit, timeout)
    hooks = _capture_hooks(memory, capture, min_length, timeout) if capture else None
    attachment = Attachment(timeout, hooks)
    log = LogOnce(str(memory))
    for agent in members(agents):
        if recall:
            before = RecallHook(agent, memory, limit, timeout, log)
            attachment.hook(agent, _BEFORE_REPLY, before)
            attachment.hook(agent, f"a_{_BEFORE_REPLY}", before.call_async)
        if hooks is not None:
            attachment.hook(agent, _BEFORE_SEND, hooks.sent)
            attachment.hook(agent, f"a_{_BEFORE_SEND}", hooks.sent_async)
    return attachment


def _capture_hooks(memory: AgentMemory, capture: bool | Extract, min_length: int, timeout: float) -> CaptureHooks:
    rules = CaptureRules(capture if callable(capture) else None, min_length)
    return CaptureHooks(Capture(memory, rules, timeout, LogOnce(f"capture into the {memory}")))
