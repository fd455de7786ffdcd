"""The first recall of a process: the engine is imported before the deadline begins, whichever pack asks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kronmem import Client
from kronmem.packs.deadlines import warm_up
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


def warmed() -> None:
    """Wait for the warm-ups under way."""
    for thread in threading.enumerate():
        if thread.name == "kronmem-warm-up":
            thread.join(60)


async def first_hook(framework: str, url: str) -> None:
    """A hook that itself asks the store nothing."""
    if framework == "classic":
        from kronmem.autogen import MemoryAgent

        with Client(url) as client:
            agent = MemoryAgent("helper", memory=client.agent("ann"), recall=False, capture=False, llm_config=False)
            warmed()
            assert not Path(url.removeprefix("sqlite:///")).exists()
            agent.generate_reply([{"role": "user", "content": "Hello."}])
            warmed()
        return
    memory = FRAMEWORKS[framework][0]("ann", url, 60.0)
    warmed()
    assert not Path(url.removeprefix("sqlite:///")).exists()
    if framework == "agentchat":
        from autogen_core.model_context import UnboundedChatCompletionContext

        await memory.memory.update_context(UnboundedChatCompletionContext())
    else:
        await memory.turn("", "Fine.")
    warmed()
    await memory.close()


@pytest.mark.anyio
@pytest.mark.parametrize("framework", [pytest.param("ag2", marks=pytest.mark.slow), *sorted({*FRAMEWORKS} - {"ag2"})])
async def test_the_store_is_opened_in_the_background_from_the_first_hook_on(framework: str, tmp_path: Path) -> None:
    if lacking := missing(framework):
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    await first_hook(framework, f"sqlite:///{tmp_path}/memory.db")
    assert (tmp_path / "memory.db").exists()


def test_a_warm_up_counts_no_access_and_needs_no_user(tmp_path: Path) -> None:
    with Client(f"sqlite:///{tmp_path}/memory.db") as client:
        client.remember("ann", "Ann can warm up soup.")
        warm_up(client.agent("ann"))
        warmed()
        assert [one.access_count for one in client.memories("ann")] == [0]

    def nobody() -> str:
        raise LookupError("no user")

    with Client(f"sqlite:///{tmp_path}/other.db") as client:
        warm_up(client.agent(nobody))
        warmed()
        assert (tmp_path / "other.db").exists()
