"""Embeddings for the embedded engine by fastembed (extra `semantic`): local, no service; the model is fetched once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module, util
from typing import Protocol, cast

from kronmem.errors import ConfigError

MODEL = "BAAI/bge-small-en-v1.5"


class _Model(Protocol):
    """What is used of fastembed's TextEmbedding."""

    def embed(self, documents: list[str]) -> Iterable[Iterable[float]]: ...


def local_embeddings(model: str = MODEL) -> Callable[[Sequence[str]], Sequence[Sequence[float]]]:
    """Make an `embed=` from a fastembed model: `Client(embed=local_embeddings())`.

    The model is loaded at the first text, not here; where it is not on disk yet, fastembed fetches it then.
    """
    if util.find_spec("fastembed") is None:
        raise ConfigError("local embeddings need their extra: pip install 'kronmem[semantic]'")
    lock = threading.Lock()
    loaded: list[_Model] = []

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with lock:
            if not loaded:
                loaded.append(cast("_Model", import_module("fastembed").TextEmbedding(model)))
            return [[float(value) for value in vector] for vector in loaded[0].embed(list(texts))]

    return embed
