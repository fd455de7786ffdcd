"""The AutoGen 0.4+ pack: a Memory, declarative tools, capture and persisted teams.

For `autogen-agentchat` 0.4.9 to 0.7. Importing it opens nothing.
"""

try:
    from kronmem.agentchat.memory import KronMemory
    from kronmem.agentchat.persist import persisted
    from kronmem.agentchat.run_capture import ModelExtractor, remember_run
    from kronmem.agentchat.tools import ForgetTool, RecallTool, RememberTool
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("autogen_core", "autogen_agentchat"):
        raise
    raise ImportError(
        "kronmem.agentchat needs autogen-agentchat 0.4.9 to 0.7: pip install 'kronmem[agentchat]'. "
        "(For `import autogen`, classic AutoGen, use kronmem.autogen.)"
    ) from missing

__all__ = [
    "ForgetTool",
    "KronMemory",
    "ModelExtractor",
    "RecallTool",
    "RememberTool",
    "persisted",
    "remember_run",
]
