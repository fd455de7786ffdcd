"""A memory has one shape: every field that a client, a user or the command line knows is one that the service sends."""

from __future__ import annotations

import pytest

from kronmem import AgentInfo, Memory, Session
from kronmem.api.replies import AgentReply, PageReply, SessionReply, StoredReply
from kronmem.core.memory_json import WireMemory, WirePage

SENT = set(StoredReply.__annotations__)


def test_the_client_reads_only_fields_that_the_service_sends() -> None:
    assert set(WireMemory.model_fields) <= SENT
    assert set(WirePage.model_fields) <= set(PageReply.__annotations__)
    assert set(AgentInfo.model_fields) == set(AgentReply.__annotations__)
    assert set(Session.model_fields) == set(SessionReply.__annotations__)


def test_a_user_sees_what_the_client_reads() -> None:
    assert set(Memory.model_fields) - {"queued"} == set(WireMemory.model_fields) - {"superseded"}


def test_import_reads_all_that_export_writes() -> None:
    pytest.importorskip("typer")

    from kronmem.cli.export_format import MemoryLine
    from kronmem.cli.printing import FIELDS

    assert set(MemoryLine.model_fields) == set(FIELDS) <= SENT
