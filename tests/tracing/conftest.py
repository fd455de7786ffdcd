"""A recorder that listens during the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import OWNERS
from tests.services.in_process import served_in_process
from tests.tracing.recorder import PROVIDER, RECORDER, Recorder, installed


@pytest.fixture(scope="session")
def home() -> Iterator[str]:
    """The url of a service in this process; every test takes a key, and so a memory, of its own."""
    with served_in_process(OWNERS) as url:
        yield url


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """The spans of this test."""
    monkeypatch.delenv("KRONMEM_TRACING", raising=False)
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    RECORDER.begin()
    with installed(PROVIDER):
        yield RECORDER
