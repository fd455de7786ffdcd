"""The abilities of services, asked here alone: by the version in the header of a reply, or by a missing route. Pure.

A call of an ability bears its name, so `exchange` refuses it with an `UnsupportedError` where the service lacks it, and
the flows go the longer way then. Fields that an older service ignores or refuses are in no call of it: see `fitted`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from kronmem.api.rules import VERSION_HEADER
from kronmem.core.policy import has_no_route
from kronmem.errors import UnsupportedError

if TYPE_CHECKING:
    from kronmem.core.calls import MemoryChange
    from kronmem.core.wire import Asker, Call, Flow, Reply
    from kronmem.models import Memory

T = TypeVar("T")

Version = tuple[int, ...]


class Ability(NamedTuple):
    """Something that a kronmem service can do from a version on. Kronvex can do none of it."""

    words: str
    since: Version = (0, 2)


ABILITIES: dict[str, Ability] = {
    "get": Ability("reading one memory"),
    "history": Ability("the history of a memory"),
    "upsert": Ability("key= or supersedes="),
    "change": Ability("update of text, tags, metadata or lifetime"),
    "remember_many": Ability("storing many memories at once"),
    "restore": Ability("importing times and history"),
    "clear_part": Ability("clearing a part of an agent"),
    "erase": Ability("erasing an agent"),
    "state": Ability("state"),
    "options": Ability('exclude=, fill="profile", words of time and may_replace', since=(0, 3)),
}
"""By name, which is that of the calls that need it; "options" are in calls that have an older form."""


class Vendor(Protocol):
    """The vendor's own server, with all its habits: everything that the core knows of it."""

    ids: dict[str, str]
    """By agent the id under which the service keeps it, where that is known and not its name."""

    def wrote(self, reply: Reply) -> bool:
        """Is a reply by the vendor's own server?"""
        ...

    def received(self, reply: Reply) -> Reply:
        """A reply of a failure in the meaning that every service gives to its status and headers."""
        ...

    def misses_agent(self, reply: Reply) -> bool:
        """Does the service know no agent under the id in the path?"""
        ...

    def find_agent(self, call: Call[T], known: str | None, asker: Asker) -> Flow[str | None]:
        """The id of the agent of a call, made for a write; None: there is none. Under `known` it is there no more."""
        ...

    def drop_agent(self, agent_id: str) -> None:
        """An agent was deleted."""
        ...

    def prepared(self, call: Call[T], asker: Asker) -> Flow[Call[T]]:
        """The call as its server should get it, after the checks that it does not make itself."""
        ...

    def answer(self, call: Call[T], reply: Reply, asker: Asker) -> Flow[T]:
        """Read the reply to a call, and ask for more where it is not the answer."""
        ...

    def get(self, agent_id: str, memory_id: str, asker: Asker) -> Flow[Memory]:
        """Read one memory where no route does."""
        ...

    def update(self, agent_id: str, memory_id: str, change: MemoryChange, asker: Asker) -> Flow[Memory]:
        """Change pin or type of one memory."""
        ...

    def restore(self, agent_id: str, memory_id: str, asker: Asker) -> Flow[None]:
        """Bring a deleted memory back."""
        ...

    def after_fork(self) -> None:
        """Drop the look-ups of other threads, which a forked child does not have."""
        ...


@dataclass
class RemoteService:
    """One service and key as its replies have shown it; the clients of a process and their outbox share it."""

    vendor: Vendor
    version: Version | None = None
    """Of kronmem; None while no reply has shown one."""
    is_vendor: bool = False
    """A reply has shown that this is the vendor's own server."""
    missing: set[str] = field(default_factory=lambda: set[str]())
    """Abilities that a service of unknown version turned out to lack."""
    _header: str | None = None

    def learn(self, reply: Reply) -> None:
        """Note the kind of the service that a reply shows."""
        header = reply.headers.get(VERSION_HEADER)
        if header is None:
            self.is_vendor = self.is_vendor or (self.version is None and self.vendor.wrote(reply))
        elif header != self._header:
            self._header, self.version = header, _version(header)

    def has(self, ability: str) -> bool:
        """Has the service this ability? One that has shown neither version nor kind may have it."""
        if self.version is not None:
            return self.version >= ABILITIES[ability].since
        return not self.is_vendor and ability not in self.missing

    def require(self, call: Call[T], reply: Reply | None = None) -> None:
        """Refuse a call that the service cannot do, by its kind or by its reply."""
        if (ability := ABILITIES.get(call.name)) is None:
            return
        if reply is not None and self.version is None and has_no_route(reply):
            # A 404 in front of a service that has shown its version is a proxy's.
            self.missing.add(call.name)
        if not self.has(call.name):
            since = ".".join(map(str, ability.since))
            raise UnsupportedError(
                f"{ability.words} needs a kronmem service of version {since} or newer: this one cannot do it"
            )

    def fitted(self, call: Call[T], refused: bool = False) -> Call[T]:
        """The call in a form that the service can answer; `refused`: one of unknown version refused it as it is."""
        unknown = self.version is None and not self.is_vendor
        if call.older is None or (self.has("options") and not (refused and unknown)):
            return call
        path, body = call.older()
        return replace(call, path=path, body=body, older=None)

    def took_older(self, reply: Reply) -> None:
        """Note what a service of unknown version lacks, by its reply to the older form of a call that it refused."""
        if reply.status < 400 and self.version is None:
            self.missing.add("options")

    @property
    def repair_time(self) -> float:
        """Seconds that a queued memory needs at least, however hasty the client: a repair is several requests."""
        return 10.0 if self.is_vendor else 0.0


def _version(header: str) -> Version:
    numbers: list[int] = []
    for part in header.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers) or (0, 2)
