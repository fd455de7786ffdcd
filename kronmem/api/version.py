"""The version of the API, in a header of every reply of `kronmem serve`."""

from __future__ import annotations

HEADER = "x-kronmem-version"
API = "0.2"
NUMBER = tuple(map(int, API.split(".")))
"""The same, comparable."""
