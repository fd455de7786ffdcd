"""Collected only where AG2 1.x is missing: the gap shows in the report."""

from __future__ import annotations

import sys

import pytest


def test_the_pack_says_what_to_install() -> None:
    sys.modules.pop("kronmem.ag2", None)
    with pytest.raises(ImportError, match=r"pip install 'kronmem\[ag2\]'"):
        __import__("kronmem.ag2")


def test_the_rest_of_this_folder_needs_the_framework() -> None:
    pytest.skip("AG2 1.x is not installed: pip install 'kronmem[ag2]'")
