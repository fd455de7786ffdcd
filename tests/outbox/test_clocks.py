"""Clocks that are wrong: the age of a queued memory travels, not the time of its machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kronmem import TransportError
from kronmem.core.wire import Reply, Request
from kronmem.transport.local import LocalTransport, sqlite_service
from tests.outbox.services import ONCE, asked, change
from tests.shells import shell


class Gate(LocalTransport):
    """A service with a clock of its own, which can be out of reach."""

    shut = False

    def __init__(self, ahead: float = 0.0) -> None:
        super().__init__(lambda: sqlite_service(":memory:", now=lambda: time.time() + ahead))

    def send(self, request: Request) -> Reply:
        if self.shut:
            raise TransportError("out of reach", sent=False)
        return super().send(request)


class Borrowed:
    """The same service, which another client closes."""

    def __init__(self, gate: Gate) -> None:
        self.send = gate.send

    def close(self) -> None: ...


def opened(kind: str, gate: Gate, tmp_path: Path) -> Any:
    return shell(kind, "http://127.0.0.1:9", transport=gate, outbox=tmp_path / "o.db", retry=ONCE)


@pytest.mark.parametrize("ahead", [120.0, -120.0, 86_400.0])
def test_a_client_whose_clock_is_behind_does_not_bury_its_own_later_memory(
    kind: str, ahead: float, tmp_path: Path
) -> None:
    with opened(kind, Gate(ahead), tmp_path) as client:
        client.remember("ada", "Ada lives in Paris", key="city")
        client.remember_later("ada", "Ada lives in Rome", key="city")
        assert asked(client, "flush", 30.0) == 0
        assert [one.content for one in client.memories("ada")] == ["Ada lives in Rome"]


def test_a_memory_that_waited_is_still_older_than_one_that_did_not(kind: str, tmp_path: Path) -> None:
    gate = Gate(120.0)
    with opened(kind, gate, tmp_path) as client:
        gate.shut = True
        client.remember_later("ada", "Ada lives in Paris", key="city")
        change(tmp_path / "o.db", "UPDATE waiting SET created = created - 60")
        gate.shut = False
        with shell("sync", "http://127.0.0.1:9", transport=Borrowed(gate), outbox=False) as other:
            other.remember("ada", "Ada lives in Rome", key="city")
        assert asked(client, "flush", 30.0) == 0
        assert [one.content for one in client.memories("ada")] == ["Ada lives in Rome"]


def test_a_memory_queued_by_a_clock_of_1970_is_not_taken_by_a_clear_of_old_ones(kind: str, tmp_path: Path) -> None:
    gate, yesterday = Gate(), datetime.now(UTC) - timedelta(days=1)
    with opened(kind, gate, tmp_path) as client:
        gate.shut = True
        client.remember_later("ada", "tea")
        change(tmp_path / "o.db", "UPDATE waiting SET created = 100")
        with pytest.raises(TransportError):
            client.clear("ada", before=yesterday)
        assert asked(client, "pending") == 1
        gate.shut = False
        assert asked(client, "flush", 30.0) == 0
        assert client.clear("ada", before=yesterday) == 0
        assert [one.content for one in client.memories("ada")] == ["tea"]
