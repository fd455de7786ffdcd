"""The first recall of a process: the engine is imported before the deadline begins, whichever pack asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kronmem import Client
from tests.packs.frameworks import FRAMEWORKS, missing

ROOT = Path(__file__).parent.parent.parent

SLOW_IMPORT = """
import sys, time
from importlib.abc import MetaPathFinder

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "kronmem.engine.engine":
            time.sleep(5)  # past every deadline below

import anyio
from kronmem import AsyncClient, Client, memory_tools
from tests.packs.frameworks import FRAMEWORKS

how, url = sys.argv[1:]
asked = "Which tea does Ann drink?"

async def turn():
    memory = FRAMEWORKS[how][0]("ann", url, 4.0)
    seen = await memory.turn(asked, "Green tea.")
    await memory.close()
    return str(seen.prompts)

async def awaited_tool():
    async with AsyncClient(url) as client:
        return await memory_tools(client.agent("ann"), timeout=4.0).recall(asked)

async def tool():
    with Client(url) as client:
        return memory_tools(client.agent("ann"), timeout=4.0).recall(asked)

assert "kronmem.engine.engine" not in sys.modules
sys.meta_path.insert(0, Slow())
shown = anyio.run({"tool": tool, "awaited tool": awaited_tool}.get(how, turn))
assert "green tea" in shown, shown
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [*FRAMEWORKS, "tool", "awaited tool"])
def test_the_first_recall_of_a_process_does_not_spend_its_deadline_on_imports(how: str, tmp_path: Path) -> None:
    if how in FRAMEWORKS and (lacking := missing(how)):
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    url = f"sqlite:///{tmp_path}/memory.db"
    with Client(url) as client:
        client.remember("ann", "Ann drinks green tea.")
    done = subprocess.run([sys.executable, "-c", SLOW_IMPORT, how, url], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
