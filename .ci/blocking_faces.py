#!/usr/bin/env python3
"""Write the blocking face of each awaiting one: the same code without its awaits.

    .venv/bin/python .ci/blocking_faces.py            after a change of an async_*.py of FACES
    .venv/bin/python .ci/blocking_faces.py --check    exits with 1 and names the files that are not current

It works on text, so that comments stay. Where the faces differ by more than an `await`, the awaiting one calls a
function whose blocking twin REPLACED names, or has a line `# blocking: code`, which is code in the blocking one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "kronmem"
FACES = {
    "async_client.py": "client.py",
    "async_state.py": "state.py",
    "async_agent_memory.py": "agent_memory.py",
    "outbox/async_outbox.py": "outbox/outbox.py",
}
REPLACED = [
    # more than an await
    (r"# blocking: ", ""),
    (r"await aside\(\s*lambda: ", "("),
    (r"await leave\(([\w.]+), ", r"\1("),
    (r"await aclose_all\(self\._timeout, ", "close_all("),  # a timeout holds where something is awaited
    (r"return Listing\(", "return ("),
    # an await, and names
    (r"\b(async (?=def |with |for )|await )", ""),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Iterator[\1]"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=(transport|client|state|agent_memory|outbox)\b)", ""),
    (r"\ba(?=(drive|fan_out|close_all)\b)", ""),
    (r"\bbind_async\b", "bind"),
    (r"__(enter|exit)__", r"__@\1__"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"__@(enter|exit)__", r"__a\1__"),
    # words for people
    (r", on asyncio and trio\.", "."),
    (r"Safe to use from one event loop after another\.", "Safe to share between threads."),
    (
        r"needs `async with`; where nothing is awaited use Client",
        "needs a plain `with`; to await its calls use AsyncClient",
    ),
]
TIDY = (["check", "--fix-only", "--unsafe-fixes", "--select", "F401,I,UP028,UP034"], ["format"])


def blocking(awaiting: str) -> str:
    """The blocking face of a module, formatted, with a docstring that says where it is from."""
    text = (PACKAGE / awaiting).read_text("utf-8")
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    title, rest = text.split("\n", 1)
    if not title.endswith('"""'):
        rest = rest.split('"""\n', 1)[1]
    came = f"This file is generated from {Path(awaiting).name} by .ci/blocking_faces.py: change that one."
    text = title.removesuffix('"""') + f'\n\n{came}\n"""\n{rest}'
    for command in TIDY:
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", PACKAGE / FACES[awaiting], "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, check=True, encoding="utf-8").stdout
    return text


def main() -> None:
    """Write the faces that are not current, or name them."""
    made = {PACKAGE / face: blocking(awaiting) for awaiting, face in FACES.items()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv and stale:
        sys.exit(f"not current, run .ci/blocking_faces.py: {', '.join(path.name for path in stale)}")
    for path in stale:
        path.write_text(made[path], "utf-8")


if __name__ == "__main__":
    main()
