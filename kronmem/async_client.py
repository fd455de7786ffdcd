"""AsyncClient, on asyncio and trio. Its methods check, drive and return; no policy lives here.

The blocking client.py is made of this file by `.ci/blocking_faces.py`, which is run after every change.
"""

from __future__ import annotations

import copy
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

from pydantic import JsonValue

from kronmem import tracing
from kronmem.async_state import AsyncState
from kronmem.core import calls, flows, inputs
from kronmem.core.exchange import Flow, Link, exchange
from kronmem.core.flows import Listing, Walk
from kronmem.core.inputs import Redact
from kronmem.core.policy import Retry
from kronmem.core.wire import Call
from kronmem.errors import ConfigError, KronmemError
from kronmem.models import AgentInfo, Erasure, Fill, Health, Hit, Memory, Session
from kronmem.outbox.async_outbox import AsyncOutbox
from kronmem.outbox.writer import OutboxStatus

# blocking: from kronmem.transport.drive import loop_guard
from kronmem.transport.drive import AsyncTransport, aclose_all, adrive, afan_out, aside, leave
from kronmem.wiring import Embed, StoreIdentity, Wiring, settled

if TYPE_CHECKING:
    from kronmem.async_agent_memory import AsyncAgentMemory
    from kronmem.scope import AgentId, SessionId
    from kronmem.transport.httpx import HttpxTransport

T = TypeVar("T")
K = TypeVar("K", int, str)


