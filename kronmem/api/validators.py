"""Validators of the API's types, built at the first value: a process that remembers and recalls needs four of forty.

The models' own are not built (`defer_build`): before 2.12, pydantic does not expect two threads to build one model.
Threads that come first at once build an adapter each, one after the other; a fork waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from pydantic import BaseModel, ConfigDict, TypeAdapter

from kronmem import fork_safety

T = TypeVar("T")


class DeferredModel(BaseModel):
    """The base of models that are read by a `Validator`."""

    model_config = ConfigDict(defer_build=True)


class Validator(Generic[T]):
    """Reads values of one type; raises pydantic's `ValidationError`."""

    @overload
    def __init__(self, model: type[T]) -> None: ...
    @overload
    def __init__(self, model: Any) -> None: ...  # a union is no type to type checkers

    def __init__(self, model: Any) -> None:
        self._model = model
        self._adapter: TypeAdapter[T] | None = None

    def json(self, body: bytes) -> T:
        """Read JSON."""
        return self._adapter.validate_json(body) if self._adapter else self._first(lambda new: new.validate_json(body))

    def python(self, value: object) -> T:
        """Read a value."""
        if self._adapter:
            return self._adapter.validate_python(value)
        return self._first(lambda new: new.validate_python(value))

    def _first(self, read: Callable[[TypeAdapter[T]], T]) -> T:
        # pydantic-core has locks of its own: a child forked while another thread builds would wait for one for ever.
        with fork_safety.first_use.lock:
            adapter: TypeAdapter[T] = TypeAdapter(self._model)
            try:
                return read(adapter)
            finally:
                self._adapter = adapter
