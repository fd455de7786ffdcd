"""BotWire as it was recorded: strings by namespace and key, no key needed."""

from __future__ import annotations

import re
import time
from typing import Any, ClassVar

from tests.services.http import Call, JsonServer, Refused, Reply, Route

KEY = re.compile(r"[A-Za-z0-9_.-]{1,128}")
NAMESPACE = re.compile(r"[A-Za-z0-9_-]{1,64}")


class BotWireServer(JsonServer):
    """`rows` holds what was stored, by namespace and key."""

    routes: ClassVar[tuple[Route, ...]] = (
        Route("PUT", "/memory/{namespace}/{name}", "put"),
        Route("GET", "/memory/{namespace}/{name}", "get"),
        Route("DELETE", "/memory/{namespace}/{name}", "delete"),
        Route("GET", "/memory/{namespace}", "keys"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}

    def dispatch(self, call: Call) -> Reply:
        """Check the names, then answer."""
        if not NAMESPACE.fullmatch(call.params["namespace"]):
            raise Refused(400, "Invalid namespace. Use 1-64 alphanumeric/underscore/dash chars.")
        if not KEY.fullmatch(call.params.get("name", "x")):
            raise Refused(400, "Invalid key. Use 1-128 alphanumeric/underscore/dash/dot chars.")
        reply: Reply = getattr(self, call.route.handler)(call)
        return reply

    def put(self, call: Call) -> Reply:
        """Store a string."""
        value = (call.request.body or {}).get("value")
        if not isinstance(value, str):
            raise Refused(
                422, [{"type": "string_type", "loc": ["body", "value"], "msg": "Input should be a valid string"}]
            )
        if len(value) > 100_000:
            raise Refused(400, "Value too large. Max 100KB.")
        old = self.rows.get(self._at(call), {"created_at": time.time()})
        self.rows[self._at(call)] = {**old, "value": value, "updated_at": time.time()}
        return Reply(
            200, {"namespace": self._at(call)[0], "key": self._at(call)[1], "stored": True, "bytes": len(value)}
        )

    def get(self, call: Call) -> Reply:
        """One string."""
        return Reply(200, {"namespace": self._at(call)[0], "key": self._at(call)[1], **self._row(call)})

    def delete(self, call: Call) -> Reply:
        """Remove a string."""
        self._row(call)
        del self.rows[self._at(call)]
        return Reply(200, {"deleted": True, "namespace": self._at(call)[0], "key": self._at(call)[1]})

    def keys(self, call: Call) -> Reply:
        """The names in a namespace, newest first."""
        space = call.params["namespace"]
        found = [
            {"key": key, "bytes": len(row["value"]), "updated_at": row["updated_at"]}
            for (ns, key), row in self.rows.items()
            if ns == space
        ]
        found = sorted(found, key=lambda row: -row["updated_at"])[: int(call.request.query.get("limit", 100))]
        return Reply(200, {"namespace": space, "count": len(found), "keys": found})

    def _at(self, call: Call) -> tuple[str, str]:
        return call.params["namespace"], call.params["name"]

    def _row(self, call: Call) -> dict[str, Any]:
        if self._at(call) not in self.rows:
            raise Refused(404, "Key not found: {}/{}".format(*self._at(call)))
        return self.rows[self._at(call)]
