"""`kronmem doctor`: checks of settings, installation and service, each with its fix."""

from __future__ import annotations

import os
import platform
import stat
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from pydantic import JsonValue

from kronmem import AgentInfo, Client, ConfigError, KronmemError, settings
from kronmem.cli import connection, errors, options, printing
from kronmem.cli.api_keys import key_for
from kronmem.cli.autogen_versions import FAMILY, imports, lacking, mcp_mismatch, owners, promised, trouble, versions
from kronmem.cli.outbox import waiting

if TYPE_CHECKING:
    from kronmem.engine.store import Store

LARGEST = 3
"""So many agents are named: enough to find the one that has grown."""
LIBRARIES = ("httpx", "pydantic", "starlette", "uvicorn", "typer", "rich", "psycopg", "mcp")


@dataclass(frozen=True)
class Finding:
    """The result of one check: its state in words, and whether it is a problem."""

    what: str
    words: str
    ok: bool = True

    def fields(self) -> dict[str, JsonValue]:
        """In JSON."""
        return {"check": self.what, "ok": self.ok, "detail": self.words}


def doctor(
    agent: options.AnyAgent = None, url: options.Url = None, db: options.Db = None, json: options.Json = False
) -> None:
    """Check the settings, which AutoGen is installed and healthy, and whether the service or database answers.

    With --db it looks at a database before a server is started on it. Makes no table, stores nothing.
    Exits with 1 when something is broken. Keys and passwords are never shown.
    """
    with errors.told():
        if url and db:
            raise ConfigError("--url and --db are two names for where to look: give one of them")
        if db:
            url = options.database(db).url
    with connection.connected(url) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # connecting has told them
            chosen = settings.resolve(url, key_for(url))
        findings = [*_settings("--db" if db else "--url" if url else None, chosen), *_memory(client, chosen, agent)]
        findings += [*_outbox(client, chosen), *_autogen(), *_mcp(), *_versions()]
        if json:
            everything: list[JsonValue] = [finding.fields() for finding in findings]
            printing.as_json({"ok": all(finding.ok for finding in findings), "checks": everything})
        else:
            _print(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        printing.line(f"{'ok  ' if finding.ok else 'BAD '} {finding.what:<10} {finding.words}")
    bad = sum(not finding.ok for finding in findings)
    printing.line(f"{bad} problem{'s' if bad > 1 else ''}." if bad else "0 problems.")


def _settings(option: str | None, chosen: settings.Settings) -> Iterator[Finding]:
    if option:
        source = option
    elif os.environ.get("KRONMEM_URL"):
        source = "KRONMEM_URL"
    else:
        source = "KRONVEX_API_KEY" if os.environ.get("KRONVEX_API_KEY") else "the default"
    keyed = "with a key" if chosen.key else "without a key"
    where = printing.shown(chosen.url) if chosen.embedded else f"{chosen.url} {keyed}"
    yield Finding("memory", f"{where} (from {source})")
    yield Finding("home", str(settings.home()))


def _memory(client: Client, chosen: settings.Settings, agent: str | None) -> Iterator[Finding]:
    if chosen.scheme in ("postgresql", "postgres"):
        from kronmem.engine.postgres.check import examine  # needs the extra, which the client has asked for

        seen = examine(chosen.url)
        yield from (Finding(look.what, look.words, look.ok) for look in seen.looks)
        if not seen.ready:  # asking for memories would make the tables
            return
        yield from _background(chosen)
    if chosen.scheme == "sqlite" and chosen.path != ":memory:":
        path = Path(chosen.path)
        if not path.exists():  # asking for memories would make it
            yield Finding("database", f"{path} is made when the first memory is stored")
            return
        yield _file(path)
        if _is_older(path):  # asking for memories would migrate it
            words = "of an older kronmem; migrated at the first use: copy it first if you may want to go back"
            yield Finding("database", words)
            return
        yield from _damaged(path)
        yield from _background(chosen)
    yield from _service(client, agent)


def _service(client: Client, agent: str | None) -> Iterator[Finding]:
    health = client.health()
    name = " ".join(part for part in (health.service, health.version) if part) or "the service"
    yield Finding("service", f"{name} answers" if health.ok else f"{health.status}: {health.error}", health.ok)
    if not health.ok:
        return
    try:
        found = client.agents()
    except KronmemError as error:
        yield Finding("agents", str(error), ok=False)
        return
    count = sum(one.memory_count for one in found if agent in (None, one.name))
    words = f"{agent}: {count} memories" if agent else f"{len(found)} with {count} memories{_largest(found)}"
    yield Finding("agents", words)
    yield from _twins(found)


def _largest(found: list[AgentInfo]) -> str:
    """The agents that hold most, where there is a choice."""
    most = sorted((one for one in found if one.memory_count), key=lambda one: -one.memory_count)[:LARGEST]
    return f"; most: {', '.join(f'{one.name} ({one.memory_count})' for one in most)}" if len(found) > 1 and most else ""


def _twins(found: list[AgentInfo]) -> Iterator[Finding]:
    """Agents of one name, as a race of processes leaves them at Kronvex; nobody deletes the younger ones."""
    for name in dict.fromkeys(one.name for one in found):
        twins = [one for one in found if one.name == name]
        empty = [one.id for one in twins if not one.memory_count]
        if len(twins) > 1:
            words = f"{len(twins)} are named {name!r}; the oldest is used"
            yield Finding("agents", f"{words}; empty: {', '.join(empty)}" if empty else words)


def _file(path: Path) -> Finding:
    loose = _loose(path)
    advice = f"; others can read it: chmod 600 {path}" if loose else ""
    return Finding("database", f"{path}, {path.stat().st_size:,} bytes, mode {_mode(path)}{advice}", not loose)


def _is_older(path: Path) -> bool:
    from kronmem.engine.sqlite.check import is_older

    return is_older(str(path))


def _damaged(path: Path) -> Iterator[Finding]:
    """Memories that lists and recalls leave out because their rows cannot be read."""
    from kronmem.engine.sqlite.check import damaged

    try:
        found = damaged(str(path))
    except KronmemError as error:
        yield Finding("database", str(error), ok=False)
        return
    if found:
        shown = ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
        yield Finding("database", f"damaged and left out: {shown}; restore them from an export", ok=False)


def _background(chosen: settings.Settings) -> Iterator[Finding]:
    """How far indexing and embedding are."""
    from kronmem.engine.progress import progress

    store = _store(chosen)
    try:
        yield from (Finding(subject, words) for subject, words in progress(store))
    except KronmemError as error:
        yield Finding("index", str(error), ok=False)
    finally:
        store.close()


def _store(chosen: settings.Settings) -> Store:
    if chosen.scheme == "sqlite":
        from kronmem.engine.sqlite.store import SqliteStore

        return SqliteStore(chosen.path)
    from kronmem.engine.postgres.store import PostgresStore

    return PostgresStore(chosen.url)


def _loose(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def _mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def _outbox(client: Client, chosen: settings.Settings) -> Iterator[Finding]:
    """The memories that wait on this machine, whatever the url: a service may have been used before."""
    try:
        if chosen.embedded:
            yield _elsewhere(waiting())
            return
        pending, dead = client.outbox.pending(), len(client.outbox.dead())
        stranded, elsewhere = len(client.outbox.stranded()), client.outbox.elsewhere()
    except KronmemError as error:
        yield Finding("outbox", str(error), ok=False)
        return
    advice = "; `kronmem outbox list` says why, `kronmem outbox retry` sends them again" if dead else ""
    if stranded:
        advice += f"; {stranded} under another key: `kronmem outbox adopt` sends them with this one"
    for url, count in elsewhere.items():
        advice += f"; {count} for {printing.shown(url)}: `kronmem outbox adopt --from {url}` sends them here"
    yield Finding("outbox", f"{pending} waiting, {dead} refused{advice}", not (dead or stranded))


def _elsewhere(found: dict[str, int]) -> Finding:
    if not found:
        return Finding("outbox", "empty; embedded memory is written directly")
    words = ", ".join(f"{count} waiting for {printing.shown(url)}" for url, count in found.items())
    return Finding("outbox", f"{words}: `kronmem outbox flush --url {next(iter(found))}` delivers them", ok=False)


def _autogen() -> Iterator[Finding]:
    found = versions(FAMILY)
    said = ", ".join(f"{name} {version}" for name, version in found.items()) or "none installed"
    wrong = trouble(owners() or promised(found), lambda: imports("kronmem.autogen"))
    advice = wrong or lacking(found)
    yield Finding("autogen", f"{said}; {advice}" if advice else said, not wrong)


def _mcp() -> Iterator[Finding]:
    # Not broken by itself: autogen-ext may be there without any wish for its MCP client.
    if words := mcp_mismatch(versions(("autogen-ext", "mcp"))):
        yield Finding("mcp", words)


def _versions() -> Iterator[Finding]:
    own = versions(("kronmem",)).get("kronmem", "a checkout")
    others = ", ".join(f"{name} {version}" for name, version in versions(LIBRARIES).items())
    yield Finding("versions", f"kronmem {own}, Python {platform.python_version()} on {sys.platform}, {others}")
