"""Which AutoGen is installed, and whether it works: several distributions share the directory `autogen/`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata

FAMILY = ("autogen", "ag2", "pyautogen", "autogen-agentchat", "autogen-core", "autogen-ext", "agent-framework-core")
CLASSIC = ("autogen", "ag2", "pyautogen", "autogen-agentchat")
REPAIR = 'pip uninstall -y ag2 pyautogen autogen && pip install "autogen[openai]>=0.14.1,<1"'


def installed(name: str) -> str | None:
    """The version of a distribution, None when it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """Those that are there, with their versions."""
    found = {name: installed(name) for name in names}
    return {name: version for name, version in found.items() if version}


def owners() -> list[str]:
    """The distributions that brought files of `import autogen`."""
    return [name for name in CLASSIC if _brings(name)]


def _brings(name: str) -> bool:
    try:
        files = metadata.files(name) or ()
    except metadata.PackageNotFoundError:
        return False
    return any(file.as_posix() == "autogen/__init__.py" for file in files)


def trouble(claims: list[str], works: Callable[[], str | None]) -> str | None:
    """The fault of classic AutoGen, in words; None when it is well or not there at all."""
    if len(claims) > 1:
        return (
            f"{' and '.join(claims)} share one directory; removing or updating either breaks the other. Run: {REPAIR}"
        )
    return works() if claims else None


def promised(found: Mapping[str, str]) -> list[str]:
    """pyautogen, whose newest releases bring no `import autogen` although everybody installs it for that."""
    return ["pyautogen"] if "pyautogen" in found else []


def lacking(found: Mapping[str, str]) -> str | None:
    """A part without which agents with a model cannot be made, in words; other models than OpenAI's need neither."""
    if "autogen" in found and not installed("openai"):
        return "autogen without openai: an agent with an OpenAI llm_config needs pip install 'kronmem[autogen]'"
    if "autogen-agentchat" in found and "autogen-ext" not in found:
        return "autogen-agentchat without autogen-ext, which has the models: pip install 'kronmem[agentchat]'"
    return None


def mcp_mismatch(found: Mapping[str, str]) -> str | None:
    """The MCP client that does not work with the installed major of mcp, in words; None when all do."""
    second = found.get("mcp", "0").partition(".")[0] == "2"
    if not second or "autogen-ext" not in found:
        return None
    return (
        f"AutoGen's McpWorkbench (autogen-ext {found['autogen-ext']}) cannot be imported with mcp {found['mcp']}: "
        "where you use it, run: pip install 'mcp<2'. `kronmem mcp` works with both"
    )


def imports(module: str) -> str | None:
    """Import it in a process of its own: the error's words, or None when it works."""
    code = f"import warnings; warnings.simplefilter('ignore'); import {module}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    lines = ran.stderr.strip().splitlines()
    return None if ran.returncode == 0 else (lines[-1] if lines else f"import {module} failed")
