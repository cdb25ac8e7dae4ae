"""ControllerRevisions: what a workload looked like once, kept so that one can go back to it."""

from __future__ import annotations

import msgspec

from steersman.api.kinds import Object, Opaque
from steersman.api.scheme import Kind, register


class ControllerRevision(Object, frozen=True):
    """All of it, so that one can be put back as a whole."""

    data: Opaque = Opaque(b"null")
    """Raw JSON if it came over the wire, plain data if it came from the in-process server."""
    revision: int = msgspec.field(default_factory=int)


CONTROLLERREVISIONS = register(
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions", True, ControllerRevision)
)
