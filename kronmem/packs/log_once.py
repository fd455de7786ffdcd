"""LogOnce: one log line when memory fails and one when it is back, so that an outage does not fill a log."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from kronmem.errors import KronmemError

log = logging.getLogger("kronmem")


class LogOnce:
    """Logs each change between working and failing once; never a text that was remembered or asked."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._failing = False

    def failed(self, error: BaseException) -> None:
        """Note a failed call."""
        if not self._failing:
            self._failing = True
            log.warning("%s is unavailable, going on without it (%s)", self._subject, _loggable(error))

    def succeeded(self) -> None:
        """Note a call that worked."""
        if self._failing:
            self._failing = False
            log.warning("%s is available again", self._subject)

    @contextmanager
    def swallowing(self) -> Generator[None]:
        """Log an exception instead of raising it: frameworks let one from a hook end the run. Cancellation goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- see above
            self.failed(error)
        else:
            self.succeeded()


def _loggable(error: BaseException) -> str:
    # The message of an error that is not ours may quote a memory.
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, KronmemError) else name
