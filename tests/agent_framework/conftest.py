"""The pack is an extra: where Agent Framework is not installed, its tests are not collected."""

from __future__ import annotations

from tests.extras import without

collect_ignore_glob = without("agent_framework")
