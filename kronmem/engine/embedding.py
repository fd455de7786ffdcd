"""Optional vectors: computed in the background, stored beside the memory, used to reorder the hits found by words.

A recall never waits for the vector of a memory, and for the question's own only a bounded time. The database remembers
which model its vectors are of, by the function's attribute `model` and their length; another model's are made again.
"""

from __future__ import annotations

import logging
import math
import struct
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import ModuleType

from kronmem import fork_safety
from kronmem.engine.postings import digest
from kronmem.engine.store import Embedding, Reader, Store
from kronmem.errors import StoreError, TransportError

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

_BATCH = 64
"""Texts for the model at a time: closing waits for one batch at most."""
_AGAIN = 5.0
"""Seconds until vectors that could not be stored are made once more: as long as the store was waited for."""
_BACKLOG = 10_000
"""New memories that wait in memory for a vector; those beyond are found in the store later."""
_ASKED_AT_ONCE = 4
"""Questions with the model at a time: models use several cores each, and later ones are ranked by words alone."""
MADE_BY = "embeddings"
"""The setting that names the model."""
_log = logging.getLogger("kronmem.engine")


def cosines(
    question: Sequence[float], packed: Mapping[int, bytes], numpy: ModuleType | None = None
) -> dict[int, float]:
    """How close a question's vector is to each stored one; those of another model are left out."""
    known = {key: vector for key, vector in packed.items() if len(vector) == 4 * len(question)}
    if numpy is None or not known:
        return {key: sum(map(float.__mul__, question, _unpack(vector))) for key, vector in known.items()}
    rows = numpy.frombuffer(b"".join(known.values()), dtype="<f4").reshape(len(known), -1)
    return dict(zip(known, (rows @ numpy.array(question)).tolist(), strict=True))


def unit(vector: Sequence[float]) -> list[float]:
    """`vector` scaled to length one, so that a product is a cosine."""
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else [0.0 for _ in vector]


def _pack(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *unit([float(x) for x in vector]))


