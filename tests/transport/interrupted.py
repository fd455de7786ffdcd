"""Calls under a hail of signals, in a process of its own: `python -m tests.transport.interrupted URL COUNT`.

The handler raises at any step of a call. Prints how many calls were broken off, and how many were answered after it.
"""

from __future__ import annotations

import random
import signal
import sys
import threading

from kronmem import Client, KronmemError

AT_ONCE = 100


class Interrupted(Exception):
    """Raised by the signal handler."""


def broken_off(client: Client, count: int) -> int:
    """Call until so many calls were broken off by a signal."""
    chance, broken = random.Random(1), 0
    while broken < count:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.001))
                client.recall("alice", "question")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            broken += 1
        except KronmemError as error:
            sys.exit(f"after {broken} interrupts: {error!r}")
    return broken


def answered(client: Client) -> int:
    """How many of many calls at once come through afterwards."""
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(client.recall("alice", "q")))) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(found)


def main() -> None:
    """Interrupt, then see whether everything still works."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGALRM, interrupt)
    with Client(sys.argv[1], timeout=60, outbox=False) as client:
        print(broken_off(client, int(sys.argv[2])), answered(client))


if __name__ == "__main__":
    main()
