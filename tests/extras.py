"""Tests of a pack run where its framework is installed; elsewhere one skipped test says which did not, and why."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def without(module: str) -> list[str]:
    """The files that a folder's conftest leaves out: its tests where `module` is missing, else the one that says so."""
    return ["test_missing.py"] if find_spec(module) else ["test_[!m]*.py"]


class Lazy:
    """A module that is imported when a test first uses it: those that are collected and not run cost nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest asks every global of a test module whether it wraps a fixture
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
