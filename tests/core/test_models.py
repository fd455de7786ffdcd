"""Models that are made without pydantic's validation are the same as validated ones, in every slot that it has."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TypeVar

import pytest
from pydantic import BaseModel, ValidationError

from kronmem import Hit, Memory
from kronmem.core import memory_json
from kronmem.core.wire import Reply

M = TypeVar("M", bound=BaseModel)
MEMORY = {
    "id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d",
    "agent_id": "ada",
    "content": "Ada drinks green tea",
    "memory_type": "preference",
    "created_at": "2026-01-02T03:04:05Z",
    "metadata": {"cup": "blue"},
    "a_field_of_tomorrow": [1, 2],
}


def read() -> Hit:
    reply = {"query": "tea", "results": [{"memory": MEMORY, "similarity": 0.5, "confidence": 0.75}]}
    (hit,) = memory_json.hits(Reply(200, json.dumps(reply).encode()), "ada")
    return hit


def validated(made: M) -> M:
    return type(made).model_validate(dict(made))


def slots(model: BaseModel) -> dict[str, object]:
    return {name: getattr(model, name) for name in BaseModel.__slots__ if name != "__weakref__"}


def test_pydantic_has_the_slots_that_are_written() -> None:
    written = {"__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}
    assert set(BaseModel.__slots__) == written


@pytest.mark.parametrize("kind", [Memory, Hit])
def test_a_model_that_was_read_is_one_that_pydantic_would_have_made(kind: type[Memory | Hit]) -> None:
    hit = read()
    made = hit if kind is Hit else hit.memory
    theirs = validated(made)
    assert made == theirs
    assert repr(made) == repr(theirs)
    assert made.model_dump() == theirs.model_dump()
    assert made.model_dump(exclude_unset=True) == theirs.model_dump(exclude_unset=True)
    # pydantic counts unknown fields among those that were set; ours share one set of the known ones.
    known = theirs.model_fields_set - (made.model_extra or {}).keys()
    assert slots(made) == {**slots(theirs), "__pydantic_fields_set__": known}
    assert made.model_extra == ({"a_field_of_tomorrow": [1, 2]} if kind is Memory else {})


def test_a_model_that_was_read_can_be_copied_pickled_and_not_changed() -> None:
    hit = read()
    for other in (copy.copy(hit), copy.deepcopy(hit), pickle.loads(pickle.dumps(hit)), hit.model_copy()):
        assert other == hit
        assert slots(other) == slots(hit)
    assert hit.model_copy(update={"similarity": 0.25}).similarity == 0.25
    with pytest.raises(ValidationError, match="frozen"):
        hit.similarity = 1.0
