"""Two days of ten people in all four packs: what the model is shown of what the memory knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import chats
from tests.packs.frameworks import missing

PEOPLE = Path(chats.__file__).with_name("chat_dev.json")
LEAST = {"shown": 0.80, "in_block": 0.78, "complete": 0.75, "precision": 0.62, "kept": 0.95}
MOST = {"repeated": 0.02, "stale_first": 0.15, "chatter": 0.12, "block_tokens": 160}


@pytest.mark.slow
@pytest.mark.parametrize("pack", chats.PACKS)
def test_a_model_is_shown_what_its_turn_needs_and_little_else(pack: str, tmp_path: Path) -> None:
    if gone := missing(pack):
        pytest.skip(f"{gone} not installed")
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.benchmarks.chats", str(PEOPLE), "--pack", pack, "--json", str(figures)]
    subprocess.run(command, check=True, timeout=600)  # of its own: the packs' frameworks warn and log
    found = json.loads(figures.read_text("utf-8"))[pack]["measures"]
    assert {name: found[name] for name, least in LEAST.items() if found[name] < least} == {}
    assert {name: found[name] for name, most in MOST.items() if found[name] > most} == {}
