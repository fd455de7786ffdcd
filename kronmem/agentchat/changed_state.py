"""Saves the state of a team or an agent while it runs: of AutoGen's `save_state`, only the parts that changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, cast

import anyio
from anyio import to_thread
from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from kronmem import AsyncState, DeadlineError, State
from kronmem.packs.log_once import LogOnce
from kronmem.packs.saved_changes import Awaited, Change, ChangeLog, differences

TIMEOUT = 2.0
"""Seconds that a message may wait for its saving: as long as for a recall."""
PAUSES = (0.05, 0.4, 3.0)
"""Seconds between further saves while nothing new is told of: a team has taken in its message after the first of them,
on a busy machine later, and a model may think for longer than that. A save that finds no change writes nothing."""

JsonObject = dict[str, JsonValue]


class Stateful(Protocol):
    """A team or an agent: AutoGen's own two methods."""

    async def save_state(self) -> Mapping[str, Any]:
        """Tell everything that is needed to go on."""
        ...

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        ...


class StateSaver:
    """The journal of one state, and the state as it was saved last."""

    def __init__(
        self,
        team: Stateful,
        state: AsyncState | State,
        key: str,
        timeout: float,
        cleaned: Callable[[JsonValue], JsonValue],
    ) -> None:
        self._team, self._key, self._timeout, self._cleaned = team, key, timeout, cleaned
        self._journal = ChangeLog(Awaited(state) if isinstance(state, AsyncState) else state, key, "state of a team")
        self._log = LogOnce(f"the saving of the state {key!r}")
        self._one, self._writing = asyncio.Lock(), threading.Lock()
        self._saved: JsonObject = {}
        self.behind = False

    async def read(self) -> JsonObject | None:
        """The saved state; None when there is none."""
        head = await to_thread.run_sync(self._journal.read, abandon_on_cancel=True)
        if head is None:
            return None
        self._saved = cast("JsonObject", head["value"])
        return cast("JsonObject", to_jsonable_python(self._saved))  # a copy: AutoGen may keep parts of it

    async def save(self) -> None:
        """Save now, within the timeout, also when the run was cancelled."""
        await self._save(self._timeout)

    async def save_quietly(self) -> None:
        """Save on the way: a failure is logged once, and a store that hangs is not waited for at every message.

        `behind` tells whether this has still to be made up for.
        """
        self.behind = True
        if not self._one.locked() and not self._writing.locked():
            with self._log.swallowing():
                await self._save(min(TIMEOUT, self._timeout))
                self.behind = False

    async def _save(self, timeout: float) -> None:
        try:
            with anyio.fail_after(timeout, shield=True):
                async with self._one:
                    await self._write(timeout)
        except TimeoutError:
            raise DeadlineError(f"the state {self._key!r} was not saved within {timeout} s") from None

    async def _write(self, timeout: float) -> None:
        new = cast("JsonObject", self._cleaned(cast("JsonValue", to_jsonable_python(await self._team.save_state()))))

        def alone() -> None:
            if not self._writing.acquire(timeout=timeout):
                raise DeadlineError("an earlier save has not ended yet", sent=False)
            try:
                self._store(new)
            finally:
                self._writing.release()

        await to_thread.run_sync(alone, abandon_on_cancel=True)

    def _store(self, new: JsonObject) -> None:
        """Write the changes and note them, also when nobody waits for it any more."""
        if self._journal.begun:
            self._journal.append(list(differences(self._saved, new)))
        else:
            whole: Sequence[Change] = [([name], None, part) for name, part in new.items()]
            self._journal.begin(whole, {})
        self._saved = new


@asynccontextmanager
async def watching(team: Stateful, saver: StateSaver) -> AsyncGenerator[None]:
    """Save after every message that the team or the agent tells of, and once more when it has grown quiet."""
    quiet = _Quiet(saver)
    stream = "on_messages_stream" if hasattr(team, "on_messages_stream") else "run_stream"
    before = {name: own for name, own in vars(team).items() if name == stream}  # somebody else's, or of another key
    setattr(team, stream, _saving(getattr(team, stream), quiet))  # AutoGen calls its own methods, and so this one
    try:
        yield
    finally:
        vars(team).pop(stream, None)
        vars(team).update(before)
        await quiet.end()


def _saving(stream: Callable[..., AsyncGenerator[Any]], quiet: _Quiet) -> Callable[..., AsyncGenerator[Any]]:
    async def saved(*args: Any, **options: Any) -> AsyncGenerator[Any]:
        async with aclosing(stream(*args, **options)) as messages:  # one left early is over, and the team is free again
            async for message in messages:
                await quiet.save()
                yield message

    return saved


class _Quiet:
    """Saves at once, and again a moment later: a team tells of a message before all its members have it."""

    def __init__(self, saver: StateSaver) -> None:
        self._saver = saver
        self._later: tuple[asyncio.Task[None], asyncio.Event] | None = None

    async def save(self) -> None:
        """Save now, and later unless this is called again before."""
        await self.end()
        await self._saver.save_quietly()
        if self._later is None:
            over = asyncio.Event()
            self._later = asyncio.ensure_future(self._wait(over)), over

    async def _wait(self, over: asyncio.Event) -> None:
        pauses = list(PAUSES)
        while pauses or self._saver.behind:
            with anyio.move_on_after(pauses.pop(0) if pauses else PAUSES[-1]):
                await over.wait()
                return
            await self._saver.save_quietly()

    async def end(self) -> None:
        """Stop waiting; a save under way is finished."""
        later, self._later = self._later, None
        if later is not None:
            task, over = later
            over.set()
            await asyncio.wait([task])
