"""A kronmem service of 0.2, whose answers to options of later versions are what a client has to live with.

The release itself where a Python that has it is named, else today's service behind what 0.2 refuses and ignores.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.services.in_process import served_in_process
from tests.services.kronmem import ServedKronmem

INSTALLED = os.environ.get("KRONMEM_TEST_OLDER", "")
"""The Python of an environment with kronmem 0.2."""
REFUSED = {"detail": [{"type": "bool_parsing", "loc": ["body", "kronmem", "fill"], "msg": "no boolean"}]}


@contextmanager
def served_older(place: Path) -> Iterator[str]:
    """The url of a service of 0.2."""
    if INSTALLED:
        with ServedKronmem(place / "older.db", python=INSTALLED) as service:
            yield service.url
    else:
        with served_in_process(around=_Older) as url:
            yield url


class _Older:
    """An ASGI app with the habits and the version of 0.2 around the one of today."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                others = [one for one in message["headers"] if one[0] != b"x-kronmem-version"]
                message = {**message, "headers": [*others, (b"x-kronmem-version", b"0.2")]}
            await send(message)

        async def asked() -> Any:
            return {"type": "http.request", "body": body}

        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, answer if scope["type"] == "http" else send)
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        fields = json.loads(body)
        exact = fields.get("kronmem", {})
        if exact.get("fill") not in (None, True, False):
            headers = [(b"content-type", b"application/json")]
            await answer({"type": "http.response.start", "status": 422, "headers": headers})
            return await send({"type": "http.response.body", "body": json.dumps(REFUSED).encode()})
        ignored = ("exclude", "told", *(["fill"] if scope["path"].endswith("/recall") else []))
        for name in ignored:
            exact.pop(name, None)
        fields.pop("may_replace", None)
        body = json.dumps(fields).encode()
        length = (b"content-length", str(len(body)).encode())
        scope = {**scope, "headers": [*(one for one in scope["headers"] if one[0] != length[0]), length]}
        return await self.app(scope, asked, answer)