class AsyncClient:
    """Memory for agents: embedded by default, at a service when `url`, KRONMEM_URL or KRONVEX_API_KEY is set.

    Safe to use from one event loop after another. The constructor opens nothing; `timeout` is the total time of one
    call in seconds. Close it, or use it in `async with`: one that is not closed keeps its files and connections until
    the process ends.
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retry: Retry = Retry(),  # noqa: B008 -- frozen, so sharing the default is safe
        outbox: str | Path | Literal[False] | None = None,
        state_url: str | None = None,
        redact: Redact | None = None,
        embed: Embed | str | None = None,
        transport: AsyncTransport | HttpxTransport | None = None,
    ) -> None:
        """Decide where memories live; nothing is opened or sent.

        - `url`: `https://` of a service, `sqlite:///file`, `postgresql://…`; else KRONMEM_URL, else a file of the user.
        - `api_key`: the service's key; else KRONMEM_API_KEY, or KRONVEX_API_KEY for Kronvex.
        - `timeout`: the seconds of one call in total, retries included; `with_timeout` changes it.
        - `retry`: attempts and waits of a call that may be repeated.
        - `outbox`: the file of `remember_later`; None is `outbox.db` in KRONMEM_HOME, False switches it off.
        - `state_url`: another service for `state`, such as BotWire.
        - `redact`: changes every text before it is stored, searched or queued; `redact_secrets` is a ready one.
        - `embed`: makes vectors of texts for the embedded engine; see `kronmem.semantic`.
        - `transport`: sends requests in place of kronmem's own connections: one of httpx's, or an object with `send`.
          One that decompresses bodies by itself has to bound them itself.
        """
        self._wiring = Wiring(url, api_key, timeout, retry, redact, embed, transport)
        self._transport = self._wiring.async_transport()
        self._timeout = self._wiring.timeout
        self._state_wiring = (
            self._wiring if state_url is None else Wiring(state_url, None, timeout, retry, None, None, None)
        )
        self._state_transport = self._transport if state_url is None else self._state_wiring.async_transport()
        self._post = self._wiring.post(outbox)
        self._owned = True

    @classmethod
    def local(
        cls, path: str | Path | None = None, *, embed: Embed | str | None = None, redact: Redact | None = None
    ) -> AsyncClient:
        """Make an embedded client, regardless of the environment; ":memory:" keeps nothing on disk."""
        return cls(Wiring.local_url(path), embed=embed, redact=redact)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._wiring!r})"

    if not TYPE_CHECKING:  # type checkers see that this does not work

        def __enter__(self) -> NoReturn:
            raise ConfigError("AsyncClient needs `async with`; where nothing is awaited use Client")

        def __exit__(self, *_trace: object) -> None: ...

        def __getattr__(self, name: str) -> object:
            raise inputs.no_attribute(self, name)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release files and connections that this client opened. Nothing that was remembered is lost."""
        if self._owned:
            self._wiring.closed = True
            try:
                if self._post is not None:
                    await leave(self._post.close, self._timeout)
            finally:
                await aclose_all(self._timeout, self._transport, self._state_transport)

    def with_timeout(self, timeout: float) -> AsyncClient:
        """The same client with another deadline; it shares everything else, and closing it closes nothing."""
        other = copy.copy(self)
        other._timeout, other._owned = inputs.timeout(timeout), False
        return other

    @property
    def closed(self) -> bool:
        """Whether it was closed: every further call to its service is a `ConfigError`."""
        return self._wiring.closed

    @property
    def store(self) -> StoreIdentity:
        """The identity of the store: equal for clients of the same url or file with the same key."""
        return self._wiring.store_identity(self._transport)

    def agent(self, agent_id: AgentId, *, session_id: SessionId = None) -> AsyncAgentMemory:
        """Bind one agent: the same methods without `agent_id`.

        With a session, every read, write and clear is within it. Either id may be a callable, asked at each call in
        the caller's context: `client.agent(current_user.get)` serves many users. One that raises or answers no valid
        id is an `InvalidInputError`, and nothing is read, stored or queued.
        """
        from kronmem.async_agent_memory import AsyncAgentMemory  # made of this class, and so imported after it

        return AsyncAgentMemory(self, agent_id, session_id=session_id)

    async def remember(
        self,
        agent_id: str,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
        role: str | None = None,
        key: str | None = None,
        supersedes: str | None = None,
        may_replace: bool = False,
    ) -> Memory:
        """Store one memory.

        The same text again is one memory (`deduplicated`). `ttl_seconds` (at least 60) beats `ttl_days`, and `pinned`
        beats both. `memory_id`, a UUID of yours, makes a repeated call one memory, even across a restart.
        `key` is the subject ("home_city"): a later memory of the same agent, session and key takes its place, and the
        old one is kept as history, never recalled; `supersedes` does the same by id. `role` is the speaker: "user",
        "assistant" or "tool". With `may_replace` the answer's field of that name holds the former statements that this
        one may replace ("I moved to Berlin": "I live in Paris").
        """
        draft = self._wiring.draft(
            agent_id,
            content,
            memory_type,
            session_id=session_id,
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
            role=role,
            key=key,
            supersedes=supersedes,
            may_replace=may_replace,
        )
        if self._post is None:
            return await self._run(calls.remember(draft))
        flow = self._post.remember(draft, self._wiring.link, self._timeout)
        return await self._drive(flow, "remember", draft.agent_id, draft)

    async def remember_later(
        self,
        agent_id: str,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
        role: str | None = None,
        key: str | None = None,
        supersedes: str | None = None,
    ) -> str:
        """Store one memory without waiting for the service: on disk when this returns, delivered in the background.

        The answer is its id, which `forget` takes before and after delivery. Embedded clients store it at once.
        """
        draft = self._wiring.draft(
            agent_id,
            content,
            memory_type,
            session_id=session_id,
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
            role=role,
            key=key,
            supersedes=supersedes,
        )
        if self._wiring.settings.embedded:
            return (await self._run(calls.remember(draft), "remember_later")).id
        flow = self._wiring.needed(self._post).later([draft], self._timeout)
        (queued,) = await self._drive(flow, "remember_later", draft.agent_id, draft)
        return queued.id

    async def remember_many(
        self,
        agent_id: str,
        contents: Iterable[str],
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        role: str | None = None,
        key: str | None = None,
    ) -> list[Memory]:
        """Store many memories in order; every text is checked before the first is sent.

        The deadline holds for each request. If one fails half-way, `FanOutError.partial` holds the memories stored.
        """
        drafts = self._wiring.drafts(
            agent_id,
            contents,
            memory_type,
            session_id=session_id,
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            role=role,
            key=key,
        )
        link = self._wiring.link
        if self._post is None:
            flow = flows.remember_many(drafts, link, self._timeout, [])
        else:
            flow = self._post.remember_many(drafts, link, self._timeout)
        return await self._drive(flow, "remember_many", agent_id, drafts)

    async def recall(
        self,
        agent_id: str,
        query: str,
        limit: int = 5,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        count_access: bool = True,
        exclude: Iterable[str] = (),
        fill: Fill = False,
    ) -> list[Hit]:
        """Find the memories that answer `query` by their words or their meaning, best first.

        `threshold` drops hits of lower similarity (0 to 1); `None` leaves the choice to the service.
        An agent without memories yields an empty list, not an error. Services answer at most 20 hits, the
        embedded engine 100; a larger `limit` is refused. `since` (included) and `until` (not) bound `created_at`; a
        time without a zone is local. `count_access=False` looks without raising the score.
        `exclude` are ids of memories that you have already: they and near duplicates of them are in no answer and take
        no place of `limit`. `fill="profile"` puts the standing notes (pinned memories and preferences) before the hits.
        A question about the asker ("Who am I?") is answered by the profile.
        """
        return await self._run(
            self._wiring.recall(
                agent_id,
                query,
                limit,
                threshold,
                count_access,
                exclude,
                fill,
                memory_type=memory_type,
                session_id=session_id,
                tags=tags,
                since=since,
                until=until,
            )
        )

    async def recall_many(
        self,
        agent_id: str,
        queries: Iterable[str],
        limit: int = 5,
        *,
        concurrency: int = 32,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        count_access: bool = True,
        exclude: Iterable[str] = (),
        fill: Fill = False,
    ) -> list[list[Hit]]:
        """Ask many questions at once; the answers come in the order of the questions.

        The deadline holds for each question. If some fail, the others still arrive: `FanOutError` carries them by
        position, with the causes.
        """
        tags, exclude = inputs.checked_tags(tags), inputs.excluded(exclude)
        asked = {
            position: self._wiring.recall(
                agent_id,
                query,
                limit,
                threshold,
                count_access,
                exclude,
                fill,
                memory_type=memory_type,
                session_id=session_id,
                tags=tags,
                since=since,
                until=until,
            )
            for position, query in enumerate(inputs.strings(queries, "queries"))
        }
        with tracing.spanned("recall_many", {}):
            done, failed = await afan_out(self._flows(asked), self._transport, inputs.concurrency(concurrency))
            return list(settled(done, failed).values())

    async def recall_across(
        self,
        agent_ids: Iterable[str],
        query: str,
        limit: int = 5,
        *,
        concurrency: int = 32,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        count_access: bool = True,
        exclude: Iterable[str] = (),
        fill: Fill = False,
    ) -> dict[str, list[Hit]]:
        """Ask many agents one question at once; the answers come by agent id.

        The deadline holds for each agent. If some fail, the others still arrive: `FanOutError` carries them by agent
        id, with the causes.
        """
        tags, exclude = inputs.checked_tags(tags), inputs.excluded(exclude)
        asked = {
            agent_id: self._wiring.recall(
                agent_id,
                query,
                limit,
                threshold,
                count_access,
                exclude,
                fill,
                memory_type=memory_type,
                session_id=session_id,
                tags=tags,
                since=since,
                until=until,
            )
            for agent_id in inputs.strings(agent_ids, "agent_ids")
        }
        with tracing.spanned("recall_across", {}):
            done, failed = await afan_out(self._flows(asked), self._transport, inputs.concurrency(concurrency))
            return settled(done, failed)

    async def inject_context(
        self,
        agent_id: str,
        query: str = "general context",
        limit: int = 8,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        max_chars: int | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        exclude: Iterable[str] = (),
        fill: Fill = True,
    ) -> str:
        """Make a block of text for a prompt: pinned memories, those that fit `query`, then the profile up to `limit`.

        The profile is preferences, decisions and the newest memories; filters hold for all of it, and "" means that
        nothing passes them. `fill=False` takes only the memories that fit, `fill="profile"` puts the standing notes
        before them. `exclude` leaves out memories that you have already, by id, and near duplicates of them. The block
        is fenced and marked as data; `max_chars` bounds the whole block, and memories that do not fit into it are
        left out.
        """
        return await self._run(
            self._wiring.inject_context(
                agent_id,
                query,
                limit,
                max_chars,
                exclude,
                fill,
                memory_type=memory_type,
                session_id=session_id,
                tags=tags,
                since=since,
                until=until,
            )
        )

    def memories(
        self,
        agent_id: str,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        history: bool = False,
    ) -> AsyncIterator[Memory]:
        """Walk through all memories of an agent, newest first, a page at a time; with `history` superseded ones too."""
        within = calls.memory_filter(memory_type, session_id, tags, since, until)
        walk = Walk(inputs.identifier(agent_id, "agent_id"), within, history)
        return Listing(self._walk(walk))

    async def _walk(self, walk: Walk) -> AsyncGenerator[Memory, None]:
        self._awake()
        with self._wiring.tracer.walking(walk) as span:
            while not walk.done:
                page = await self._drive(span.carry(exchange(walk.call(), self._wiring.link, self._timeout)))
                for memory in walk.take(page):
                    yield memory

    async def get(self, agent_id: str, memory_id: str) -> Memory:
        """Read one memory, current or superseded; `NotFoundError` when there is none of that id."""
        return await self._by_id("get", agent_id, memory_id, flows.get)

    async def update(
        self,
        agent_id: str,
        memory_id: str,
        *,
        content: str | None = None,
        memory_type: str | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        pinned: bool | None = None,
        ttl_days: int | None = None,
    ) -> Memory:
        """Change a memory in place; an argument that is None leaves as it is. The former text becomes history.

        `tags` and `metadata` are replaced, `ttl_days=0` removes the lifetime. `ConflictError` when another memory has
        that text already or this one was superseded.
        """
        changed = self._wiring.change(
            content=content, memory_type=memory_type, tags=tags, metadata=metadata, pinned=pinned, ttl_days=ttl_days
        )
        return await self._by_id("update", agent_id, memory_id, partial(flows.update, change=changed))

    async def history(self, agent_id: str, memory_id: str) -> list[Memory]:
        """List a memory and the texts it took the place of, newest first, the current one included."""
        return await self._by_id("history", agent_id, memory_id, flows.history)

    async def forget(self, agent_id: str, memory_id: str) -> None:
        """Delete one memory; `NotFoundError` when there is none of that id."""
        if self._post is None:
            return await self._run(calls.forget(agent_id, memory_id))
        flow = self._post.forget(agent_id, memory_id, self._wiring.link, self._timeout)
        return await self._drive(flow, "forget", agent_id, memory_id)

    async def clear(self, agent_id: str, *, session_id: str | None = None, before: datetime | str | None = None) -> int:
        """Delete the memories of an agent, with their history; the answer is how many current ones there were.

        Kronvex counts those that it superseded too.
        `session_id` limits it to one session, `before` to memories that were stored earlier.
        """
        time = inputs.moment(before, "before")
        flow = partial(flows.clear, agent_id, session_id, time, self._wiring.link)
        post, timeout = self._post, self._timeout
        whole = flow(timeout) if post is None else post.clear(agent_id, session_id, time, flow, timeout)
        return await self._drive(whole, "clear", agent_id, calls.MemoryFilter(session_id=session_id))

    async def erase(self, agent_id: str) -> Erasure:
        """Remove everything of an agent: memories, history, state, receipts and queued memories; the counts come back.

        No fragment stays in the raw files of an embedded database; `complete` is False while a reader keeps one, or
        where the service cannot erase. Late retries of erased memories store nothing for 30 days.
        """
        flow = partial(flows.erase, agent_id, self._wiring.link)
        whole = flow(self._timeout) if self._post is None else self._post.erase(agent_id, flow, self._timeout)
        return await self._drive(whole, "erase", agent_id)

    async def restore(self, agent_id: str, memories: Iterable[Memory]) -> int:
        """Store exported memories as they were, with ids, times, counts and history; answer how many were not there.

        Memories of the same id or text stay as they are. At a service other than kronmem it is an `UnsupportedError`.
        """
        restored = 0
        with tracing.spanned("restore", {}):
            for part in self._wiring.exported(memories):
                restored += await self._run(calls.restore(agent_id, part))
        return restored

    async def describe(
        self, agent_id: str, *, description: str | None = None, metadata: Mapping[str, JsonValue] | None = None
    ) -> AgentInfo:
        """Describe an agent, for people who look at it; it is made if it is not there. None leaves a field as it is."""
        fields = calls.description(description, metadata, self._wiring.redacted)
        flow = flows.describe(agent_id, fields, self._wiring.link, self._timeout)
        return await self._drive(flow, "describe", agent_id)

    async def agents(self) -> list[AgentInfo]:
        """List the agents that this key (or this file) holds."""
        return await self._run(calls.agents())

    async def sessions(self, agent_id: str) -> list[Session]:
        """List the sessions of an agent with the number of their memories."""
        return await self._run(calls.sessions(agent_id))

    @property
    def in_process(self) -> bool:
        """Whether the embedded engine answers."""
        return self._wiring.in_process

    @property
    def can_queue(self) -> bool:
        """Whether `remember_later` works here: not at a service with `outbox=False`."""
        return self._post is not None or self._wiring.settings.embedded

    @property
    def outbox(self) -> AsyncOutbox:
        """The memories that wait for delivery: `.list()`, `.flush(timeout)`, `.dead()`, `.stranded()` and more."""
        return AsyncOutbox(self._post, self._timeout)

    def state(self, agent_id: str) -> AsyncState:
        """Key–value data of an agent; at Kronvex, which has none, at the service of `state_url`."""
        self._wiring.check_state(self._state_wiring)
        return AsyncState(
            agent_id, self._state_wiring.link, self._state_transport, self._timeout, self._wiring.check_open
        )

    async def health(self) -> Health:
        """Ask the service how it is, once; a service that cannot be reached is an answer too, not an error."""
        self._wiring.check_open()
        ends = time.monotonic() + self._timeout
        try:
            health = await self._drive(flows.once(calls.health(), self._timeout))
        except KronmemError as error:
            health = Health(ok=False, status="unreachable", error=str(error))
        outbox, post = OutboxStatus(), self._post
        if post is not None:
            outbox = await aside(lambda: post.status(max(ends - time.monotonic(), 0.0)))
        return self._wiring.health(health, outbox)

    async def _run(self, call: Call[T], name: str = "") -> T:
        flow = exchange(call, self._wiring.link, self._timeout)
        return await self._drive(flow, name or call.name, call.agent_id, call.subject)

    async def _by_id(
        self, name: str, agent_id: str, memory_id: str, about: Callable[[str, str, Link, float], Flow[T]]
    ) -> T:
        link, timeout = self._wiring.link, self._timeout
        if self._post is None:
            flow = about(agent_id, memory_id, link, timeout)
        else:
            ask = partial(about, agent_id)
            flow = self._post.by_id(agent_id, memory_id, lambda known, left: ask(known, link, left), link, timeout)
        return await self._drive(flow, name, agent_id, None if name == "history" else memory_id)

    async def _drive(self, flow: Flow[T], name: str = "", agent_id: str | None = None, subject: object = None) -> T:
        self._awake(deliver=bool(name))  # asking for its health sends nothing else
        # blocking: loop_guard.check(name)
        return await adrive(self._wiring.tracer.traced(flow, name, agent_id, subject), self._transport)

    def _awake(self, *, deliver: bool = True) -> None:
        """Begin the delivery of memories left by an earlier process; a client that was closed does nothing more."""
        self._wiring.check_open()
        if deliver and self._post is not None and not self._post.looked:
            self._post.awake()

    def _flows(self, asked: Mapping[K, Call[T]]) -> dict[K, Flow[T]]:
        self._awake()
        link, traced = self._wiring.link, self._wiring.tracer.traced
        flows = {key: exchange(call, link, self._timeout) for key, call in asked.items()}
        return {key: traced(flows[key], call.name, call.agent_id, call.subject) for key, call in asked.items()}
