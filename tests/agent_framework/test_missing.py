"""Collected only where Agent Framework is missing: the gap shows in the report."""

from __future__ import annotations

import sys

import pytest


def test_the_pack_says_what_to_install() -> None:
    sys.modules.pop("kronmem.agent_framework", None)
    with pytest.raises(ImportError, match=r"pip install 'kronmem\[agent-framework\]'"):
        __import__("kronmem.agent_framework")


def test_the_rest_of_this_folder_needs_the_framework() -> None:
    pytest.skip("Agent Framework is not installed: pip install 'kronmem[agent-framework]'")
