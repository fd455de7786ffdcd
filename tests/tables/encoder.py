"""all-MiniLM-L6-v2 from its weights alone: six layers of BERT, mean of the last, length one. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 128
BATCH = 32


class Encoder:
    """Texts to vectors, in float32: bfloat16 takes half the time, but a vector then depends on the batch it is in."""

    def __init__(self, folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        self._weights = {name.removeprefix("bert."): value.float() for name, value in weights.items()}
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()

    def pieces(self, word: str) -> int:
        """How many tokens a word is made of."""
        return len(self._tokenizer.encode(word, add_special_tokens=False).ids)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """A row of float16 for each text."""
        ids = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        vectors = np.empty((len(ids), WIDTH), np.float16)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors[batch] = self._forward([ids[at] for at in batch]).numpy()
        return vectors

    @torch.inference_mode()
    def _forward(self, batch: list[list[int]]) -> Tensor:
        longest = max(map(len, batch))
        ids = torch.tensor([one + [0] * (longest - len(one)) for one in batch])
        mask = torch.tensor([[1.0] * len(one) + [0.0] * (longest - len(one)) for one in batch])
        table = self._weights
        x = table["embeddings.word_embeddings.weight"][ids] + table["embeddings.position_embeddings.weight"][:longest]
        x = self._norm(x + table["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = torch.zeros(len(batch), 1, 1, longest).masked_fill(mask[:, None, None, :] == 0, -1e9)
        for layer in range(LAYERS):
            x = self._layer(x, hidden, f"encoder.layer.{layer}.")
        summed = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return functional.normalize(summed, dim=1)

    def _layer(self, x: Tensor, hidden: Tensor, name: str) -> Tensor:
        rows, length, _ = x.shape
        query, key, value = (
            self._linear(x, f"{name}attention.self.{part}").view(rows, length, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=hidden)
        seen = self._linear(seen.transpose(1, 2).reshape(rows, length, WIDTH), f"{name}attention.output.dense")
        x = self._norm(seen + x, f"{name}attention.output.LayerNorm")
        inner = functional.gelu(self._linear(x, f"{name}intermediate.dense"))
        return self._norm(self._linear(inner, f"{name}output.dense") + x, f"{name}output.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(x, (WIDTH,), weight, bias, 1e-12)
