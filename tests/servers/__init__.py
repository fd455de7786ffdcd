"""Loopback servers for the tests: Kronvex as recorded, Kronvex as its tutorials say, and a scripted one for faults."""

from tests.servers.http import Recorded, Reply
from tests.servers.kronvex import KronvexServer
from tests.servers.raw import RawServer
from tests.servers.tutorial import TutorialServer

__all__ = ["KronvexServer", "RawServer", "Recorded", "Reply", "TutorialServer"]
