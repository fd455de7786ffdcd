"""The version of the API, in a header of every reply of `kronmem serve`; a service before 0.2 sends none."""

from __future__ import annotations

HEADER = "x-kronmem-version"
API = "0.2"
