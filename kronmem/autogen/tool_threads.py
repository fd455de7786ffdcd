"""Runs blocking tools of ours in a thread when a chat is awaited: AutoGen would run them in the event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from anyio import to_thread

from kronmem.autogen.classic import ConversableAgent

_METHOD = "a_execute_function"


def run_in_threads(executor: ConversableAgent, is_blocking: Callable[[str], bool]) -> None:
    """Put it on the executor, as AutoGen provides for; other functions are executed as before."""
    if hasattr(vars(executor).get(_METHOD), "kronmem_threads"):
        return
    awaited: Callable[..., Any] = getattr(executor, _METHOD)

    async def a_execute_function(func_call: dict[str, Any], *args: Any, **options: Any) -> Any:
        if not is_blocking(func_call.get("name", "")):
            return await awaited(func_call, *args, **options)
        # The thread has the caller's context, and is not for long: a tool ends by its timeout.
        work = partial(executor.execute_function, func_call, *args, **options)
        return await to_thread.run_sync(work, abandon_on_cancel=True)

    update_wrapper(a_execute_function, awaited)
    a_execute_function.kronmem_threads = True  # type: ignore[attr-defined] # found again above
    setattr(executor, _METHOD, a_execute_function)


def run_as_before(executor: ConversableAgent) -> None:
    """Take it away again, unless somebody else has wrapped the method since."""
    if hasattr(vars(executor).get(_METHOD), "kronmem_threads"):
        delattr(executor, _METHOD)
