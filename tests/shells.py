"""One face for both shells: the tests ask it in plain calls, it asks the client in its own way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from inspect import iscoroutine
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from kronmem import AsyncClient, Client

SHELLS = ("sync", "asyncio", "trio")


class Blocking:
    """Asks a blocking object and turns its iterators into lists."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self._ask(found) if callable(found) else self.wrap(found)

    def _ask(self, method: Any) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            return list(answer) if isinstance(answer, Iterator) else self.wrap(answer)

        return ask

    def wrap(self, answer: Any) -> Any:
        return Blocking(answer) if type(answer).__name__ in ("AgentMemory", "State") else answer


class Awaiting(Blocking):
    """Asks an awaiting object from outside its event loop."""

    def __init__(self, inner: Any, portal: BlockingPortal) -> None:
        super().__init__(inner)
        self.portal = portal

    def _ask(self, method: Any) -> Any:
        async def run(args: Any, options: Any) -> Any:
            answer = method(*args, **options)
            if isinstance(answer, AsyncIterator):
                return [one async for one in answer]
            return await answer if iscoroutine(answer) else answer

        return lambda *args, **options: self.wrap(self.portal.call(run, args, options))

    def wrap(self, answer: Any) -> Any:
        bound = type(answer).__name__ in ("AsyncAgentMemory", "AsyncState", "AsyncOutbox")
        return Awaiting(answer, self.portal) if bound else answer


@contextmanager
def shell(kind: str, *args: Any, **options: Any) -> Iterator[Any]:
    """A client of one kind behind the common face, closed at the end."""
    if kind == "sync":
        with Client(*args, **options) as client:
            yield Blocking(client)
        return
    with start_blocking_portal(kind) as portal:
        client = AsyncClient(*args, **options)
        try:
            yield Awaiting(client, portal)
        finally:
            portal.call(client.close)
