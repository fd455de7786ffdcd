"""The memory page: one file, put together from `assets/`, and the policy that lets a browser run nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

SCRIPTS = ("service", "words", "agents", "list", "chart", "undo", "drawer", "address", "shortcuts")
"""In this order they are one strict script: a single answer needs no further open route, and its hash is the policy."""


@lru_cache(maxsize=1)
def page() -> tuple[bytes, dict[str, str]]:
    """The page and its headers."""
    style = _asset("page.css")
    script = '(() => {"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS) + "})();"
    text = _asset("page.html").replace("<style></style>", f"<style>{style}</style>")
    text = text.replace("<script></script>", f"<script>{script}</script>")
    policy = [
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": "; ".join(policy)}
    return text.encode(), {**headers, "referrer-policy": "no-referrer", "x-frame-options": "DENY"}


def _asset(name: str) -> str:
    return files("kronmem.server").joinpath(f"assets/{name}").read_text("utf-8")


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
