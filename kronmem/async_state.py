"""AsyncState: the key–value data behind `client.state(agent_id)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from kronmem.core import inputs
from kronmem.core import state as flows
from kronmem.core.exchange import Flow, Link
from kronmem.transport.drive import AsyncTransport, adrive

T = TypeVar("T")


class AsyncState:
    """Key–value data of one agent. Any JSON value comes back exactly as it was set; None is no value."""

    def __init__(
        self, agent_id: str, link: Link, transport: AsyncTransport, timeout: float, check: Callable[[], None]
    ) -> None:
        self.agent_id = inputs.identifier(agent_id, "agent_id")
        self._link, self._transport, self._timeout, self._check = link, transport, timeout, check

    async def get(self, key: str, default: JsonValue = None) -> JsonValue:
        """The value under `key`, or `default` when there is none."""
        try:
            return await self._drive(flows.get(self.agent_id, key, self._link, self._timeout))
        except flows.Missing:
            return default

    async def set(self, key: str, value: JsonValue) -> None:
        """Store a JSON value under `key`, in place of an older one; None deletes the key."""
        if value is None:
            return await self.delete(key)
        return await self._drive(flows.put(self.agent_id, key, value, self._link, self._timeout))

    async def update(
        self, key: str, function: Callable[[JsonValue], JsonValue], default: JsonValue = None
    ) -> JsonValue:
        """Change the value under `key` in one step: `function` takes the value, or `default`, and returns the new one.

        It is called again when another writer was faster, so it should only compute; None deletes the key. The answer
        is the value stored. An error whose `sent` is true leaves open whether it was.
        """
        flow = flows.update(self.agent_id, key, function, default, self._link, self._timeout)
        return await self._drive(flow)

    async def delete(self, key: str) -> None:
        """Remove `key`; a key that is not there is no error."""
        try:
            return await self._drive(flows.delete(self.agent_id, key, self._link, self._timeout))
        except flows.Missing:
            return None

    async def keys(self) -> list[str]:
        """All keys, sorted."""
        return await self._drive(flows.keys(self.agent_id, self._link, self._timeout))

    async def _drive(self, flow: Flow[T]) -> T:
        self._check()
        return await adrive(flow, self._transport)
