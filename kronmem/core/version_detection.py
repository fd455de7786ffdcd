"""Signs in a reply by which the version of a kronmem service is known, without a request of its own. Pure."""

from __future__ import annotations

from kronmem.api.version import HEADER
from kronmem.core.wire import Reply

_OF_0_1 = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""The headers that kronmem 0.1 puts on every reply, beside an id of the request."""


def is_current(reply: Reply) -> bool:
    """Did a kronmem of 0.2 or newer write this?"""
    return HEADER in reply.headers


def is_outdated(reply: Reply) -> bool:
    """Did kronmem 0.1 write this? It ignores arguments that it does not know."""
    headers = reply.headers
    ours = "x-request-id" in headers and all(headers.get(name) == value for name, value in _OF_0_1.items())
    return ours and reply.status < 500 and not is_current(reply) and "x-kronvex-version" not in headers
