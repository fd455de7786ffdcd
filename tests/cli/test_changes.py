"""The commands that change, delete and look back: keys, update, history, clear, erase, context, sessions, state."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from kronmem import Client
from kronmem.cli import options
from tests.cli.running import NOWHERE, lines, run
from tests.services import RawServer
from tests.services.raw import Action, respond

A = ("-a", "team")


def test_a_key_takes_the_place_of_its_former_memory() -> None:
    first = lines(run("remember", "Ada lives in Paris", *A, "--key", "city", "--role", "user", "--json"))[0]
    second = lines(run("remember", "Ada lives in Rome", *A, "--key", "city", "--json"))[0]
    assert (first["key"], first["role"]) == ("city", "user")
    assert [one["content"] for one in lines(run("list", *A, "--json"))] == ["Ada lives in Rome"]
    told = lines(run("history", first["id"], *A, "--json"))
    assert [(one["content"], one["superseded_by"]) for one in told] == [
        ("Ada lives in Rome", None),
        ("Ada lives in Paris", second["id"]),
    ]
    assert "superseded" in run("history", first["id"], *A).stdout
    assert len(lines(run("list", *A, "--history", "--json"))) == 2
    again = lines(run("remember", "Ada lives in Oslo", *A, "--supersedes", second["id"], "--json"))[0]
    assert again["key"] == "city"


def test_an_update_changes_only_the_fields_that_were_given() -> None:
    kept = lines(run("remember", "the port is 8080", *A, "--tag", "net", "--json"))[0]
    changed = lines(run("update", kept["id"], "the port is 9090", *A, "--type", "context", "--json"))[0]
    assert (changed["id"], changed["content"], changed["tags"]) == (kept["id"], "the port is 9090", ["net"])
    assert lines(run("update", kept["id"], *A, "--no-tags", "--pin", "--json"))[0]["tags"] == []
    assert lines(run("update", kept["id"], *A, "--unpin", "--ttl-days", "3", "--json"))[0]["expires_at"]
    assert "the port is 9090" in run("update", kept["id"], *A, "--metadata", '{"n": 1}').stdout
    assert len(lines(run("history", kept["id"], *A, "--json"))) == 2
    nothing = run("update", kept["id"], *A)
    assert (nothing.exit_code, "at least one field" in nothing.stderr) == (2, True)


def test_times_and_limits_bound_lists_recalls_and_contexts() -> None:
    for text in ("tea at five", "tea at six"):
        run("remember", text, *A)
    assert len(lines(run("list", *A, "--limit", "1", "--json"))) == 1
    assert len(lines(run("list", *A, "--since", "2020-01-01", "--json"))) == 2
    assert run("list", *A, "--until", "2020-01-01", "--json").stdout == ""
    assert lines(run("recall", "tea", *A, "--until", "2020-01-01", "--json")) == [[]]
    assert "tea at six" in run("context", *A).stdout
    assert "tea at six" in lines(run("context", "tea", *A, "--max-chars", "2000", "--json"))[0]["context"]
    assert lines(run("context", *A, "--since", "2999-01-01", "--json")) == [{"context": ""}]
    wrong = run("list", *A, "--since", "yesterday")
    assert (wrong.exit_code, "ISO 8601" in wrong.stderr) == (2, True)


def test_sessions_are_listed_with_their_counts() -> None:
    run("remember", "tea", *A, "--session", "monday")
    assert lines(run("sessions", *A, "--json")) == [[{"session_id": "monday", "count": 1}]]
    assert run("sessions", *A).stdout == "      1  monday\n"
    assert run("sessions", "-a", "taem").stderr == "No agent 'taem'. Did you mean team?\n"


def test_clear_may_stop_at_a_time_and_says_how_many() -> None:
    run("remember", "tea", *A)
    assert lines(run("clear", *A, "--before", "2020-01-01", "--yes", "--json")) == [{"deleted": 0}]
    assert run("clear", *A, "--yes").stdout == "Deleted 1.\n"


def test_erase_says_what_it_removed(tmp_path: Path) -> None:
    run("remember", "zanzibar", *A, "--key", "place")
    run("remember", "xylophone", *A, "--key", "place")
    run("state", "set", "theme", '"dark"', *A)
    assert run("erase", *A).exit_code == 2  # nobody can be asked
    gone = lines(run("erase", *A, "--yes", "--json"))[0]
    assert (gone["memories"], gone["history"], gone["state"], gone["complete"]) == (1, 1, 1, True)
    again = run("erase", *A, "--yes")
    assert again.stdout == "Erased: 0 memories, 0 former texts, 0 state, 0 receipts, 0 queued.\n"
    raw = b"".join(file.read_bytes() for file in (tmp_path / "home").iterdir())
    assert b"zanzibar" not in raw
    assert b"xylophone" not in raw


def test_state_is_read_and_changed_by_key() -> None:
    assert run("state", "set", "theme", '{"dark": true}', *A).stdout == "Stored theme.\n"
    assert lines(run("state", "get", "theme", *A)) == [{"dark": True}]
    assert run("state", "set", "n", "-", *A, stdin="5").exit_code == 0
    assert lines(run("state", "keys", *A, "--json")) == [["n", "theme"]]
    assert run("state", "keys", *A).stdout == "n\ntheme\n"
    assert lines(run("state", "delete", "n", *A, "--json")) == [{"deleted": "n"}]
    missing = run("state", "get", "n", *A)
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "kronmem state keys" in missing.stderr
    wrong = run("state", "set", "theme", "dark", *A)
    assert (wrong.exit_code, "text needs quotes of its own" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "said"),
    [("taem", "Did you mean team?"), ("TEAM", "Did you mean team?"), ("xyz", "There are: other, team")],
)
def test_an_unknown_agent_is_named_with_the_ones_like_it(typed: str, said: str) -> None:
    for agent in ("team", "other"):
        run("remember", "tea", "-a", agent)
    for words in (("list",), ("recall", "tea"), ("context",), ("state", "keys"), ("clear", "--yes")):
        ended = run(*words, "-a", typed)
        assert (ended.exit_code, ended.stderr) == (0, f"No agent {typed!r}. {said}\n"), words
    for words in (("forget", "some-id"), ("update", "some-id", "text"), ("history", "some-id")):
        ended = run(*words, "-a", typed)
        assert (ended.exit_code, said in ended.stderr) == (1, True), words


def test_names_of_agents_are_completed() -> None:
    for agent in ("team", "tea", "other"):
        run("remember", "x", "-a", agent)

    here, away = SimpleNamespace(params={}), SimpleNamespace(params={"url": NOWHERE})
    assert options.agent_names(here, "te") == ["tea", "team"]  # type: ignore[arg-type] # only its params are read
    assert options.agent_names(away, "te") == []  # type: ignore[arg-type] # the same


def test_a_queued_memory_has_an_exit_code_of_its_own() -> None:
    queued = run("remember", "tea", *A, "--url", NOWHERE)
    assert queued.exit_code == 3
    assert queued.stdout.startswith("Queued until the service is back (")
    (row,) = lines(run("outbox", "list", "--url", NOWHERE, "--json"))
    assert (row["kind"], row["content"], row["agent_id"]) == ("waiting", "tea", "team")
    flushed = run("outbox", "flush", "--timeout", "600", "--url", NOWHERE)  # nothing listens: it does not wait
    assert (flushed.exit_code, flushed.stdout) == (3, "1 of 1 left.\n")
    assert "cannot connect to http://127.0.0.1:9" in flushed.stderr
    here = run("outbox", "list")
    assert f"1 wait for {NOWHERE}: `kronmem outbox list --url {NOWHERE}` lists them." in here.stderr
    assert run("outbox", "retry", "--url", NOWHERE).stdout == "Queued 0 again.\n"
    assert run("outbox", "adopt").exit_code == 2
    assert run("outbox", "drop", row["id"], "--url", NOWHERE).exit_code == 2  # nobody can be asked
    assert run("outbox", "drop", row["id"], "--yes", "--url", NOWHERE).stdout == "Dropped.\n"
    gone = run("outbox", "drop", row["id"], "--yes", "--url", NOWHERE)
    assert (gone.exit_code, "kronmem outbox list" in gone.stderr) == (1, True)
    assert run("outbox", "list", "--url", NOWHERE).stderr == "Nothing waits.\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_flush_counts_no_refused_memory_as_delivered_and_names_it(form: tuple[str, ...]) -> None:
    down = threading.Event()
    down.set()

    def answer(_connection: int, _request: int) -> Action:
        later = respond(503, {"retry-after": "600"}, {"detail": "away"})
        return later if down.is_set() else respond(422, body={"detail": "no such word"})

    with RawServer(answer) as server:
        assert run("remember", "poison", *A, "--url", server.url).exit_code == 3
        down.clear()
        first = run("outbox", "flush", *form, "--url", server.url)
        second = run("outbox", "flush", *form, "--url", server.url)
    assert (first.exit_code, second.exit_code) == (1, 0)  # refused once: the second has nothing new to say
    if form:
        one, two = json.loads(first.stdout), json.loads(second.stdout)
        assert [(said["delivered"], said["left"], said["refused"]) for said in (one, two)] == [(0, 0, 1), (0, 0, 1)]
        assert ([row["content"] for row in one["newly_refused"]], two["newly_refused"]) == (["poison"], [])
    else:
        assert first.stdout.startswith(
            "Delivered 0; 1 refused, 1 of them now: `kronmem outbox list` says why.\npoison\n"
        )
        assert second.stdout == "Delivered 0; 1 refused, 0 of them now: `kronmem outbox list` says why.\n"


@pytest.mark.slow  # a command that finds nobody tries again before it queues
def test_rows_under_another_key_are_listed_and_adopted_by_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_URL", NOWHERE)
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-old")
    run("remember", "tea", *A)
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-new")
    run("remember", "milk", *A)
    assert [(one["kind"], one["content"]) for one in lines(run("outbox", "list", "--json"))] == [
        ("waiting", "milk"),
        ("other key", "tea"),
    ]
    shown = run("outbox", "list").stdout
    assert "other key" in shown
    assert "kv-" not in shown
    assert lines(run("outbox", "adopt", "--json")) == [{"adopted": 1}]
    assert {one["kind"] for one in lines(run("outbox", "list", "--json"))} == {"waiting"}


def test_rows_for_another_url_are_adopted_by_one_command() -> None:
    run("remember", "tea", *A, "--url", NOWHERE)
    other = "http://127.0.0.1:1"
    assert lines(run("outbox", "adopt", "--from", NOWHERE, "--url", other, "--json")) == [{"adopted": 1}]
    assert [json.loads(one)["url"] for one in run("outbox", "list", "--url", other, "--json").stdout.splitlines()] == [
        other
    ]


@pytest.mark.slow  # doctor imports every framework there is
def test_doctor_tells_how_far_the_vectors_of_a_model_are() -> None:
    done = threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if "first" in texts:
            done.set()
        return [[1.0, 0.5] for _ in texts]

    with Client(embed=embed) as client:
        client.remember("team", "first")
        assert done.wait(60)
    with Client() as client:
        client.remember("team", "second")
    (said,) = [one for one in lines(run("doctor", "--json"))[0]["checks"] if one["check"] == "vectors"]
    assert said["detail"].startswith("a function, 2 numbers: 1 of 2 memories; the others when a client")


@pytest.mark.slow  # doctor imports every framework there is
def test_doctor_sees_the_outbox_from_an_embedded_client_and_names_the_largest_agents() -> None:
    with Client() as client:
        client.remember_many("big", ["one", "two", "three"])
        client.remember("small", "one")
    run("remember", "tea", *A, "--url", NOWHERE)
    ended = run("doctor", "--json")
    said = {one["check"]: one for one in json.loads(ended.stdout)["checks"]}
    assert said["agents"]["detail"] == "2 with 4 memories; most: big (3), small (1)"
    assert (said["outbox"]["ok"], ended.exit_code) == (False, 1)
    assert f"kronmem outbox flush --url {NOWHERE}" in said["outbox"]["detail"]
