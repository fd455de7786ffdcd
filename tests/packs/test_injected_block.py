"""The injected block and the question it answers."""

from __future__ import annotations

import pytest

from kronmem import Hit, InvalidInputError, Memory
from kronmem.packs.block import (
    MAX_QUESTION_CHARS,
    as_question,
    clean_words,
    fence_context,
    fitting,
    is_block,
    render_block,
)
from kronmem.packs.checks import check_limits, check_prefix, check_read_from
from kronmem.text.fence import MAX_BLOCK_CHARS


def hit(content: str, agent_id: str = "ada", **metadata: str) -> Hit:
    memory = Memory(id="m", agent_id=agent_id, content=content, memory_type="fact", metadata=dict(metadata))
    return Hit(memory=memory, similarity=0.5, confidence=0.5)


def test_five_long_memories_fit_and_a_hundred_are_bounded() -> None:
    long = hit("tea " * 1000)
    assert render_block([long] * 5, "ada").count("(fact)") == 5
    block = render_block([long] * 100, "ada")
    assert len(block) <= MAX_BLOCK_CHARS
    assert block.count("(fact)") == 5
    assert block.endswith("</memory>")


def found(*similarities: float, standing: int = 0) -> list[Hit]:
    notes = [Hit(memory=Memory(id=f"s{n}", agent_id="ada", content="x"), standing=True) for n in range(standing)]
    others = enumerate(similarities)
    return [
        *notes,
        *(Hit(memory=Memory(id=f"h{n}", agent_id="ada", content="x"), similarity=value) for n, value in others),
    ]


def test_standing_notes_take_one_place_together_and_weak_hits_none() -> None:
    assert [hit.memory.id for hit in fitting(found(0.9, 0.8, 0.7, standing=4), 3)] == [
        "s0",
        "s1",
        "s2",
        "s3",
        "h0",
        "h1",
    ]
    assert len(fitting(found(0.9, 0.8, 0.7, standing=4), 1)) == 5
    assert len(fitting(found(0.8, 0.3, 0.1), 5)) == 2
    assert len(fitting(found(0.14, 0.1, standing=1), 5)) == 1
    assert len(fitting(found(0.14, 0.1), 5, weak=True)) == 2


def test_what_is_listed_for_its_time_is_shown_whole() -> None:
    assert len(fitting(found(*[0.0] * 7, standing=1), 5)) == 8


def test_a_block_is_told_from_other_text() -> None:
    assert is_block(render_block([hit("likes tea")], "ada/monday"))
    assert not is_block("likes tea")
    assert render_block([], "ada") == ""


def test_with_several_agents_each_memory_tells_its_own() -> None:
    block = render_block([hit("likes tea"), hit("tea is free", "company", speaker="bob")], "ada", named=True)
    assert "from ada) likes tea" in block
    assert "from bob of company) tea is free" in block


def test_a_context_is_fenced_once() -> None:
    block = fence_context("likes tea", "ada")
    assert is_block(block)
    assert fence_context(block, "bob") == block
    assert fence_context("", "ada") == ""


def test_words_lose_blocks_and_what_no_store_takes() -> None:
    block = render_block([hit("likes tea")], "ada")
    assert clean_words(f"{block}\nWhich\x00 tea\ud800? ") == "Which tea?"
    assert clean_words(block) == ""


def test_a_long_question_keeps_its_ends() -> None:
    question = as_question("begin " + "x" * 50_000 + " end")
    assert len(question) <= MAX_QUESTION_CHARS
    assert (question[:5], question[-3:]) == ("begin", "end")
    assert as_question("x" * MAX_QUESTION_CHARS) == "x" * MAX_QUESTION_CHARS


@pytest.mark.parametrize(
    "arguments", [(0, 2.0), (101, 2.0), (True, 2.0), ("5", 2.0), (5, 2.0, 1.5), (5, 2.0, -0.1), (5, 2.0, "x")]
)
def test_limits_that_no_recall_accepts_are_refused_at_once(arguments: tuple[int, float]) -> None:
    with pytest.raises(InvalidInputError):
        check_limits(*arguments)


def test_prefixes_and_read_from_are_checked() -> None:
    check_limits(5, 2.0, 0.5)
    assert check_prefix("team-7_") == "team-7_"
    assert check_read_from(["bob", "ada", "bob"]) == ("bob", "ada")
    for bad in ("a b", "x" * 41, "ä"):
        with pytest.raises(InvalidInputError):
            check_prefix(bad)
    for read_from in ("company", ["a/b"], [""], [None]):
        with pytest.raises(InvalidInputError):
            check_read_from(read_from)  # type: ignore[arg-type] # callers may not be typed
