"""The extra `semantic`: fastembed behind `embed=`. Its models cannot be fetched in a test, so its interface is played."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from kronmem import Client, ConfigError
from kronmem.semantic import local_embeddings


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"kronmem\[semantic\]"):
        local_embeddings()


def test_the_model_is_loaded_at_the_first_text_and_used_by_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class TextEmbedding:
        def __init__(self, model: str) -> None:
            made.append(model)

        def embed(self, texts: Iterable[str]) -> Iterator[list[float]]:
            return (([1.0, 0.0] if "sea" in text or "ocean" in text else [0.0, 1.0]) for text in texts)

    module = ModuleType("fastembed")
    module.__spec__ = ModuleSpec("fastembed", None)
    vars(module)["TextEmbedding"] = TextEmbedding
    monkeypatch.setitem(sys.modules, "fastembed", module)
    embed = local_embeddings("a-model")
    assert made == []
    assert [list(vector) for vector in embed(["the sea", "a hill"])] == [[1.0, 0.0], [0.0, 1.0]]
    with Client("sqlite://", embed=embed) as client:
        client.remember("alice", "She loves the ocean")
        assert client.recall("alice", "ocean")[0].content == "She loves the ocean"
    assert made == ["a-model"]
