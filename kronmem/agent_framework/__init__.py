"""The Agent Framework pack: a context provider that recalls and captures, and a history that survives the process.

For `agent-framework-core` 1.x. Importing it opens nothing.
"""

try:
    from kronmem.agent_framework.providers import KronmemContextProvider, KronmemHistoryProvider
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "agent_framework":
        raise
    # With a hyphen: pip before 23.3 does not find the extra by its underscore.
    raise ImportError(
        "kronmem.agent_framework needs agent-framework-core 1.x: pip install 'kronmem[agent-framework]'"
    ) from missing

__all__ = ["KronmemContextProvider", "KronmemHistoryProvider"]
