"""How many connections there are at once: when there are too many, the one that has been silent longest goes."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 500
"""Connections at a time: half of the 1,024 files that a process may usually open."""
SILENT_SECONDS = 30.0
"""How long a new connection may take to send its first request: as long as a body."""


class BoundedProtocol(H11Protocol):
    """uvicorn's own protocol, with an end to connections that ask nothing: uvicorn itself only counts them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn narrows it
        """Take the connection; make room for it if there is none."""
        super().connection_made(transport)
        self.last_received = self.loop.time()
        self._patience = self.loop.call_later(SILENT_SECONDS, self._leave_if_unused)
        if len(self.connections) > MOST:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Note when something was received."""
        self.last_received = self.loop.time()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        self._patience.cancel()
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Is it the client's turn: to ask, or to send the rest of its request?"""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body  # pyright: ignore[reportUnnecessaryComparison] -- None until the first request

    def _leave_if_unused(self) -> None:
        # Between two requests it is uvicorn's keep-alive that ends a connection: a second clock would end busy ones.
        if self.cycle is None:  # pyright: ignore[reportUnnecessaryComparison] -- None until the first request
            self.transport.close()

    def _make_room(self) -> None:
        others = cast("set[BoundedProtocol]", self.connections) - {self}
        idle = [other for other in others if other.idle and not other.transport.is_closing()]
        if idle:
            min(idle, key=lambda other: other.last_received).transport.close()
