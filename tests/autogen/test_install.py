"""The three broken installs, and what importing the pack says about each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kronmem.autogen.classic import explain, installed

ROOT = Path(__file__).parent.parent.parent
GONE = ModuleNotFoundError("No module named 'autogen'", name="autogen")


@pytest.mark.parametrize(
    ("error", "versions", "expected"),
    [
        (GONE, {}, 'pip install "kronmem[autogen]"'),
        (GONE, {"pyautogen": "0.10.0"}, 'pyautogen 0.10.0 no longer ships `import autogen`. Run: pip install "autogen'),
        (
            GONE,
            {"ag2": "1.2.1"},
            'ag2 1.2.1 no longer ships `import autogen`. Run: pip install "autogen[openai]>=0.14.1,<1"',
        ),
        (
            ImportError("cannot import name 'ConversableAgent'"),
            {"ag2": "1.2.1"},
            "pip uninstall -y ag2 pyautogen autogen &&",
        ),
        (ModuleNotFoundError("No module named 'autogen.io'", name="autogen.io"), {}, "pip uninstall -y ag2 pyautogen"),
    ],
)
def test_a_broken_install_names_the_command_that_repairs_it(
    error: ImportError, versions: dict[str, str], expected: str
) -> None:
    assert expected in explain(error, versions.get)


def test_what_is_installed_is_looked_up() -> None:
    assert installed("pytest") == pytest.__version__
    assert installed("no-such-distribution") is None


def imported(code: str, *paths: Path) -> str:
    """What a fresh process says while it imports the pack."""
    path = ":".join(map(str, [*paths, ROOT]))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
    return ran.stderr.strip().splitlines()[-1]


def test_a_missing_autogen_is_a_helpful_import_error() -> None:
    said = imported("import sys; sys.modules['autogen'] = None; import kronmem; import kronmem.autogen")
    assert said.startswith("ImportError: classic AutoGen")
    assert "pip install" in said


def test_a_damaged_autogen_is_a_helpful_import_error(tmp_path: Path) -> None:
    (tmp_path / "autogen").mkdir()
    (tmp_path / "autogen" / "__init__.py").write_text("")
    said = imported("import kronmem.autogen", tmp_path)
    assert said.startswith("ImportError: the 'autogen' package is damaged")
    assert "pip uninstall -y ag2 pyautogen autogen &&" in said
