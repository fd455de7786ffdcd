"""Tool parameters described by pydantic's `Field`: AG2 1.x and MCP read nothing else.

Both AutoGens refuse `Field`, so `memory_tools` describes its parameters by plain text in `Annotated`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, TypeVar, get_args, get_origin

from pydantic import Field

F = TypeVar("F", bound=Callable[..., object])


def with_fields(function: F) -> F:
    """Rewrite the annotations of a function that nobody else holds: a text becomes `Field(description=text)`."""
    # Read as they are: before Python 3.11, get_type_hints wraps a parameter that is None by default once more.
    function.__annotations__ = {name: _described(hint) for name, hint in function.__annotations__.items()}
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=_described(one.annotation)) for one in signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
    return function


def _described(hint: object) -> object:
    if get_origin(hint) is not Annotated:
        return hint
    kind, text = get_args(hint)
    return Annotated[kind, Field(description=text)]
