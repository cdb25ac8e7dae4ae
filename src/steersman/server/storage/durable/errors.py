"""Errors of data directories and snapshots. Each message is one line: the path, the problem, the remedy.

::

    DataDirError
    ├── ForeignData     not made by this program; nothing in it was touched
    ├── NewerFormat     made by a later version of this program
    ├── DataDirInUse    another server uses it
    ├── CorruptData     made by this program, but damaged
    └── UnusablePath    the file system refuses access
"""

from __future__ import annotations

from pathlib import Path


class DataDirError(Exception):
    """A data directory or snapshot cannot be used; its contents stay as they are."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path


class ForeignData(DataDirError):
    """The path holds data that this program did not make."""


class NewerFormat(DataDirError):
    """The data was written by a later version of this program."""


class DataDirInUse(DataDirError):
    """Another process uses the data directory."""


class CorruptData(DataDirError):
    """The data is damaged."""


class UnusablePath(DataDirError):
    """The path cannot be read or written."""


RESTORE = (
    "move it away and start anew, or restore a snapshot into a new directory (steersman snapshot restore)"
)
"""The remedy for a damaged data directory."""
