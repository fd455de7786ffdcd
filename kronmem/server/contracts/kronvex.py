"""Kronvex's contract, which is our own: its routes are those of the service."""

from __future__ import annotations

from kronmem.api.routes import ROUTES
from kronmem.server import api_keys as keys
from kronmem.server.contracts.contract import Contract, detail

MAX_BODY = 16 * 1024 * 1024
"""In bytes: twice the largest value of an agent's state."""

KRONVEX = Contract(
    "Kronvex",
    ROUTES,
    lambda service, match, request, owner: service.answer(match, request, owner),
    keys.api_key,
    detail,
    MAX_BODY,
)
