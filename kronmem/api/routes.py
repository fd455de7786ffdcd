"""The table of the API: a route names its method, path, request model, reply type and status.

The engine attaches a handler to every row; the embedded transport, the web app and the OpenAPI document read the same
rows. Routes of another contract are rows of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Generic, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel

from kronmem.api import paths, replies, requests

B_co = TypeVar("B_co", bound=BaseModel, covariant=True)
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Route(Generic[B_co, R_co]):
    """One row of the API. `request` is the model of the body, or of the query string of a GET."""

    method: str
    path: str
    request: type[B_co]
    reply: type[R_co]
    status: int = 200
    body_optional: bool = False

    @property
    def has_body(self) -> bool:
        """Whether its requests carry JSON."""
        return self.method != "GET" and bool(self.request.model_fields)


AnyRoute = Route[BaseModel, object]


HEALTH = Route("GET", paths.HEALTH, requests.EmptyRequest, replies.HealthReply)
LIST_AGENTS = Route("GET", paths.AGENTS, requests.EmptyRequest, list[replies.AgentReply])
CREATE_AGENT = Route("POST", paths.AGENTS, requests.AgentRequest, replies.AgentReply, 201)
GET_AGENT = Route("GET", paths.AGENT, requests.EmptyRequest, replies.AgentReply)
UPDATE_AGENT = Route("PATCH", paths.AGENT, requests.AgentUpdateRequest, replies.AgentReply)
DELETE_AGENT = Route("DELETE", paths.AGENT, requests.EmptyRequest, NoneType, 204)
REMEMBER = Route("POST", paths.REMEMBER, requests.RememberRequest, replies.StoredReply, 201)
RECALL = Route("POST", paths.RECALL, requests.RecallRequest, replies.RecallReply)
INJECT_CONTEXT = Route("POST", paths.INJECT_CONTEXT, requests.RecallRequest, replies.ContextReply)
BATCH = Route("POST", paths.BATCH, requests.BatchRequest, replies.BatchReply, 201)
BULK_IMPORT = Route("POST", paths.BULK_IMPORT, requests.BatchRequest, replies.ImportReply)
EXPORT = Route("GET", paths.EXPORT, requests.EmptyRequest, replies.ExportReply)
LIST_MEMORIES = Route("GET", paths.MEMORIES, requests.ListRequest, replies.PageReply)
CLEAR = Route("DELETE", paths.MEMORIES, requests.EmptyRequest, replies.ClearReply)
# Paths of their own: on the older routes a service that does not know the fields would ignore them in silence.
UPSERT = Route("POST", paths.UPSERT, requests.RememberRequest, replies.StoredReply, 201)
UPDATE = Route("POST", paths.UPDATE, requests.UpdateRequest, replies.MemoryReply)
RESTORE = Route("POST", paths.RESTORE, requests.RestoreRequest, replies.RestoreReply)
# A path of its own, not a filter on the other clear: a service that does not know filters would delete everything.
CLEAR_SOME = Route("POST", paths.CLEAR_SOME, requests.ClearRequest, replies.ClearReply)
HISTORY = Route("GET", paths.HISTORY, requests.EmptyRequest, replies.HistoryReply)
SUMMARY = Route("GET", paths.SUMMARY, requests.EmptyRequest, replies.SummaryReply)
ERASE = Route("POST", paths.ERASE, requests.EraseRequest, replies.EraseReply, body_optional=True)
GET_MEMORY = Route("GET", paths.MEMORY, requests.EmptyRequest, replies.MemoryReply)
UPDATE_MEMORY = Route("PATCH", paths.MEMORY, requests.UpdateRequest, replies.MemoryReply)
FORGET = Route("DELETE", paths.MEMORY, requests.EmptyRequest, NoneType, 204)
LIST_SESSIONS = Route("GET", paths.SESSIONS, requests.EmptyRequest, replies.SessionsReply)
CLEAR_SESSION = Route("DELETE", paths.SESSION, requests.EmptyRequest, replies.ClearReply)
LIST_STATE_KEYS = Route("GET", paths.STATE, requests.StateKeysRequest, replies.StateKeysReply)
GET_STATE = Route("GET", paths.STATE_KEY, requests.EmptyRequest, replies.StateReply)
SET_STATE = Route("PUT", paths.STATE_KEY, requests.StateRequest, replies.StateStoredReply)
DELETE_STATE = Route("DELETE", paths.STATE_KEY, requests.EmptyRequest, replies.StateDeletedReply)

# Fixed words stand before ids: the first row that fits answers.
ROUTES: tuple[AnyRoute, ...] = (
    HEALTH,
    *(LIST_AGENTS, CREATE_AGENT, GET_AGENT, UPDATE_AGENT, DELETE_AGENT),
    *(REMEMBER, RECALL, INJECT_CONTEXT, BATCH, BULK_IMPORT, EXPORT, RESTORE, UPSERT),
    *(LIST_MEMORIES, CLEAR, CLEAR_SOME, GET_MEMORY, UPDATE_MEMORY, FORGET, HISTORY, UPDATE),
    *(SUMMARY, ERASE),
    *(LIST_SESSIONS, CLEAR_SESSION),
    *(LIST_STATE_KEYS, GET_STATE, SET_STATE, DELETE_STATE),
)


@dataclass(frozen=True)
class Match:
    """A route and the segments of the path that stand for its parameters, still quoted."""

    route: AnyRoute
    segments: Mapping[str, str]


class Router:
    """Finds the route of a request by its path as sent: quoted letters never spell a fixed word."""

    def __init__(self, routes: Iterable[AnyRoute]) -> None:
        self._rows: dict[int, list[_Row]] = {}
        """By how many segments their paths have."""
        for route in routes:
            parts = route.path.split("/")
            fixed = [(at, part) for at, part in enumerate(parts) if not part.startswith("{")]
            named = [(at, part[1:-1]) for at, part in enumerate(parts) if part.startswith("{")]
            # The last words differ most, so they are compared first.
            self._rows.setdefault(len(parts), []).append((route, fixed[::-1], named))

    def find(self, method: str, path: str) -> Match | None:
        """The route that answers this method at this path."""
        segments = _segments(path)
        for route, fixed, named in self._rows.get(len(segments), ()):
            if route.method == method and all(segments[at] == part for at, part in fixed):
                return Match(route, {name: segments[at] for at, name in named})
        return None

    def allowed(self, method: str, path: str) -> list[str]:
        """The methods that a path has, when it lacks this one; none when there is no such path."""
        if self.find(method, unquote(path)):  # a fixed word was quoted: not an id that lacks the method
            return []
        segments = _segments(path)
        rows = self._rows.get(len(segments), ())
        here = [route for route, fixed, _ in rows if all(segments[at] == part for at, part in fixed)]
        return [route.method for route in here if route.path == here[0].path]


def _segments(path: str) -> list[str]:
    """The segments of a path; none when one is empty or holds a quoted slash, which a proxy may decode."""
    segments = path.split("/")
    return segments if all(segments[1:]) and "%2f" not in path.lower() else []


_Row = tuple[AnyRoute, list[tuple[int, str]], list[tuple[int, str]]]
