"""Why a data directory or a snapshot is not used. Each message is one line: where, what, and the way out.

::

    Refused
    ├── Foreign     not ours: nothing in it was touched
    ├── Newer       made by a later version of this program
    ├── InUse       another server has it
    ├── Corrupt     ours, but damaged
    └── Unusable    the file system says no
"""

from __future__ import annotations

from pathlib import Path


class Refused(Exception):
    """A directory or file that is not used; what is in it stays as it is."""

    def __init__(self, path: Path, what: str, way_out: str) -> None:
        super().__init__(f"{path}: {what}; {way_out}")
        self.path = path


class Foreign(Refused):
    """There is something in the way that this program did not make."""


class Newer(Refused):
    """It was made by a later version of this program."""


class InUse(Refused):
    """Another process has it."""


class Corrupt(Refused):
    """It is ours but not what was written."""


class Unusable(Refused):
    """It cannot be read or written."""


RESTORE = (
    "move it away and start anew, or restore a snapshot into a new directory (steersman snapshot restore)"
)
"""The way out of a directory that is damaged."""
