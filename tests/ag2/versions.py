"""The AG2 versions that the pack promises: name → (what to install, the newest Python it installs on)."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "ag2 1.0.0": (("ag2==1.0.0",), None),
    "ag2 1.x, newest": (("ag2>=1.0,<2",), None),
}
