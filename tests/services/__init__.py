"""Loopback servers for the tests: Kronvex as recorded, Kronvex as its tutorials say, and a scripted one for faults."""

from tests.services.http import Recorded, Reply
from tests.services.kronvex import KronvexServer
from tests.services.raw import RawServer
from tests.services.tutorial import TutorialServer

__all__ = ["KronvexServer", "RawServer", "Recorded", "Reply", "TutorialServer"]
