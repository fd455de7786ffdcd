"""The encoder's space, centred on the sentences, turned so that its first dimensions say most, and cut.

Whatever else differs between two machines, the axes must not: one that points the other way turns a part of every row.
So all sums are in float64, and which way an axis points, which is the library's whim, does not hang on two parts of
nearly the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kronmem.engine.word_vectors import SIZE


@dataclass(frozen=True)
class Projection:
    """Vectors of the encoder to `SIZE` dimensions, of length one."""

    mean: np.ndarray
    axes: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> Projection:
        """The principal axes of the sentences."""
        mean = vectors.mean(0, dtype=np.float64)
        centred = vectors - mean
        _, axes = np.linalg.eigh(centred.T @ centred / len(centred))
        return cls(mean, pointed(axes[:, ::-1][:, :SIZE]))

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        turned = (vectors - self.mean) @ self.axes
        return turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-9)


def pointed(axes: np.ndarray) -> np.ndarray:
    """The same axes, each pointing where the cubes of its parts sum to more than zero.

    The largest part alone would not do: where the two largest have opposite signs and differ in the fourth digit, a
    change in the sixth of what the encoder says turns the axis round.
    """
    return axes * np.where((axes**3).sum(0) < 0, -1.0, 1.0)
