"""`kronmem doctor`: checks of settings, installation and service, each with its fix."""

from __future__ import annotations

import os
import platform
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer
from pydantic import JsonValue

from kronmem import AgentInfo, AuthError, Client, ConfigError, KronmemError, settings
from kronmem.cli import connection, options, printing
from kronmem.cli.outbox import waiting

if TYPE_CHECKING:
    from kronmem.engine.store import Store

LARGEST = 3
"""So many agents are named: enough to find the one that has grown."""
FAMILY = ("autogen", "ag2", "pyautogen", "autogen-agentchat", "autogen-core", "autogen-ext", "agent-framework-core")
CLASSIC = ("autogen", "ag2", "pyautogen", "autogen-agentchat")
REPAIR = 'pip uninstall -y ag2 pyautogen autogen && pip install "autogen[openai]>=0.14.1,<1"'
VARIABLES = (
    *("KRONMEM_URL", "KRONMEM_API_KEY", "KRONVEX_API_KEY", "KRONMEM_HOME", "KRONMEM_AGENT", "KRONMEM_TRACING"),
    *("KRONMEM_RECALL_LOG", "KRONMEM_SERVE_KEY", "KRONMEM_SERVE_KEYS", "KRONMEM_SERVE_KEYS_FILE"),
)
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


def run(agent: str | None, url: str | None, db: str | None, json: bool) -> None:
    """Make every check, and print the findings; exit code 1 when something is broken."""
    with connection.reported():
        if url and db:
            raise ConfigError("--url and --db are two names for where to look: give one of them")
        if db:
            url = options.database(db).url
    with connection.connected(url) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # connecting has shown them
            chosen = settings.resolve(url, connection.key_for(url))
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
    for name in sorted(os.environ):
        near = get_close_matches(name, VARIABLES, 1, 0.8) if name.startswith(("KRONMEM", "KRONVEX")) else []
        if near and name not in VARIABLES:
            words = f'{name} is not read; if {near[0]} is meant: export {near[0]}="${name}"'
            yield Finding("variable", words, ok=False)


def _memory(client: Client, chosen: settings.Settings, agent: str | None) -> Iterator[Finding]:
    if chosen.scheme in ("postgresql", "postgres"):
        from kronmem.engine.postgres.schema import examine  # needs the extra, which the client has asked for

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
    yield from _service(client, agent, chosen)


def _start(chosen: settings.Settings) -> str:
    """The command that starts a service of this machine."""
    parts = urlsplit(chosen.url)
    here = parts.scheme == "http" and settings.is_loopback(parts.hostname or "")
    return f"; start one: kronmem serve --port {parts.port or 80}" if here else ""


def _service(client: Client, agent: str | None, chosen: settings.Settings) -> Iterator[Finding]:
    health = client.health()
    name = " ".join(part for part in (health.service, health.version) if part) or "the service"
    yield Finding(
        "service", f"{name} answers" if health.ok else f"{health.status}: {health.error}{_start(chosen)}", health.ok
    )
    if not health.ok:
        return
    try:
        found = client.agents()
    except KronmemError as error:
        key = "; run: export KRONMEM_API_KEY='the key of this service'" if isinstance(error, AuthError) else ""
        yield Finding("agents", f"{error}{key}", ok=False)
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
    """Agents of one name, as a race of processes leaves them at Kronvex; no server deletes the younger ones."""
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
    from kronmem.engine.sqlite.schema import is_older

    return is_older(str(path))


def _damaged(path: Path) -> Iterator[Finding]:
    """Memories that lists and recalls leave out because their rows cannot be read."""
    from kronmem.engine.sqlite.schema import damaged

    try:
        found = damaged(str(path))
    except KronmemError as error:
        yield Finding("database", str(error), ok=False)
        return
    if found:
        shown = ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
        yield Finding(
            "database", f"damaged and left out: {shown}; restore them: kronmem import your-export.jsonl", ok=False
        )


def _background(chosen: settings.Settings) -> Iterator[Finding]:
    """How far indexing and embedding are."""
    from kronmem.engine.embedding import progress

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
    """The memories that wait on this machine, for any url: a service may have been used before."""
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


# ── which AutoGen is installed, and whether it works: several distributions share the directory `autogen/` ───────


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


def installed(name: str) -> str | None:
    """The version of a distribution, None when it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """Those that are there, with their versions."""
    found = {name: installed(name) for name in names}
    return {name: version for name, version in found.items() if version}


def owners() -> list[str]:
    """The distributions that brought files of `import autogen`."""
    return [name for name in CLASSIC if _brings(name)]


def _brings(name: str) -> bool:
    try:
        files = metadata.files(name) or ()
    except metadata.PackageNotFoundError:
        return False
    return any(file.as_posix() == "autogen/__init__.py" for file in files)


def trouble(claims: list[str], works: Callable[[], str | None]) -> str | None:
    """The fault of classic AutoGen, in words; None when it is well or not there at all."""
    if len(claims) > 1:
        return (
            f"{' and '.join(claims)} share one directory; removing or updating either breaks the other. Run: {REPAIR}"
        )
    return works() if claims else None


def promised(found: Mapping[str, str]) -> list[str]:
    """pyautogen, whose newest releases bring no `import autogen` although it is installed for that."""
    return ["pyautogen"] if "pyautogen" in found else []


def lacking(found: Mapping[str, str]) -> str | None:
    """A part without which agents with a model cannot be made, in words; other models than OpenAI's need neither."""
    if "autogen" in found and not installed("openai"):
        return "autogen without openai: an agent with an OpenAI llm_config needs pip install 'kronmem[autogen]'"
    if "autogen-agentchat" in found and "autogen-ext" not in found:
        return "autogen-agentchat without autogen-ext, which has the models: pip install 'kronmem[agentchat]'"
    return None


def mcp_mismatch(found: Mapping[str, str]) -> str | None:
    """The MCP client that does not work with the installed major of mcp, in words; None when all do."""
    second = found.get("mcp", "0").partition(".")[0] == "2"
    if not second or "autogen-ext" not in found:
        return None
    return (
        f"AutoGen's McpWorkbench (autogen-ext {found['autogen-ext']}) cannot be imported with mcp {found['mcp']}: "
        "where you use it, run: pip install 'mcp<2'. `kronmem mcp` works with both"
    )


def imports(module: str) -> str | None:
    """Import it in a process of its own: the error's words, or None when it works."""
    code = f"import warnings; warnings.simplefilter('ignore'); import {module}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    lines = ran.stderr.strip().splitlines()
    return None if ran.returncode == 0 else (lines[-1] if lines else f"import {module} failed")
