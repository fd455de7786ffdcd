"""attach_memory: recall before each reply and capture of sent messages, by AutoGen's own hooks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from weakref import WeakKeyDictionary, ref

from kronmem import AgentMemory, ConfigError
from kronmem.autogen.capture import CaptureHooks, speaker_of
from kronmem.autogen.classic import Agent, ConversableAgent, Team, members, wrap
from kronmem.autogen.messages import Message
from kronmem.autogen.recall import BEFORE_REPLY, RecallHook
from kronmem.packs.capture import Capture, CaptureOption, CaptureRules, capture_rules
from kronmem.packs.checks import ReadFrom, check_blocking, check_capture, check_limits, check_read_from, check_ttl_days
from kronmem.packs.deadlines import LogOnce, warm_up
from kronmem.packs.no_echo import Echoes

_BEFORE_SEND = "process_message_before_send"

# By agent: the parts at work, each with its own attachment, which the part's hooks on the agent keep alive.
_attached: WeakKeyDictionary[ConversableAgent, dict[str, ref[Attachment]]] = WeakKeyDictionary()


class Attachment:
    """Memory at work on some agents, until `detach` or the end of a `with` block.

    Detach before you close the client: the last messages may still wait to be stored.
    """

    def __init__(self, memory: AgentMemory, timeout: float, capture: CaptureHooks | None) -> None:
        self.memory, self._timeout, self._capture = memory, timeout, capture
        self._undo: dict[ConversableAgent, list[Callable[[], None]]] = {}
        if capture is not None:
            capture.owner = self

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def recall(self, agent: ConversableAgent, hook: RecallHook, part: str = "recall") -> None:
        """Let an agent recall before it replies, unless it does already; the hook of another part comes before."""
        if self._claim(agent, part):
            hook.owner = self
            self._hook(agent, BEFORE_REPLY, hook)
            self._hook(agent, f"a_{BEFORE_REPLY}", hook.call_async)
            self._undo[agent].append(wrap(agent, "generate_reply", hook.replying, first=part != "recall"))
            self._undo[agent].append(wrap(agent, "a_generate_reply", hook.replying_async, first=part != "recall"))

    def capture(self, agent: ConversableAgent) -> None:
        """Keep the messages that an agent sends, unless they are kept already."""
        if self._capture is not None and self._claim(agent, "capture"):
            self._hook(agent, _BEFORE_SEND, self._capture.sent)
            self._hook(agent, f"a_{_BEFORE_SEND}", self._capture.sent_async)
            self._undo[agent].append(wrap(agent, "a_send", self._capture.sending_async))
            self._undo[agent].append(wrap(agent, "a_generate_reply", self._capture.replying_async))

    def _claim(self, agent: ConversableAgent, part: str) -> bool:
        parts = _attached.setdefault(agent, {})
        if part in parts:
            return False
        parts[part] = ref(self)
        self._undo.setdefault(agent, []).append(lambda: _release(agent, part))
        return True

    def _hook(self, agent: ConversableAgent, name: str, hook: Callable[..., object]) -> None:
        """Register a hook, if this version of AutoGen has one of that name."""
        if name in agent.hook_lists:
            agent.register_hook(name, hook)  # pyright: ignore[reportUnknownMemberType] -- AutoGen leaves it bare
            self._undo[agent].append(lambda: _unhook(agent, name, hook))

    def listen(self, agent: ConversableAgent) -> None:
        """Keep the messages that an agent receives from agents that keep none themselves."""
        if self._capture is not None and agent in self._undo:
            self._undo[agent].append(wrap(agent, "receive", partial(self._receiving, agent)))
            self._undo[agent].append(wrap(agent, "a_receive", partial(self._receiving_async, agent)))

    @contextmanager
    def _receiving(
        self, agent: ConversableAgent, message: Message | str, sender: Agent, *_: object, **__: object
    ) -> Generator[None]:
        if not _is_kept(message, sender):
            self.received(agent, message, sender)
        yield

    @asynccontextmanager
    async def _receiving_async(
        self, agent: ConversableAgent, message: Message | str, sender: Agent, *_: object, **__: object
    ) -> AsyncGenerator[None]:
        if not _is_kept(message, sender):
            await self.received_async(agent, message, sender)
        yield

    def received(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Capture a message that an agent is about to receive."""
        if self._capture is not None and recipient in self._undo:
            self._capture.received(recipient, message, sender)

    async def received_async(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """The same for asyncio: the event loop goes on meanwhile."""
        if self._capture is not None and recipient in self._undo:
            await self._capture.received_async(recipient, message, sender)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until captured messages are stored; the answer is how many are not, after `timeout` seconds."""
        wait = self._timeout if timeout is None else timeout
        return 0 if self._capture is None else self._capture.flush(wait)

    def detach(self, agent: ConversableAgent | None = None) -> None:
        """Stop recall and capture for one agent, or for all, and store the messages that wait. May be called twice."""
        for one in [agent] if agent is not None else list(self._undo):
            for undo in reversed(self._undo.pop(one, [])):
                undo()
        self.flush()


def attach_memory(
    memory: AgentMemory,
    agents: Team,
    *,
    recall: bool = True,
    capture: CaptureOption = "auto",
    limit: int = 5,
    min_length: int = 20,
    timeout: float = 2.0,
    read_from: ReadFrom = (),
    ttl_days: int | None = None,
) -> Attachment:
    """Let agents remember by themselves: no tool, no prompt, nothing in their stored messages.

    Before each reply the memories that fit the last human or peer text are shown to the model, those of the agents in
    `read_from` (ids, or memories of the same store) among them. Of the messages that the agents send and receive,
    `capture` keeps statements of the user, and decisions and commitments of an agent with a model ("auto"; "user": the
    former alone; "all": every message of at least `min_length` characters; False: nothing; or a function from a text to
    the texts worth keeping, called with `role=` if it has that parameter). They are on disk before the chat goes on,
    for `ttl_days` if given. A reply waits for memory at most `timeout` seconds; memory that fails is logged once and
    done without.

    An agent holds one memory: another one is a `ConfigError`.
    """
    attachment = attach(memory, agents, recall, capture, limit, min_length, timeout, read_from, ttl_days)
    warm_up(memory)
    return attachment


def attach(
    memory: AgentMemory,
    agents: Team,
    recall: bool,
    capture: CaptureOption,
    limit: int,
    min_length: int,
    timeout: float,
    read_from: ReadFrom,
    ttl_days: int | None,
    listens: bool = True,
) -> Attachment:
    """The same without any I/O, for constructors; without `listens` the agent reports received messages itself."""
    check_blocking(memory)
    check_limits(limit, timeout)
    rules = capture_rules(capture, check_ttl_days(ttl_days), min_length=min_length, awaits=False)
    team, others = _team(agents), check_read_from(read_from, memory.client.store)
    _check_memory(memory, team)
    if rules:
        check_capture(memory)
    echoes = Echoes()
    attachment = Attachment(memory, timeout, _hooks(memory, rules, timeout, echoes) if rules else None)
    log = LogOnce(str(memory))
    for agent in team:
        if recall:
            attachment.recall(agent, RecallHook(agent, memory, limit, timeout, log, others, echoes))
        attachment.capture(agent)
        if listens:
            attachment.listen(agent)
    return attachment


def _hooks(memory: AgentMemory, rules: CaptureRules, timeout: float, echoes: Echoes) -> CaptureHooks:
    return CaptureHooks(Capture(memory, rules, timeout, LogOnce(f"capture into the {memory}"), echoes))


def _team(agents: Team) -> list[ConversableAgent]:
    if team := members(agents):
        return team
    raise ConfigError(
        "attach_memory needs at least one agent, and the list is empty: attach_memory(memory, [assistant])"
    )


def _check_memory(memory: AgentMemory, agents: Iterable[ConversableAgent]) -> None:
    for agent in agents:
        for first in _at_work(agent):
            if first.memory != memory:
                raise ConfigError(
                    f"{agent.name!r} holds the {first.memory} already: another would show one user's memories to the "
                    "next. For many users attach one memory with a callable id, client.agent(current_user.get); to "
                    "read a further memory pass read_from=[…]; to write to both give one of them tools with a prefix; "
                    "or detach the first"
                )
            if first.memory.client.closed:
                first.detach(agent)  # this is the same memory through a client that works


def _is_kept(message: Message | str, sender: Agent) -> bool:
    """Whether the agent that wrote these words keeps them itself, when it sends them."""
    keeping = _attached.get(speaker_of(message, sender), {}).get("capture")  # type: ignore[call-overload] # an agent of another kind is no key of it
    return keeping is not None and keeping() is not None


def _at_work(agent: ConversableAgent) -> list[Attachment]:
    return [one for made in _attached.get(agent, {}).values() if (one := made()) is not None]


def _release(agent: ConversableAgent, part: str) -> None:
    parts = _attached.get(agent, {})
    parts.pop(part, None)
    if not parts:
        _attached.pop(agent, None)


def _unhook(agent: ConversableAgent, name: str, hook: Callable[..., object]) -> None:
    if hook in agent.hook_lists[name]:
        agent.hook_lists[name].remove(hook)
