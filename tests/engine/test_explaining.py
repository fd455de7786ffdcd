"""The explanation of a hit: its parts are all that its similarity is made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kronmem import Client, Hit
from tests.benchmarks import recall_sets


@pytest.fixture(scope="module")
def hits() -> Iterator[list[Hit]]:
    """What the questions of the everyday set find, in the same and in other words."""
    (pooled,) = recall_sets.pooled(recall_sets.everyday()[:2])
    with Client.local(":memory:") as client:
        for said in pooled.memories:
            client.remember("notes", said.content, said.memory_type, role=said.role)
        client.remember("notes", "The tram to the office takes twenty minutes", role="assistant")
        client.remember("notes", "How long does the tram take?", role="user")
        asked = ["how long is the tram to the office?", *(one.text for one in pooled.questions)]
        yield [hit for question in asked for hit in client.recall("notes", question)]


def test_a_hundred_hits_recompute_to_their_similarity(hits: list[Hit]) -> None:
    assert len(hits) >= 100
    for hit in hits:
        assert (parts := hit.explanation) is not None
        assert hit.similarity == round(min((parts.words + parts.meaning) * parts.speaker, 1.0), 4)


def test_words_meaning_and_speaker_all_occur_in_explanations(hits: list[Hit]) -> None:
    parts = [hit.explanation for hit in hits if hit.explanation]
    assert any(part.words and part.meaning for part in parts)
    assert any(not part.words and part.meaning for part in parts)
    assert {1.0, 0.75, 0.7} <= {part.speaker for part in parts}


def test_a_memory_that_fills_a_context_up_has_no_explanation() -> None:
    with Client.local(":memory:") as client:
        client.remember("a", "Tea is at five", "preference")
        assert "Tea is at five" in client.inject_context("a", "zebra crossings of Lisbon")
        assert client.recall("a", "when is tea?")[0].explanation is not None
