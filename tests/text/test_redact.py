"""The ready redaction: what has the shape of a secret leaves, everything else stays."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kronmem import Client, InvalidInputError, redact_secrets
from tests.outbox.services import NOBODY
from tests.shells import shell

HIDDEN = {
    "my card is 4111 1111 1111 1111, thanks": "my card is [card], thanks",
    "4111-1111-1111-1111": "[card]",
    "378282246310005 (amex)": "[card] (amex)",
    "write to ana.lopez+news@mail.example.co.uk.": "write to [email].",
    "use sk-proj-abcdEFGH1234567890abcd now": "use [key] now",
    "KRONVEX_API_KEY=kv-abcdefghijklmnopqrstuvwx": "KRONVEX_API_KEY=[key]",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "[key]",
    "aws AKIAIOSFODNN7EXAMPLE here": "aws [key] here",
    "password: hunter2!": "password: [key]!",
    "the api key is a1b2c3d4e5": "the api key is [key]",
    "Authorization: Bearer abc123def456": "Authorization: Bearer [key]",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123def456ghi": "[key]",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----": "[key]",
}
KEPT = [
    "order 4111 1111 1111 1112 has shipped",
    "0000 0000 0000 0000",
    "call +49 170 1234567 or 2026-11-16 10:00:00",
    "the token is invalid",
    "user@localhost and @mention",
    "User prefers concise answers",
    "version 3.11.7 at 127.0.0.1:8080, id 1234567890123",
    "the secret is out",
]


@pytest.mark.parametrize(("text", "clean"), HIDDEN.items())
def test_a_secret_leaves(text: str, clean: str) -> None:
    assert redact_secrets(text) == clean


@pytest.mark.parametrize("text", KEPT)
def test_everything_else_stays(text: str) -> None:
    assert redact_secrets(text) == text


@given(st.text())
def test_any_text_is_taken_and_a_second_time_changes_nothing(text: str) -> None:
    clean = redact_secrets(text)
    assert redact_secrets(clean) == clean


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 200_000,
        "1 " * 100_000,
        "a@" * 100_000,
        "eyJ" + "a." * 100_000,
        "-----BEGIN " * 20_000,
        "password=" * 20_000,
    ],
)
def test_hostile_text_is_taken_in_linear_time(hostile: str) -> None:
    assert isinstance(redact_secrets(hostile), str)


def test_nothing_that_was_redacted_is_on_disk_or_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Client(f"sqlite:///{tmp_path / 'm.db'}", redact=redact_secrets) as client:
        stored = client.remember("alice", "My card is 4111111111111111", metadata={"mail": "a@b.example"})
        assert stored.content == "My card is [card]"
        assert client.recall("alice", "card 4111111111111111")[0].content == "My card is [card]"
    assert all(b"4111111111111111" not in file.read_bytes() for file in tmp_path.iterdir())
    assert "4111111111111111" not in caplog.text


@pytest.mark.parametrize("left", ["", "  ", "\0", "\ud800", "x" * 40_000])
def test_text_that_a_redaction_left_unfit_is_refused_and_not_queued(kind: str, tmp_path: Path, left: str) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", redact=lambda text: left) as client:
        for call in (client.remember, client.remember_later):
            with pytest.raises(InvalidInputError):
                call("alice", "a secret")
        with pytest.raises(InvalidInputError):
            client.remember_many("alice", ["a secret"])
    assert not (tmp_path / "o.db").exists()
