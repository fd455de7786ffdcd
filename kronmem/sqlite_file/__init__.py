"""One SQLite file and safe transactions on it, for threads, processes, forks and interrupts.

A file that cannot be used is a `StoreError` that names it; it is never replaced by a new one.
"""

from kronmem.sqlite_file.file import ENDINGS, MEMORY, DiskFullError, FileMovedError, FileSchema, SqliteFile

__all__ = ["ENDINGS", "MEMORY", "DiskFullError", "FileMovedError", "FileSchema", "SqliteFile"]
