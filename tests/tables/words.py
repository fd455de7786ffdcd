"""Make kronmem/engine/words.table, the word vectors that ship: `python -m tests.tables.words --help`.

Needs torch, safetensors, tokenizers, numpy and pyyaml, and two sources, both checked by hash (tests/tables/sources.py):

    --weights FOLDER  model.safetensors, vocab.txt and tokenizer.json of sentence-transformers/all-MiniLM-L6-v2
    --wordnet FOLDER  src/yaml of Open English WordNet

Each word is encoded by itself; the rows are then fitted so that the sum of a text's rows points where the encoder puts
the text, over WordNet's examples and definitions and templates filled with common words. No benchmark's text is used.
Encoding 260,000 texts takes about thirteen minutes of one core, the rest one; `--cache FOLDER` keeps the vectors for the
next time. `--check` compares the result with the table that ships instead of writing it: the same words, and a mean
cosine of at least 0.999 a row. With OMP_NUM_THREADS=1 a machine makes the same file each time, with two threads all but
a byte or so of it; a processor that rounds the encoder's sums in another way moves some parts of rare words by one step.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kronmem.engine import word_vectors

if TYPE_CHECKING:
    import numpy as np

    from tests.tables.encoder import Encoder

SHIPPED = Path(word_vectors.__file__).with_name("words.table")
LEAST = 0.999
KEPT_AS = "float32"
"""Part of the names of kept vectors: change it when the encoder's vectors change, so that older ones are left alone."""


def build(options: argparse.Namespace) -> bytes:
    """The table as a file."""
    import numpy as np

    from tests.tables import fit, sources, texts
    from tests.tables.encoder import Encoder

    sources.check_weights(options.weights)
    encoder = Encoder(options.weights)
    synsets = sources.read_wordnet(options.wordnet)
    chosen = texts.gather(synsets, sources.vocabulary(options.weights), encoder.pieces)
    sets = {"examples": chosen.examples, "definitions": chosen.definitions, "templates": chosen.templates}
    vectors = np.concatenate([_encoded(encoder, name, found, options.cache) for name, found in sets.items()])
    by_themselves = _encoded(encoder, "words", chosen.words, options.cache)
    sentences = [text for found in sets.values() for text in found]
    rows = fit.quantised(fit.rows(chosen.words, by_themselves, sentences, vectors))
    return written([*chosen.words, *fit.CLASSES], rows)


def written(words: Sequence[str], rows: np.ndarray) -> bytes:
    """The table as a file, from its words and their rows of signed bytes."""
    return word_vectors.packed(zip(words, (row.tobytes() for row in rows), strict=True))


def _encoded(encoder: Encoder, name: str, texts: Sequence[str], cache: Path | None) -> np.ndarray:
    import numpy as np

    kept = cache / kept_name(name, texts) if cache else None
    if kept is not None and kept.exists():
        return np.load(kept).astype(np.float32)
    sys.stderr.write(f"encoding {len(texts)} {name}\n")
    vectors = encoder.encode(texts)
    if kept is not None:
        part = kept.with_suffix(".part.npy")
        np.save(part, vectors)
        part.replace(kept)  # whole or not at all
    return vectors.astype(np.float32)


def kept_name(name: str, texts: Sequence[str]) -> str:
    """The file that keeps the vectors of these texts in this order, and of no others."""
    digest = hashlib.sha256("\0".join((KEPT_AS, *texts)).encode()).hexdigest()
    return f"{name}-{digest[:16]}.npy"


class Likeness(NamedTuple):
    """How alike two tables are. Dimensions that are turned round tell a fault of the axes from one of the fit."""

    same_words: bool
    cosine: float = 0.0
    lowest: float = 0.0
    turned_round: tuple[int, ...] = ()

    def __str__(self) -> str:
        turned = ", ".join(map(str, self.turned_round)) or "none"
        cosines = f"mean cosine of a row: {self.cosine:.5f}, lowest: {self.lowest:.5f}"
        return f"the same words: {self.same_words}; {cosines}; dimensions turned round: {turned}"


def compare(made: bytes, shipped: bytes) -> Likeness:
    """Whether both tables hold the same words, and how alike their rows are."""
    import numpy as np

    (made_sums, made_rows), (sums, rows) = _opened(made), _opened(shipped)
    if not np.array_equal(made_sums, sums):
        return Likeness(same_words=False)
    products = made_rows * rows
    lengths = np.linalg.norm(made_rows, axis=1) * np.linalg.norm(rows, axis=1)
    both_empty = ~(made_rows.any(1) | rows.any(1))  # a stopword that no sentence has
    cosines = np.where(both_empty, 1.0, products.sum(1) / np.maximum(lengths, 1e-9))
    turned = np.flatnonzero(products.sum(0) < 0).tolist()
    return Likeness(True, float(cosines.mean()), float(cosines.min()), tuple(turned))


def _opened(table: bytes) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    count = len(word_vectors.Table(table))
    start = len(table) - count * word_vectors.SIZE
    rows = np.frombuffer(table, np.uint8, offset=start).reshape(count, word_vectors.SIZE)
    return np.frombuffer(table[start - 4 * count : start], "<u4"), rows.astype(np.float32) - 128


def main() -> int:
    """Write the table, or check the one that ships."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, help="folder of the encoder's files")
    parser.add_argument("--wordnet", type=Path, required=True, help="src/yaml of Open English WordNet")
    parser.add_argument("--cache", type=Path, help="where to keep the encoded texts")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the file to write; by default the one that ships")
    parser.add_argument("--check", action="store_true", help="compare with the table that ships, write nothing")
    options = parser.parse_args()
    made = build(options)
    if not options.check:
        options.out.write_bytes(made)
        return 0
    found = compare(made, SHIPPED.read_bytes())
    sys.stdout.write(f"{found}\n")
    return 0 if found.same_words and found.cosine >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
