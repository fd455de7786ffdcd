"""The metadata, held against the code: nothing is imported that is not declared, nothing declared that is not used."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from tests.test_layout import MODULES, PACKAGE, imports

PROJECT: dict[str, Any] = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
# Names that packages_distributions cannot know where the package is not installed, or knows two owners of.
OWNERS = {
    "autogen": "autogen",
    "psycopg": "psycopg",
    "agent_framework": "agent-framework-core",
}
ON_BEHALF = {"autogen-agentchat": {"autogen_core"}, "pydantic": {"pydantic_core"}}
"""Brought along by a package that cannot do without it and fixes its version."""
ONLY_IF_LOADED = {"opentelemetry", "fastembed"}
"""Never a requirement: imported only where it is loaded, or installed, already."""


def distribution(requirement: str) -> str:
    """The name in a requirement, as packaging normalises it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()  # type: ignore[index] # always matches


@lru_cache
def third_party(path: Path) -> set[str]:
    tops = {name.split(".")[0] for name in imports(path)}
    return tops - set(sys.stdlib_module_names) - {"kronmem"}


@lru_cache
def distributions() -> Mapping[str, list[str]]:
    """Which packages a module belongs to; every installed one is read for it, so not while tests are collected."""
    return packages_distributions()


def owner(module: str) -> str:
    known = OWNERS.get(module) or distributions().get(module, [module])[0]
    return distribution(known)


def declared() -> tuple[set[str], set[str]]:
    """The required packages, and those of the extras."""
    required = {distribution(one) for one in PROJECT["dependencies"]}
    return required, {distribution(one) for many in PROJECT["optional-dependencies"].values() for one in many}


def undeclared(path: Path, packages: set[str]) -> set[str]:
    brought = {module for package in packages for module in ON_BEHALF.get(package, ())}
    return {module for module in third_party(path) - brought - ONLY_IF_LOADED if owner(module) not in packages}


def packages(extra: str) -> set[str]:
    """The packages of an extra, and of the extras that it takes in."""
    found: set[str] = set()
    for one in PROJECT["optional-dependencies"][extra]:
        inner = re.match(r"kronmem\[(.*)\]", one)
        found |= set.union(*map(packages, inner[1].split(","))) if inner else {distribution(one)}
    return found


def test_each_pack_has_an_extra_and_the_newer_ones_are_in_dev_alone() -> None:
    newer = {"agent_framework": "agent-framework-core", "ag2": "ag2", "mcp": "mcp"}
    assert {name: packages(name) for name in newer} == {name: {package} for name, package in newer.items()}
    assert set(newer.values()) <= packages("dev")
    assert not set(newer.values()) & packages("all")
    assert {"autogen", "autogen-agentchat"} <= packages("all")


def test_every_import_is_declared_and_every_requirement_imported() -> None:
    required, extras = declared()
    assert not {f"{path.name}: {module}" for path in MODULES for module in undeclared(path, required | extras)}
    assert required <= {owner(module) for path in MODULES for module in third_party(path)}


def test_a_client_needs_no_extra_but_the_one_that_it_was_asked_for() -> None:
    required, _ = declared()
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0] in ("core", "transport", "outbox", "text", "errors.py", "client.py"):
            beyond = undeclared(path, required)
            assert beyond <= {"trio"}, f"{path.name} imports {beyond}"
            assert beyond <= set(PROJECT["optional-dependencies"])


def test_no_version_is_allowed_that_lets_somebody_in() -> None:
    """Starlette before 1.0.1 builds a path from the Host header, h11 before 0.16 takes any bytes for a chunk's end."""
    floors = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(PROJECT["optional-dependencies"]["server"]), re.M))
    assert tuple(map(int, floors["starlette"].split("."))) >= (1, 0, 1)
    assert tuple(map(int, floors["h11"].split("."))) >= (0, 16)
