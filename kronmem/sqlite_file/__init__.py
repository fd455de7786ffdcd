"""One SQLite file and safe transactions on it, for threads, processes, forks and interrupts.

A file that cannot be used is a `StoreError` that names it; it is never replaced by a new one.
"""

from kronmem.sqlite_file.failures import DiskFullError, FileMovedError
from kronmem.sqlite_file.file import MEMORY, SqliteFile
from kronmem.sqlite_file.opening import ENDINGS, FileSchema

__all__ = ["ENDINGS", "MEMORY", "DiskFullError", "FileMovedError", "FileSchema", "SqliteFile"]
