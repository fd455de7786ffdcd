"""Whether the process that holds a lease still lives, also when its pid is in use again. Reads /proc if it is there."""

from __future__ import annotations

import os
import platform


def me() -> str:
    """This process, distinct from any other that had or will have its pid."""
    return f"{_place()}|{os.getpid()}|{_started(os.getpid())}"


def is_gone(holder: str) -> bool:
    """Has this process certainly ended? Of one on another machine, or in another container, nobody here can tell."""
    node, pid, started = [*holder.rsplit("|", 2), "", ""][:3]
    if node != _place() or os.name != "posix" or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return started != _started(int(pid))


def _place() -> str:
    """This machine and its numbering of processes: containers of one name, such as those of a pod, have one each."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str:
    """When the process began, in the kernel's own count; a number is used again, the pair never."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
