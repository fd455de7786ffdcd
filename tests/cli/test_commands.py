"""The command line: what it prints, what it keeps, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from kronmem import Client, Retry
from kronmem.cli.app import PAGES, app
from kronmem.cli.doctor import lacking, mcp_mismatch, promised, trouble, versions
from kronmem.cli.printing import shown
from tests.cli.running import NOWHERE, run
from tests.services import KronvexServer


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def told(*texts: str, agent: str = "team") -> None:
    with Client() as client:
        for text in texts:
            client.remember(agent, text)


def test_remember_then_recall() -> None:
    stored = run("remember", "Deploys happen on Tuesdays", "--agent", "team", "--type", "decision", "--tag", "ops")
    assert (stored.exit_code, stored.stdout[:8]) == (0, "Stored (")
    assert run("remember", "Deploys happen on Tuesdays", "-a", "team").stdout.startswith("Already known (")
    found = run("recall", "when do we deploy?", "--agent", "team")
    first, second = found.stdout.splitlines()
    assert first.endswith("  Deploys happen on Tuesdays")
    assert "decision · just now · #ops" in second


def test_recall_shows_similarity_and_explains_it() -> None:
    told("Deploys happen on Tuesdays")
    plain, explained = (run("recall", "when do we deploy?", "-a", "team", *extra) for extra in ((), ("--explain",)))
    (hit,) = lines(run("recall", "when do we deploy?", "-a", "team", "--explain", "--json"))[0]
    parts = hit["explanation"]
    assert plain.stdout.startswith(f"{hit['similarity']:.2f}  Deploys")
    expected = f"{hit['similarity']} = (words {parts['words']} + meaning {parts['meaning']}) × speaker 1.0"
    assert [line.strip() for line in explained.stdout.splitlines()][2] == expected
    assert "explanation" not in lines(run("recall", "when do we deploy?", "-a", "team", "--json"))[0][0]


def test_recall_shows_the_passage_of_a_long_memory() -> None:
    filler = "Nothing much happened on that day and nobody wrote anything down about it. " * 20
    told(f"{filler}The vault code is kept by Miriam. {filler}")
    shown = run("recall", "who keeps the vault code?", "-a", "team").stdout.splitlines()[0]
    assert "Miriam" in shown
    assert len(shown) < 600


def test_content_and_questions_come_from_standard_input_too() -> None:
    kept = run("remember", "-", "-a", "team", "--json", stdin="Piped in\n")
    assert lines(kept)[0]["content"] == "Piped in"
    found = lines(run("recall", "-", "-a", "team", "--json", stdin="piped?"))[0]
    assert [hit["content"] for hit in found] == ["Piped in"]
    assert 0 < found[0]["confidence"] <= 1


def test_everything_that_belongs_to_a_memory_can_be_given() -> None:
    words = ["--session", "s1", "--ttl-days", "3", "--metadata", '{"n": 1}', "--tag", "a", "--tag", "b", "--json"]
    kept = lines(run("remember", "Full", "-a", "team", *words))[0]
    assert (kept["session_id"], kept["tags"], kept["metadata"]) == ("s1", ["a", "b"], {"n": 1})
    assert kept["expires_at"] is not None
    pinned = lines(run("remember", "Pinned", "-a", "team", "--pinned", "--json"))[0]
    assert pinned["pinned"] is True


def test_list_forget_clear_and_agents() -> None:
    told("one", "two")
    listed = lines(run("list", "-a", "team", "--json"))
    assert [memory["content"] for memory in listed] == ["two", "one"]
    assert "two" in run("list", "-a", "team").stdout
    assert run("forget", listed[0]["id"], "-a", "team").stdout == "Forgotten.\n"
    gone = run("forget", listed[0]["id"], "-a", "team")
    hint = "`kronmem list --agent team` shows the ids."
    assert (gone.exit_code, gone.stderr) == (1, f"{hint}\nkronmem: 404: Memory not found\n")
    assert run("agents").stdout == "      1  team\n"
    assert [agent["memory_count"] for agent in lines(run("agents", "--json", "--agent", "team"))[0]] == [1]
    assert lines(run("clear", "-a", "team", "--yes", "--json")) == [{"deleted": 1}]
    assert run("list", "-a", "team").stderr == "No memories.\n"


def test_clear_does_nothing_when_nobody_can_be_asked() -> None:
    told("stays")
    refused = run("clear", "-a", "team")
    assert (refused.exit_code, refused.stderr) == (2, "kronmem: stdin is not a terminal; pass --yes\n")
    assert len(lines(run("list", "-a", "team", "--json"))) == 1


@pytest.mark.parametrize("words", [("recall", "x", "-a", "a"), ("export",)])
def test_a_service_that_is_away_is_exit_code_1(words: tuple[str, ...]) -> None:
    ended = run(*words, "--url", NOWHERE)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "cannot connect to" in ended.stderr
    assert "kronmem doctor" in ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("recall", "x", "-a", "a", "--limit", "1000"),
        ("recall", "x", "-a", "a", "--url", "ftp://x"),
        ("remember", "  ", "-a", "a"),
        ("serve", "--port", "99999"),
        ("serve", "--key", "kv-of-this-test", "--host", "a..b"),
        ("serve", "--db", "postgresql://[x"),
        ("remember", "x", "-a", "a", "--metadata", "[" * 200_000),
    ],
)
def test_what_was_asked_for_wrongly_is_exit_code_2_and_one_sentence(words: tuple[str, ...]) -> None:
    ended = run(*words)
    assert ended.exit_code == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr


def test_standard_input_in_another_encoding_is_refused_with_the_fix() -> None:
    ended = CliRunner().invoke(app, ["remember", "-", "-a", "a"], input="café".encode("latin-1"))
    assert (ended.exit_code, "iconv" in ended.stderr) == (2, True)


def test_an_imported_time_without_a_date_in_utc_is_refused() -> None:
    line = {"content": "tea", "agent_id": "a", "created_at": "0001-01-01T00:00:00+14:00"}
    ended = run("import", "-", stdin=json.dumps(line))
    assert ended.exit_code == 1
    assert ended.stderr.endswith("line 1: a memory of a was not imported: created_at is out of range\n")
    assert lines(run("agents", "--json")) == [[]]


def test_what_a_memory_holds_cannot_command_the_terminal() -> None:
    told("\x1b]0;owned\x07 \x1b[31mred [bold]markup[/bold] \u202egnp.exe")
    shown = run("list", "-a", "team").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]markup[/bold]" in shown


def test_export_and_import_move_memories_and_do_so_once(tmp_path: Path) -> None:
    with Client() as client:
        client.remember("team", "Old", "preference", tags=["t"], metadata={"k": [1]}, session_id="s")
        client.remember("team", "Pinned", pinned=True)
        client.remember("other", "Expiring", ttl_days=9)
        kept = {m.content: m for name in ("team", "other") for m in client.memories(name)}
    out, there = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/there.db"
    assert run("export", "--output", str(out)).stderr == f"Exported 3 to {out}.\n"
    assert run("import", str(out), "--url", there).stdout == "Imported 3.\n"
    assert run("import", str(out), "--url", there).stdout == "Imported 0, 3 already there.\n"
    with Client(there) as client:
        moved = {m.content: m for name in ("team", "other") for m in client.memories(name)}
        assert [m.content for m in client.memories("team")] == ["Pinned", "Old"]
    for text, memory in kept.items():
        same = {"id", "memory_type", "tags", "metadata", "session_id", "pinned"}
        assert moved[text].model_dump(include=same) == memory.model_dump(include=same)
    before, after = kept["Expiring"].expires_at, moved["Expiring"].expires_at
    assert before is not None
    assert after is not None
    assert abs((before - after).total_seconds()) < 120


def test_a_backup_comes_back_after_everything_was_cleared() -> None:
    told("one", "two")
    backup = run("export").stdout
    run("clear", "-a", "team", "--yes")
    assert run("import", stdin=backup).stdout == "Imported 2.\n"
    assert [m["content"] for m in lines(run("list", "-a", "team", "--json"))] == ["two", "one"]


def test_memories_move_from_embedded_to_kronvex_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        client.remember("team", "Prefers tea over coffee", "preference", session_id="s", tags=["drinks"])
        client.remember("team", "The release train leaves on Thursdays", "decision")
    backup = run("export").stdout
    with KronvexServer() as server:
        monkeypatch.setenv("KRONMEM_API_KEY", server.key)
        assert run("import", "--url", server.url, stdin=backup).stdout == "Imported 2.\n"
        assert run("import", "--url", server.url, stdin=backup).stdout == "Imported 0, 2 already there.\n"
        back = run("export", "--url", server.url).stdout
    monkeypatch.delenv("KRONMEM_API_KEY")
    there = f"sqlite:///{tmp_path}/there.db"
    assert run("import", "--url", there, stdin=back).stdout == "Imported 2.\n"
    moved = {m["content"]: m for m in lines(run("list", "-a", "team", "--json", "--url", there))}
    kept = {m["content"]: m for m in map(json.loads, backup.splitlines()) if "content" in m}
    same = ("memory_type", "session_id", "tags", "metadata", "pinned")
    assert {text: [m[name] for name in same] for text, m in moved.items()} == {
        text: [m[name] for name in same] for text, m in kept.items()
    }


def test_an_import_that_stopped_half_way_goes_on() -> None:
    told("one", "two", "three")
    backup = run("export").stdout
    half = "".join(backup.splitlines(keepends=True)[3:])
    assert lines(run("import", "--agent", "copy", "--json", stdin=half))[0]["imported"] == 2
    assert lines(run("import", "--agent", "copy", "--json", stdin=backup))[0] == {
        "imported": 1,
        "already_there": 2,
        "expired": 0,
        "refused": 0,
        "state": 0,
    }


def test_import_takes_lines_with_little_in_them_and_leaves_out_what_is_over() -> None:
    text = '{"content": "bare", "id": "not-a-uuid"}\n\n{"content": "over", "expires_at": "2020-01-01T00:00:00Z"}\n'
    assert run("import", "-a", "team", stdin=text).stdout == "Imported 1, 1 expired.\n"


TOO_MUCH = {
    "a long tag": {"tags": ["t" * 256]},
    "a blank text": {"content": " "},
    "a session with a slash": {"session_id": "a/b"},
    "a long type": {"memory_type": "t" * 51},
    "reserved metadata": {"metadata": {"kronmem": {"id": "x"}}},
    "large metadata": {"metadata": {"x": "y" * 1_000_001}},
}


@pytest.mark.parametrize("text", ["{", '{"content": 5}', "[]", '{"contents": "x"}', *TOO_MUCH])
def test_a_line_that_cannot_be_imported_is_named_with_its_reason_and_the_others_are_imported(text: str) -> None:
    bad = json.dumps({"content": "x", "agent_id": "team", **TOO_MUCH[text]}) if text in TOO_MUCH else text
    good = [f'{{"content": "fine {number}", "agent_id": "team"}}\n' for number in range(150)]
    ended = run("import", stdin="".join([*good[:42], f"{bad}\n", *good[42:]]))
    assert (ended.exit_code, ended.stdout) == (1, "Imported 150, 1 refused.\n")
    assert len(re.findall(r"line 43[: ].*was not imported: .+", ended.stderr)) == 1
    assert len(run("list", "-a", "team", "--json").stdout.splitlines()) == 150


def test_a_line_of_no_agent_is_named_before_anything_is_stored() -> None:
    ended = run("import", stdin='{"content": "fine", "agent_id": "team"}\n{"content": "no agent"}\n')
    assert (ended.exit_code, "line 2" in ended.stderr) == (2, True)
    assert run("list", "-a", "team", "--json").stdout == ""


@pytest.mark.parametrize("promised", [0, 1, 3])
def test_an_export_with_more_or_fewer_lines_than_its_end_says_is_refused(promised: int) -> None:
    ends = f'{{"kronmem_export": 2, "memories": {promised}, "state": 0}}\n'
    two = '{"content": "one", "agent_id": "team"}\n{"content": "two", "agent_id": "team"}\n'
    ended = run("import", stdin='{"kronmem_export": 2}\n' + two + ends)
    assert (ended.exit_code, "2 are there" in ended.stderr) == (2, True)
    assert run("list", "-a", "team", "--json").stdout == ""
    assert run("import", stdin=two + ends).stdout == "Imported 2.\n"


@pytest.mark.slow
def test_doctor_names_what_is_broken_and_never_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_URL", NOWHERE)
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-very-secret")
    ended = run("doctor", "--json")
    assert ended.exit_code == 1
    said = {one["check"]: one for one in lines(ended)[0]["checks"]}
    assert said["service"]["ok"] is False
    assert said["memory"]["detail"] == f"{NOWHERE} with a key (from KRONMEM_URL)"
    assert said["outbox"]["detail"] == "0 waiting, 0 refused"
    assert said["autogen"]["ok"] is True
    assert "Python 3." in said["versions"]["detail"]
    assert "kv-very-secret" not in ended.output


@pytest.mark.slow
def test_doctor_takes_the_key_for_the_service_that_url_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-secret")
    monkeypatch.setenv("HTTPS_PROXY", NOWHERE)  # nothing leaves this machine
    ended = run("doctor", "--url", "https://api.kronvex.io", "--json")
    found = {one["check"]: one["detail"] for one in json.loads(ended.stdout)["checks"]}
    assert found["memory"] == "https://api.kronvex.io with a key (from --url)"
    assert "kv-secret" not in ended.output


@pytest.mark.slow
def test_doctor_names_memories_that_wait_for_another_key_or_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_URL", NOWHERE)
    for url, key in ((NOWHERE, "kv-old"), ("http://127.0.0.1:1", "kv-new")):
        with Client(url, api_key=key, retry=Retry(attempts=1)) as client:
            client.remember_later("alice", "text")
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-new")
    (said,) = [one for one in lines(run("doctor", "--json"))[0]["checks"] if one["check"] == "outbox"]
    assert "1 under another key" in said["detail"]
    assert "1 for http://127.0.0.1:1: `kronmem outbox adopt --from http://127.0.0.1:1`" in said["detail"]
    assert not said["ok"]


@pytest.mark.slow  # imports AutoGen once more
def test_doctor_knows_which_mcp_client_does_not_fit_the_installed_major() -> None:
    assert mcp_mismatch({"mcp": "1.30.0", "autogen-ext": "0.7.5"}) is None
    assert mcp_mismatch({"mcp": "2.3.0"}) is None
    assert mcp_mismatch({"autogen-ext": "0.7.5"}) is None
    words = mcp_mismatch({"mcp": "2.3.0", "autogen-ext": "0.7.5"}) or ""
    assert "McpWorkbench (autogen-ext 0.7.5) cannot be imported with mcp 2.3.0" in words
    assert "pip install 'mcp<2'" in words


@pytest.mark.slow  # it imports AutoGen in a process of its own
def test_doctor_is_content_with_a_fresh_installation_and_not_with_a_readable_file(tmp_path: Path) -> None:
    told("one")
    said = run("doctor").stdout
    assert said.endswith("0 problems.\n")
    unfit = mcp_mismatch(versions(("mcp", "autogen-ext")))
    assert [line for line in said.splitlines() if " mcp  " in line] == ([f"ok   mcp        {unfit}"] if unfit else [])
    (tmp_path / "home" / "memory.db").chmod(0o644)
    ended = run("doctor")
    assert ended.exit_code == 1
    assert "chmod 600" in ended.stdout


def test_an_autogen_without_its_model_or_its_modules_is_named() -> None:
    assert promised({"autogen": "0.14.1"}) == []
    assert promised({"pyautogen": "0.10.0"}) == ["pyautogen"]
    assert lacking({}) is lacking({"autogen-agentchat": "0.7.5", "autogen-ext": "0.7.5"}) is None
    assert "pip install 'kronmem[agentchat]'" in str(lacking({"autogen-agentchat": "0.7.5"}))


def test_two_distributions_in_one_directory_are_trouble_even_while_they_work() -> None:
    assert trouble([], lambda: "not asked") is None
    assert trouble(["autogen"], lambda: None) is None
    assert trouble(["autogen"], lambda: "ImportError: damaged") == "ImportError: damaged"
    assert "pip uninstall -y ag2 pyautogen autogen" in str(trouble(["autogen", "ag2"], lambda: None))


def test_without_its_libraries_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from kronmem.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "the kronmem command needs its extra: pip install 'kronmem[cli]'\n"


COMMANDS = {
    *("remember", "recall", "list", "context", "update", "history", "forget", "clear", "erase", "agents", "sessions"),
    *("state get", "state set", "state delete", "state keys"),
    *("outbox list", "outbox flush", "outbox drop", "outbox retry", "outbox adopt"),
    *("export", "import", "serve", "mcp", "demo", "doctor"),
}
WITHOUT_AGENT = {"outbox flush", "outbox drop", "outbox retry", "outbox adopt"}
"""They are about one service and all its agents."""


def named(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from named(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_there_are_these_commands_and_each_takes_agent_url_and_json() -> None:
    assert set(named(typer.main.get_command(app))) == COMMANDS
    for name in sorted(COMMANDS):
        shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
        wanted = {"--agent", "--url", "--json"} - ({"--agent"} if name in WITHOUT_AGENT else set())
        wanted -= {"--json"} if name == "mcp" else set()
        assert not {option for option in wanted if option not in shown}, name


@pytest.mark.parametrize("name", ["", "state", "outbox", *sorted(COMMANDS)])
def test_h_is_help_and_a_page_of_it_fits_a_screen(name: str) -> None:
    short, long = (CliRunner().invoke(app, [*name.split(), option], terminal_width=80) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert len(short.stdout.splitlines()) <= 40
    assert not name or name in ("state", "outbox") or f"Example: kronmem {name}" in short.stdout
    assert max(map(len, short.stdout.splitlines())) <= 80


MEMORY = (
    "content id agent_id memory_type session_id tags metadata created_at updated_at said_at expires_at pinned role key "
    "superseded_by access_count"
)


def documented(name: str) -> set[str]:
    """The keys that the help page of a command names."""
    shape = PAGES[name][1].replace("a memory's fields", MEMORY.replace(" ", ", "))
    found = re.fullmatch(r"\[?\{(.*?)\}\]?( a line)?", re.sub(r": \[.*?\]", "", shape))
    assert found, shape
    return set(found[1].split(", "))


def test_the_json_of_each_command_has_the_shape_of_its_help_page(tmp_path: Path) -> None:
    def shape(name: str, *words: str, code: int = 0, stdin: str | None = None) -> Any:
        ended = run(*name.split(), *words, "--json", stdin=stdin)
        assert ended.exit_code == code, ended.output
        said = lines(ended)[0]
        one = said[0] if isinstance(said, list) else said
        named = documented(name)
        assert named - {"…"} <= set(one) if "…" in named else named == set(one), name
        return one

    agent, away = ("-a", "team"), ("--url", NOWHERE)
    kept = shape("remember", "Deploys happen on Tuesdays", *agent, "--session", "s")["id"]
    assert shape("recall", "when do we deploy?", *agent)["id"] == kept
    assert "explanation" in lines(run("recall", "when do we deploy?", *agent, "--explain", "--json"))[0][0]
    for words in (("list",), ("context",), ("update", kept, "Deploys happen on Mondays"), ("history", kept)):
        shape(*words, *agent)
    for words in (("agents",), ("sessions", *agent), ("state set", "k", "1", *agent), ("state delete", "k", *agent)):
        shape(*words)
    shape("import", stdin=run("export").stdout)
    for words in (("forget", kept, *agent), ("clear", *agent, "--yes"), ("erase", *agent, "--yes")):
        shape(*words)
    run("remember", "waits", *agent, *away)
    waiting = shape("outbox list", *away)["id"]
    for name in ("outbox retry", "outbox adopt"):
        shape(name, *away)
    shape("outbox flush", *away, code=3)
    shape("outbox drop", waiting, "--yes", *away)


def test_a_help_page_loads_no_client() -> None:
    code = (
        "import atexit, sys; from kronmem.cli import main\n"
        "def loaded(): print([one for one in sys.modules if one.startswith('kronmem.') and '.cli' not in one])\n"
        "atexit.register(loaded); main()"
    )
    for words in ((), ("recall",), ("export",), ("serve",)):
        ran = subprocess.run([sys.executable, "-c", code, *words, "--help"], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "[]")


def test_the_environment_names_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_AGENT", "team")
    assert run("remember", "Deploys happen on Tuesdays").exit_code == 0
    assert [one["agent_id"] for one in lines(run("list", "--json"))] == ["team"]
    assert run("list", "-a", "other").stderr == "No agent 'other'. There are: team\n"
    told("one", agent="other")  # what is about all agents stays about all of them
    assert len(lines(run("agents", "--json"))[0]) == 2
    assert {one["agent_id"] for one in map(json.loads, run("export").stdout.splitlines()) if "content" in one} == {
        "team",
        "other",
    }


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ada:secret@db:5432/memory?password=secret", "postgresql://db:5432/memory"),
        ("postgresql://u:secret@/db?host=/tmp", "postgresql:///db"),
        ("http://u:secret@h/x?k=secret", "http://h/x"),
        ("sqlite:////home/ada@work/m.db", "sqlite:////home/ada@work/m.db"),
        ("/home/ada/m.db", "/home/ada/m.db"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert shown(url) == expected
