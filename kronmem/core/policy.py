"""A reply that is no success, as the typed error that the service meant, in its own words. Pure."""

from __future__ import annotations

from typing import TypeVar, cast

from pydantic_core import from_json

from kronmem.core.retry_after import retry_after
from kronmem.core.wire import UNAVAILABLE, Call, Reply
from kronmem.errors import ServerError, StatusError, status_class

T = TypeVar("T")

NO_REASON = "the service gave no readable reason"


def read(call: Call[T], reply: Reply) -> T:
    """Turn a reply into the call's answer, or raise the error that the service meant."""
    if 200 <= reply.status < 300:
        return call.parse(reply)
    raise status_error(reply)


def has_no_route(reply: Reply) -> bool:
    """Does the service not know this path or method at all?"""
    return reply.status == 405 or (reply.status == 404 and detail(reply) in ("Not Found", None))


def status_error(reply: Reply) -> StatusError:
    """Make the typed error for a reply that is not a success."""
    message = _message(reply)
    if 300 <= reply.status < 400:
        message = "the service redirects; redirects are never followed, so correct the url"
    error = status_class(reply.status)(
        message,
        status=reply.status,
        request_id=reply.headers.get("x-request-id"),
        retry_after=retry_after(reply),
    )
    error.unheard = reply.lost
    if isinstance(error, ServerError):
        error.outage = UNAVAILABLE in reply.headers
    return error


def detail(reply: Reply) -> object:
    """The `detail` of an error body, or None when the body is not of that shape."""
    try:
        body: object = from_json(reply.body)
    except ValueError:
        return None
    return cast("dict[str, object]", body).get("detail") if isinstance(body, dict) else None


def _message(reply: Reply) -> str:
    """The service's message in words. The input it echoes is left out: it may hold a secret."""
    said = detail(reply)
    if isinstance(said, str):
        return said[:500]
    if isinstance(said, dict):
        fields = cast("dict[str, object]", said)
        return str(fields.get("message") or fields.get("error") or "no message")[:500]
    if isinstance(said, list):
        return "; ".join(_item(item) for item in cast("list[object]", said)[:5])[:500] or "no message"
    return NO_REASON


def _item(item: object) -> str:
    if not isinstance(item, dict):
        return "invalid"
    fields = cast("dict[str, object]", item)
    loc = fields.get("loc")
    where = ".".join(str(part) for part in cast("list[object]", loc)) if isinstance(loc, list) else ""
    return f"{where}: {fields.get('msg', 'invalid')}".lstrip(": ")
