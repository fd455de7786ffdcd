"""Where a client goes and with which key: argument, then environment, then embedded."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, ConfigError, InsecureUrlWarning, KronmemError
from kronmem.settings import default_file, home, is_loopback, resolve
from tests.services import KronvexServer, RawServer
from tests.services.raw import respond
from tests.shells import shell

KEY = "kv-extremely-secret"


def decided(url: str | None = None, api_key: str | None = None, **env: str) -> tuple[str, str | None]:
    found = resolve(url, api_key, env)
    return found.url, found.key.get_secret_value() if found.key else None


def test_nothing_configured_is_embedded_in_the_users_data_directory() -> None:
    found = resolve(None, None, {"KRONMEM_HOME": "/data/k"})
    assert (found.embedded, found.scheme, found.path) == (True, "sqlite", "/data/k/memory.db")
    assert home({"XDG_DATA_HOME": "/x"}) == Path("/x/kronmem")
    assert default_file({"KRONMEM_HOME": "h"}) == Path("h/memory.db")


def test_the_argument_beats_the_environment() -> None:
    env = {"KRONMEM_URL": "http://env.example", "KRONVEX_API_KEY": KEY}
    assert decided("http://arg.example", **env) == ("http://arg.example", None)
    assert decided(**env) == ("http://env.example", None)
    assert decided(KRONVEX_API_KEY=KEY) == ("https://api.kronvex.io", KEY)


def test_a_key_goes_only_where_it_belongs() -> None:
    ours = {"KRONMEM_URL": "https://team.example", "KRONMEM_API_KEY": "k1", "KRONVEX_API_KEY": "k2"}
    assert decided(**ours) == ("https://team.example", "k1")
    assert decided("https://team.example/", **ours) == ("https://team.example", "k1")
    assert decided("https://api.kronvex.io", **ours) == ("https://api.kronvex.io", "k2")
    assert decided("https://evil.example", **ours) == ("https://evil.example", None)
    assert decided("https://team.example:444", **ours) == ("https://team.example:444", None)
    assert decided("https://kronvex.io.evil.example", **ours) == ("https://kronvex.io.evil.example", None)
    assert decided("https://evil.example", "given", **ours) == ("https://evil.example", "given")


@pytest.mark.parametrize(
    ("url", "key", "env"),
    [
        (None, None, {"KRONMEM_API_KEY": KEY}),
        (None, KEY, {}),
        ("https://api.kronvex.io", None, {}),
        ("http://", None, {}),
        ("ftp://x", None, {}),
        ("memory", None, {}),
        ("http://x:99999", None, {}),
        ("http://a..b", None, {}),
        (f"http://{'a' * 64}.example", None, {}),
        (f"http://user:{KEY}@x", None, {}),
        ("http://x?a=b", None, {}),
        ("sqlite://host/file.db", None, {}),
        ("sqlite:/data/memory.db", None, {}),
        ("sqlite:file.db", None, {}),
        ("sqlite:", None, {}),
        ("http://x", f"{KEY}\nX-Evil: 1", {}),
        ("http://x", f"{KEY}é", {}),
        ("http://x", f"{KEY} x", {}),
    ],
)
def test_what_cannot_work_is_refused_without_showing_the_key(
    url: str | None, key: str | None, env: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(url, key, env)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite://", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///relative/file.db", "relative/file.db"),
        ("sqlite:////absolute/file.db", "/absolute/file.db"),
        ("sqlite:////a%20b/c.db", "/a b/c.db"),
    ],
)
def test_sqlite_urls_are_read_as_everywhere(url: str, path: str) -> None:
    assert resolve(url, None, {}).path == path


def test_the_default_file_is_where_the_environment_says_to_the_letter() -> None:
    assert resolve(None, None, {"KRONMEM_HOME": "/tmp/x%41 ü?#"}).path == "/tmp/x%41 ü?#/memory.db"


def test_a_key_over_plain_http_to_another_machine_warns() -> None:
    with pytest.warns(InsecureUrlWarning, match="plain http"):
        Client("http://memory.example", api_key=KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Client("http://memory.example")
        Client("https://memory.example", api_key=KEY)
        for host in ("127.0.0.1", "localhost", "[::1]"):
            Client(f"http://{host}:7070", api_key=KEY)
    assert not is_loopback("127.0.0.1.evil.example")


def test_the_key_is_nowhere_but_on_the_wire(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with RawServer([respond(200, body={"results": []}), respond(401, body={"detail": "no"})]) as server:
        with shell(kind, server.url, api_key=KEY) as client:
            client.recall("alice", "a very private question")
            assert server.requests[0].headers["x-api-key"] == KEY
            with pytest.raises(KronmemError) as caught:
                client.recall("alice", "a very private question")
            shown = [repr(client.inner), str(client.inner), repr(vars(client.inner)), caplog.text]
            shown += ["".join(traceback.format_exception(caught.value)), repr(client.agent("a").inner)]
            assert not any(KEY in text for text in shown)
            assert "private question" not in caplog.text
            assert "POST /api/v1/agents/alice/recall: 200" in caplog.text
            with pytest.raises(Exception, match=r"."):
                pickle.dumps(client.inner)


def test_a_refused_key_is_a_typed_error(kind: str) -> None:
    with KronvexServer() as server, shell(kind, server.url, api_key="kv-wrong") as client:
        with pytest.raises(KronmemError, match="401: Invalid or revoked API key"):
            client.agents()


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
def test_a_timeout_must_be_a_positive_number(timeout: Any) -> None:
    with pytest.raises(ConfigError):
        Client("http://x", timeout=timeout)


def test_a_view_with_another_deadline_shares_everything_and_closes_nothing() -> None:
    with RawServer([respond(200, body={"results": []})]) as server, Client(server.url) as client:
        with client.with_timeout(3.0) as view:
            assert view.recall("alice", "question") == []
        assert copy.copy(client).recall("alice", "question") == []
        assert client.agent("alice").with_timeout(1.0).recall("question") == []
        assert server.connections == 1


def test_embeddings_are_for_the_embedded_engine_only() -> None:
    with pytest.raises(ConfigError, match="embedded engine only"):
        Client("http://x", embed=lambda texts: [[0.0] for _ in texts])


def test_redaction_comes_before_everything(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with RawServer([respond(201, body={"id": "m", "content": "x"})]) as server:
        with shell(kind, server.url, redact=lambda text: text.replace("4111", "[card]")) as client:
            client.remember("alice", "my card is 4111", metadata={"note": ["4111"]}, tags=["4111"])
        sent = server.requests[0].content.decode()
    assert "4111" not in sent
    assert sent.count("[card]") == 3
    assert "4111" not in caplog.text


def test_the_password_of_a_database_is_in_no_repr() -> None:
    found = resolve("postgresql://u:secret@h/db", None, {})
    assert "secret" not in repr(found)
