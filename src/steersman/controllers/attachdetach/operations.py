"""Operations on volumes: their names, limits and back-off, and what a round says about each."""

from __future__ import annotations

import msgspec

OPERATION_TIMEOUT = 120.0
"""Seconds that a CSI driver may take to answer a VolumeAttachment."""
UNMOUNT_TIMEOUT = 360.0
"""Seconds that a node which is not ready may take to unmount a volume."""
STATUS_WRITE_DELAY = 1.0
"""Seconds after which a change that was handed over to another write of the node's status is looked for."""
ROUND_DELAY = 1.0
"""Seconds after which a node is looked at again on which another round was acting."""
ATTACH = "volume_attach"
DETACH = "volume_detach"
"""Upstream's names of the operations, as they are in metrics."""

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 122.0
"""Seconds until a failed operation is tried again; they double with each failure."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    force_detach: bool = True
    """Detach a mounted volume from a node that is not ready when the time is over."""
    verify: bool = True
    """Attach a volume again, or take it as detached, that is reported as attached and no longer is."""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a volume on one node after a round: its reason, and when to look again."""

    because: str
    wait: float | None = None
    """Seconds; None: until something changes."""


class Operation(msgspec.Struct, frozen=True):
    """An attach or a detach under way: its VolumeAttachment was created or deleted, and not answered yet."""

    name: str
    started: float


class Backoff(msgspec.Struct, frozen=True):
    """The wait after an operation failed. Another operation need not wait."""

    operation: str
    failures: int
    until: float
