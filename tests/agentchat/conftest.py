"""The pack is an extra: where AutoGen 0.4+ is not installed, its tests are not collected."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("autogen_agentchat") and find_spec("autogen_ext") else ["test_*.py"]
