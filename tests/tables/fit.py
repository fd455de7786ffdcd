"""Fit the rows: the normalised sum of a text's rows shall be the encoder's vector of the text. Needs torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from kronmem.engine.terms import STOPWORDS, tokens
from kronmem.engine.word_vectors import SIZE, number_class, spelled
from tests.tables.projection import Projection

EPOCHS = 5
BATCH = 1024
RATE = 0.02
FORGOTTEN = 0.1
"""So many words of a sentence are left out at random, so that no row relies on its usual company."""
STEPS = 6.0
"""A row's average part in steps of a byte: fine enough (cosine 0.998) and small when compressed."""
CLASSES = tuple(dict.fromkeys(number_class(digits) for digits in ("1", "22", "333", "4444", "55555", "1999")))
_SEED = 0


def rows(words: list[str], word_vectors: np.ndarray, texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    """A row for each word, then one for each of `CLASSES`, as float.

    A word that no sentence has keeps the row it starts with: that points where it should, and of a gradient that is
    nothing but rounding errors Adam makes whole steps, others on each machine.
    """
    torch.manual_seed(_SEED)
    torch.set_num_threads(1)  # with several the sums differ from run to run
    project = Projection.of(vectors)
    number = {word: at for at, word in enumerate((*words, *CLASSES))}
    bags = [[number[w] for t in tokens(text) for w in spelled(t, number.__contains__)] for text in texts]
    targets = np.concatenate([project(vectors), project(word_vectors)])
    spread = Counter(at for bag in bags for at in set(bag))
    start = _start(words, project(word_vectors), spread, len(bags))
    fitted = _trained(start, bags + [[at] for at in range(len(words))], targets)
    unseen = [at for at in range(len(words)) if not spread[at]]
    fitted[unseen] = start[unseen]
    return fitted


def _start(words: list[str], vectors: np.ndarray, spread: Counter[int], sentences: int) -> np.ndarray:
    """The words' own vectors, weighted by how rare they are: `spread` counts the sentences that have a word."""
    rarity = np.array([np.log(sentences / (1 + spread[at])) for at in range(len(words) + len(CLASSES))])
    weight = np.clip(rarity / np.log(sentences), 0.1, 1)
    weight[[at for at, word in enumerate(words) if word in STOPWORDS]] *= 0.05
    unknown = np.zeros((len(CLASSES), SIZE))
    return (np.concatenate([vectors, unknown]) * weight[:, None]).astype(np.float32)


def _trained(start: np.ndarray, bags: list[list[int]], targets: np.ndarray) -> np.ndarray:
    known = [at for at, bag in enumerate(bags) if bag]
    wanted = torch.tensor(targets[known].astype(np.float32))
    lengths = np.array([len(bags[at]) for at in known])
    ends = np.cumsum(lengths)
    flat = np.concatenate([bags[at] for at in known])
    table = torch.nn.EmbeddingBag(*start.shape, mode="sum", sparse=True)
    table.weight.data = torch.tensor(start)
    optimiser = torch.optim.SparseAdam(list(table.parameters()), lr=RATE, betas=(0.9, 0.99))
    chance = np.random.RandomState(_SEED)
    steps = EPOCHS * (len(known) // BATCH)
    for step, batch in enumerate(_batches(len(known), chance)):
        said = np.concatenate([flat[ends[at] - lengths[at] : ends[at]] for at in batch])
        kept = chance.rand(len(said)) > FORGOTTEN
        begins = np.concatenate([[0], np.cumsum(lengths[batch])[:-1]])
        counts = np.add.reduceat(kept.astype(np.int64), begins)
        sums = table(torch.tensor(said[kept]), torch.tensor(np.concatenate([[0], np.cumsum(counts)[:-1]])))
        loss = 1 - (functional.normalize(sums + 1e-9, dim=1) * wanted[batch]).sum(1).mean()
        optimiser.param_groups[0]["lr"] = RATE * (1 - step / steps) + 1e-4
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return table.weight.detach().numpy()


def _batches(count: int, chance: np.random.RandomState) -> list[np.ndarray]:
    orders = [chance.permutation(count) for _ in range(EPOCHS)]
    return [order[at : at + BATCH] for order in orders for at in range(0, count - BATCH, BATCH)]


def quantised(table: np.ndarray) -> np.ndarray:
    """One scale for all rows, so that adding them needs no other."""
    scale = STEPS / np.sqrt((table**2).mean())
    return np.clip(np.rint(table * scale), -127, 127).astype(np.int8)
