"""The warning that a blocking call blocks an event loop."""

from __future__ import annotations

import logging
import sys

log = logging.getLogger("kronmem")


class LoopGuard:
    """Logs once in a process that a blocking call blocks the event loop of its thread."""

    def __init__(self) -> None:
        self.told = False

    def check(self, name: str) -> None:
        """Look whether an event loop runs in this thread; `remember_later` never waits for a service."""
        if self.told or name == "remember_later":
            return
        # Without the module there is no loop; while another thread imports it, it may lack the function.
        running_loop = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
        if running_loop is None or running_loop() is None:
            return
        self.told = True
        log.warning(
            "a call of Client blocks the event loop that runs in this thread: in `async def` use AsyncClient and "
            "await it, or anyio.to_thread.run_sync(…); in a notebook this is harmless"
        )


loop_guard = LoopGuard()
