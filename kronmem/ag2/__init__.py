"""The AG2 1.x pack: plugins that recall, capture and bring tools, and that resume conversations.

For `ag2` 1.x, which is imported as `ag2`; `import autogen` is classic AutoGen. Importing it opens nothing.
"""

try:
    from kronmem.ag2.persist import persisted
    from kronmem.ag2.plugin import KronmemPlugin
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "ag2":
        raise
    raise ImportError(
        "kronmem.ag2 needs ag2 1.x: pip install 'kronmem[ag2]'. "
        "(For `import autogen`, classic AutoGen and ag2 below 1, use kronmem.autogen.)"
    ) from missing

__all__ = ["KronmemPlugin", "persisted"]
