"""What a provider's prompt cache can reuse of a chat with memory, in all four packs."""

from __future__ import annotations

import pytest

from tests.benchmarks.prompt_cache import measure
from tests.packs.chats import CHATS
from tests.packs.frameworks import missing
from tests.packs.test_frameworks import SLOW, no_litter  # noqa: F401 -- a fixture

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("pack", [pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in CHATS])
def test_a_prompt_cache_reuses_all_that_stood_before_the_block(pack: str) -> None:
    if gone := missing(pack):
        pytest.skip(f"{gone} not installed")
    found = measure(pack)
    assert found.block_tokens > 0
    assert found.system_same
    assert found.before_newest
    assert found.all_before_reused
    assert found.share >= found.without - 0.2  # the block itself, and the words that stood behind it
