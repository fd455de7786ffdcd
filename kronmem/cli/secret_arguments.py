"""Secrets among the arguments of this process: others see them in the list of processes."""

from __future__ import annotations

from collections.abc import Iterable

_START, _END = 45, 46
"""arg_start and arg_end in /proc/self/stat, counted after the name of the program: proc(5) numbers them 48 and 49."""


def hide(secrets: Iterable[str]) -> bool:
    """Overwrite secrets where `ps` reads them; False where the system does not allow it (Linux does)."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        start, end = int(fields[_START]), int(fields[_END])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            shown = memory.read(end - start)
            for secret in secrets:
                shown = shown.replace(secret.encode(), b"*" * len(secret.encode()))
            memory.seek(start)
            return memory.write(shown) == end - start
    except (OSError, ValueError, IndexError):
        return False
