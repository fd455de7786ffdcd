"""The words of the code, held: one name for one thing, docstrings that state instead of asking."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.test_layout import MODULES, PACKAGE


def test_a_class_name_stands_for_one_thing() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    assert not {name: places for name, places in found.items() if len(places) > 1}