def _unpack(packed: bytes) -> array[float]:
    numbers = array("f", packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


class Embedder:
    """Embeds new memories in a thread of its own, and questions on demand."""

    def __init__(self, store: Store, embed: Embed) -> None:
        self._store = store
        self._embed = embed
        self._model = str(getattr(embed, "model", "a function"))
        self._closed = False
        self._begin()
        fork_safety.watch(self)

    def _begin(self) -> None:
        self._due: deque[tuple[int, str]] = deque(maxlen=_BACKLOG)
        self._wake = threading.Event()
        self._behind = True
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        self._asking = threading.BoundedSemaphore(_ASKED_AT_ONCE)
        self._settling = threading.Lock()
        self._settled = False
        self._made_by = ""
        self._replaced = False

    def add(self, memories: Sequence[tuple[int, str]]) -> None:
        """Have these embedded soon; (key, text)."""
        self._due.extend(memories)
        self._start()
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many new memories wait for their vectors."""
        return len(self._due)

    def catch_up(self) -> None:
        """Have memories without a vector embedded soon: the text of one has changed."""
        self._behind = True
        self._start()
        self._wake.set()

    def ask(self, question: str, timeout: float) -> list[float] | None:
        """The question's vector, or `None` if it fails or takes longer than `timeout`."""
        self._start()
        if self._replaced or not self._asking.acquire(blocking=False):
            return None  # a few are hanging already: one more would hang too
        answer: list[list[float]] = []
        thread = threading.Thread(target=self._answer, args=(question, answer), daemon=True)
        thread.start()
        thread.join(timeout)
        return answer[0] if answer else None

    def has_been_replaced(self, known: str | None) -> bool:
        """Has another process given the database with vectors of `known` to its own model since we began?"""
        if known not in (None, self._made_by) and not self._replaced:
            self._replaced = True
            words = "vectors are those of %s now, no longer of %s: this process adds none and recalls by words alone"
            _log.warning(words, known, self._made_by)
        return self._replaced

    def close(self) -> None:
        """Stop after the batch at hand; the rest is embedded when the database is opened again."""
        self._closed = True
        self._wake.set()
        if self._worker:
            self._worker.join(timeout=5.0)

    def before_fork(self) -> None:
        """Nothing: a model takes its time."""

    def after_fork(self, *, child: bool) -> None:
        """The child has threads and places of its own."""
        if child:
            self._begin()

    def _answer(self, question: str, answer: list[list[float]]) -> None:
        try:
            vector = unit([float(x) for x in self._embed([question])[0]])
            self._settle(len(vector))
            answer.append(vector)
        except Exception:  # noqa: BLE001 - the user's function may raise anything; words alone still answer
            _log.warning("embedding a question failed; recalling by words alone", exc_info=True)
        finally:
            self._asking.release()

    def _start(self) -> None:
        with self._starting:
            if self._closed or (self._worker and self._worker.is_alive()):
                return
            self._worker = threading.Thread(target=self._work, name="kronmem-embed", daemon=True)
            self._worker.start()

    def _work(self) -> None:
        """First the memories stored without a vector, then new ones."""
        self._due.clear()  # what waits already is stored already
        self._behind = True
        while not self._closed:
            if self._behind:
                self._behind = False
                self._catch_up()
            self._wake.wait(_AGAIN if self._behind else None)
            self._wake.clear()
            while self._due and not self._closed:
                self._store_vectors([self._due.popleft() for _ in range(min(_BATCH, len(self._due)))])

    def _settle(self, size: int) -> None:
        """See that no vector of another model stays in the database, before any is compared or added."""
        with self._settling:
            if self._settled:
                return
            made_by = self._made_by = f"{self._model}, {size} numbers"
            with self._store.read(5.0) as rows:
                known = rows.setting(MADE_BY)
            if known is None:
                with suppress(StoreError):  # a database that may only be read has no vectors to add
                    self._adopt(made_by)
            elif known != made_by:
                _log.warning("vectors of %s are replaced by those of %s in the background", known, made_by)
                self._adopt(made_by)
            self._settled = True

    def _adopt(self, made_by: str) -> None:
        with self._store.write(5.0) as rows:
            known = rows.setting(MADE_BY)
            rows.set_setting(MADE_BY, made_by)  # first: it waits for those who are adding vectors of the other model
            if known not in (None, made_by):
                rows.forget_embeddings()
        self._behind = True
        self._wake.set()

    def _catch_up(self) -> None:
        """Embed memories stored without a vector, a batch at a time."""
        after: int | None = None
        while not self._closed and not self._replaced:
            batch: list[tuple[int, str]] = []
            try:
                with self._store.read(5.0) as rows:
                    batch = rows.without_embedding(after, _BATCH)
            except (TransportError, StoreError) as error:
                self._behind = isinstance(error, TransportError)  # an outage ends
                _log.warning("memories without a vector cannot be read (%s); they are found by words alone", error)
            if not batch:
                return
            self._store_vectors(batch)
            after = batch[-1][0]

    def _store_vectors(self, memories: Sequence[tuple[int, str]]) -> None:
        if self._replaced:
            return
        try:
            vectors = self._embed([text for _, text in memories])
            self._settle(len(vectors[0]))
            pairs = zip(memories, vectors, strict=True)
            left: Sequence[Embedding] = [(key, digest(text), _pack(vector)) for (key, text), vector in pairs]
            while left:
                with self._store.write(5.0) as rows:
                    if self.has_been_replaced(rows.hold_setting(MADE_BY)):
                        return
                    left = rows.set_embeddings(left)
        except TransportError as error:
            self._behind = True
            _log.warning("the vectors of %d memories wait until the store can be written (%s)", len(memories), error)
        except Exception:  # noqa: BLE001 - the user's function may raise anything; the thread must live on
            if self._closed:
                return  # the model was slower than `close` waits: they get their vectors when it is opened again
            _log.warning("embedding %d memories failed; they are found by words alone", len(memories), exc_info=True)


# How far the work in the background is: vectors of a model.

_SECONDS = 10.0
"""The time to read the counts: a client's default for one call."""


def progress(store: Store) -> list[tuple[str, str]]:
    """Subject and sentence for each kind of work that there is or was."""
    with store.read(_SECONDS) as rows:
        return list(_progress(rows))


def _progress(rows: Reader) -> Iterator[tuple[str, str]]:
    _, memories = rows.size(time.time())
    if made_by := rows.setting(MADE_BY):
        done = rows.count_embedded()
        rest = "" if done >= memories else "; the others when a client with this embed= runs"
        yield "vectors", f"{made_by}: {min(done, memories)} of {memories} memories{rest}"
