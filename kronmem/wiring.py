"""How a client is put together: settings, transport, outbox, redaction. No I/O; transports open on first use."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast
from urllib.parse import quote
from weakref import WeakValueDictionary

from pydantic import SecretStr
from typing_extensions import Unpack

from kronmem import settings, tracing
from kronmem.api import rules
from kronmem.core import calls, flows, inputs
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Event, Link
from kronmem.core.inputs import ChangeOptions, ReadFilters, Redact, WriteOptions, redacted
from kronmem.core.policy import Breaker, Retry
from kronmem.core.wire import Call
from kronmem.errors import ConfigError, FanOutError, InvalidInputError, KronmemError
from kronmem.kronvex import Kronvex
from kronmem.models import Fill, Health, Hit, Memory
from kronmem.outbox.writer import OutboxStatus, OutboxWriter
from kronmem.text import time_ranges
from kronmem.text.time_ranges import TimeRange
from kronmem.transport.drive import CLOSED, AsyncTransport, Transport

if TYPE_CHECKING:
    from kronmem.transport.http1 import Target
    from kronmem.transport.httpx import HttpxTransport, Injected
    from kronmem.transport.local import LocalTransport

T = TypeVar("T")
K = TypeVar("K", int, str)

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

log = logging.getLogger("kronmem")

_services: WeakValueDictionary[tuple[str, bytes], RemoteService] = WeakValueDictionary()
_naming = threading.Lock()


def _child() -> None:
    global _naming
    _naming = threading.Lock()  # one that another thread held at the fork would never be released
    for service in list(_services.values()):
        service.vendor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_child)


@dataclass(frozen=True)
class StoreIdentity:
    """Equal for two clients of the same url or file with the same key.

    A database in RAM, and a transport passed in, are the same store only as the same object.
    """

    address: str = field(repr=False)  # a database's url may hold a password
    key: SecretStr | None
    transport: int | None


class Wiring:
    """The decisions behind one client, shared by every view of it."""

    def __init__(
        self,
        url: str | Path | None,
        api_key: str | None,
        timeout: float,
        retry: Retry,
        redact: Redact | None,
        embed: Embed | str | None,
        transport: Transport | AsyncTransport | HttpxTransport | None,
    ) -> None:
        self.settings = settings.resolve(url, api_key)
        if embed is not None and not self.settings.embedded:
            raise ConfigError("embed= works with the embedded engine only; this service makes its own embeddings")
        if not isinstance(retry, Retry):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            raise ConfigError("retry must be a Retry: Client(retry=Retry(attempts=3))")
        if redact is not None and not callable(redact):
            raise ConfigError("redact must be a function of a text, such as kronmem.redact_secrets")
        self.timeout, self.closed = inputs.timeout(timeout), False
        self._given = transport
        breaker = Breaker(self._changed, address=settings.address_of(self.settings.url))
        self.link = Link(time.monotonic, random.random, self._service(), retry, breaker)
        if self.settings.embedded:
            self.link.most_hits = rules.MAX_HITS
        self._redact = redact
        self._embed = _encoder(embed)
        self.tracer = tracing.Tracer(self.settings.url, self.redacted)

    def _service(self) -> RemoteService:
        """One per service and key in this process: clients and the outbox share all that its replies have shown."""
        if self.settings.embedded or self._given is not None:  # a transport of the caller's own may go anywhere
            return RemoteService(Kronvex(log.warning), rules.VERSION_NUMBER if self.in_process else None)
        key = self.settings.key.get_secret_value() if self.settings.key else ""
        shared = RemoteService(Kronvex(log.warning))
        with _naming:
            return _services.setdefault((self.settings.url, hashlib.sha256(key.encode()).digest()), shared)

    @property
    def in_process(self) -> bool:
        """Whether the engine of this process answers, and no transport that was passed in."""
        return self.settings.embedded and self._given is None

    def store_identity(self, transport: object) -> StoreIdentity:
        """The store that a client reaches through `transport`, comparable with that of other clients."""
        own = transport if self._given is None else self._given
        if self._given is not None or self.settings.path == ":memory:":
            return StoreIdentity(self.settings.url, self.settings.key, id(own))
        file = os.path.realpath(self.settings.path) if self.settings.path else None
        return StoreIdentity(file or self.settings.url, self.settings.key, None)

    @staticmethod
    def local_url(path: str | Path | None) -> str:
        """The url of an embedded database: the default file, a path, or ":memory:"."""
        return f"sqlite:///{quote(str(settings.default_file() if path is None else path))}"

    def __repr__(self) -> str:
        """Where it goes to, never with which key."""
        where = self.settings.url if self.settings.scheme in ("http", "https") else self.settings.scheme
        return f"url={where!r}, timeout={self.timeout}"

    # ── transports ───────────────────────────────────────────────────────────────────────────────────────────────

    def transport(self) -> Transport:
        """The blocking way to the service."""
        if isinstance(self._given, Transport):
            return self._given
        if self.settings.embedded:
            return self._local()
        from kronmem.transport.http1 import Target

        target = Target(self.settings.url, self.settings.key)
        if self._given is not None:
            return self._injected(target)
        from kronmem.transport.pools import HttpTransport

        return HttpTransport(target)

    def async_transport(self) -> AsyncTransport:
        """The awaiting way to the service."""
        if isinstance(self._given, AsyncTransport):
            return self._given
        if self.settings.embedded:
            return self._local()
        from kronmem.transport.http1 import Target

        target = Target(self.settings.url, self.settings.key)
        if self._given is not None:
            return self._injected(target)
        from kronmem.transport.pools import AsyncHttpTransport

        return AsyncHttpTransport(target)

    def _injected(self, target: Target) -> Injected:
        from kronmem.transport.httpx import Injected

        return Injected(target, cast("HttpxTransport", self._given))

    def _local(self) -> LocalTransport:
        from kronmem.transport.local import open_postgres, open_sqlite

        if self.settings.scheme != "sqlite":
            return open_postgres(self.settings.url, embed=self._embed)
        return open_sqlite(self.settings.path, embed=self._embed)

    def post(self, outbox: str | Path | Literal[False] | None) -> OutboxWriter | None:
        """The way into the outbox: the default file, that file, or none; an embedded engine needs none."""
        if outbox is False or self.settings.embedded:
            return None
        path = settings.home() / "outbox.db" if outbox is None else outbox
        key = self.settings.key.get_secret_value() if self.settings.key else ""
        place = (str(path), self.settings.url, key, self.transport)
        return OutboxWriter(*place, self.link.breaker, self.timeout, self.link.service)

    def needed(self, post: OutboxWriter | None) -> OutboxWriter:
        """The outbox that remember_later cannot do without."""
        if post is None:
            raise ConfigError("remember_later needs the outbox that outbox=False switched off")
        return post

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def draft(
        self,
        agent_id: str,
        content: str,
        memory_type: str,
        memory_id: str | None = None,
        supersedes: str | None = None,
        may_replace: bool = False,
        **options: Unpack[WriteOptions],
    ) -> calls.Draft:
        """Check and redact a memory about to be stored, and give it the id that every attempt will carry."""
        client_id = inputs.uuid(memory_id) if memory_id is not None else str(uuid.uuid4())
        own_id = memory_id is not None
        once = {"own_id": own_id, "may_replace": may_replace}
        checked = calls.draft(agent_id, client_id, content, memory_type, supersedes=supersedes, **once, **options)
        return checked if self._redact is None else checked.changed(self.redacted)

    def drafts(
        self, agent_id: str, contents: Iterable[str], memory_type: str, **options: Unpack[WriteOptions]
    ) -> list[calls.Draft]:
        """Check and redact many memories that share everything but their text."""
        options["tags"] = inputs.checked_tags(options.get("tags", ()))
        return [
            self.draft(agent_id, content, memory_type, **options) for content in inputs.strings(contents, "contents")
        ]

    def change(self, **options: Unpack[ChangeOptions]) -> calls.MemoryChange:
        """Check and redact the changes to a memory."""
        changed = calls.change(**options)
        return changed if self._redact is None else changed.redacted(self.redacted)

    def exported(self, memories: Iterable[Memory]) -> Iterator[list[Memory]]:
        """Redact memories about to be restored, the oldest first, in requests of a bounded size."""
        # A listing is newest first, and a batch was stored at one time.
        kept = inputs.strings(memories, "memories", of="memories")[::-1]
        if not all(isinstance(one, Memory) for one in kept):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            raise InvalidInputError("memories must be a list of Memory, as client.memories() gives them")
        for one in kept:  # before anything is sent
            inputs.uuid(one.id)
        kept.sort(key=_created)
        for part in flows.batches(list(map(calls.restorable, kept))):
            yield list(part) if self._redact is None else [calls.redacted(one, self.redacted) for one in part]

    def recall(
        self,
        agent_id: str,
        query: str,
        limit: int,
        threshold: float | None,
        count_access: bool = True,
        exclude: Iterable[str] = (),
        fill: Fill = False,
        **filters: Unpack[ReadFilters],
    ) -> Call[list[Hit]]:
        """Check and redact a question."""
        within, most = calls.memory_filter(**filters), self.link.most_hits
        query = self.redacted(query)
        return calls.recall(
            agent_id,
            query,
            limit,
            within,
            threshold,
            most=most,
            count_access=count_access,
            exclude=exclude,
            fill=fill,
            told=_time_range(query, within),
        )

    def inject_context(
        self,
        agent_id: str,
        query: str,
        limit: int,
        max_chars: int | None,
        exclude: Iterable[str] = (),
        fill: Fill = True,
        **filters: Unpack[ReadFilters],
    ) -> Call[str]:
        """Check and redact the question that a context is made for."""
        within, most = calls.memory_filter(**filters), self.link.most_hits
        query = query if inputs.blank(query) else self.redacted(query)
        time_range = _time_range(query, within)
        return calls.inject_context(
            agent_id, query, limit, within, max_chars, most=most, fill=fill, exclude=exclude, told=time_range
        )

    def check_open(self) -> None:
        """Refuse a call of a client that was closed, for every transport."""
        if self.closed:
            raise ConfigError(CLOSED)

    def check_state(self, where: Wiring) -> None:
        """Kronvex keeps no state: say so before anything is sent."""
        if where.settings.kronvex:
            raise ConfigError(
                "Kronvex keeps no state: pass state_url= (a kronmem or BotWire service, or sqlite:///file.db)"
            )

    def redacted(self, text: str) -> str:
        """The text after the user's own redaction."""
        return text if self._redact is None else redacted(self._redact, text)

    def health(self, health: Health, outbox: OutboxStatus) -> Health:
        """Add the breaker and the outbox of this client to the answer of the service, or to its absence."""
        known = {"pending": outbox.pending, "stranded": outbox.stranded, "outbox_error": outbox.error}
        return health.model_copy(update={"breaker": self.link.breaker.state, **known})

    def _changed(self, state: str) -> None:
        tracing.note(Event("kronmem.breaker", {"kronmem.breaker.state": state}))
        if state == "open":
            log.warning("circuit breaker open for %s: calls fail at once until it answers again", self.link.address)
        elif state == "closed":
            log.warning("circuit breaker closed: %s answers again", self.link.address)


def _encoder(embed: Embed | str | None) -> Embed | None:
    if isinstance(embed, str):
        from kronmem.semantic import named

        return named(embed)
    if embed is not None and not callable(embed):
        raise ConfigError('embed must be "minilm" or a function from texts to vectors')
    return embed


def _created(memory: Memory) -> float:
    created = inputs.moment(memory.created_at, "created_at")
    return created.timestamp() if created else 0.0


def _time_range(query: str, within: calls.MemoryFilter) -> TimeRange | None:
    """The range that the words of time in a question mean here and now, unless the caller gives one."""
    if within.since is not None or within.until is not None or not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- refused by the call
        return None
    return time_ranges.find(query, datetime.now(UTC).astimezone().replace(tzinfo=None))


def settled(done: dict[K, T], failed: dict[K, KronmemError]) -> dict[K, T]:
    """All results, or the error that carries the partial ones."""
    if failed:
        first = next(iter(failed.values()))
        message = f"{len(failed)} of {len(done) + len(failed)} calls failed; the first: {first}"
        raise FanOutError(
            message, partial=cast("Mapping[str, object]", done), causes=cast("Mapping[str, KronmemError]", failed)
        ) from first
    return done
