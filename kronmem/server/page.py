"""The memory page: one static file, and the policy that lets a browser run that file and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def page() -> tuple[bytes, dict[str, str]]:
    """The page and its headers."""
    text = files("kronmem.server").joinpath("page.html").read_text("utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
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


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
