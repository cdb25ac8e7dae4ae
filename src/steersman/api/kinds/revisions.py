"""Views of ControllerRevisions, the stored templates of DaemonSets and StatefulSets."""

from __future__ import annotations

import msgspec

from steersman.api.kinds import Object, Opaque
from steersman.api.scheme import Kind, register


class ControllerRevision(Object, frozen=True):
    """All fields, because it is updated as a whole."""

    data: Opaque = Opaque(b"null")
    """Raw JSON if it was received over HTTP, plain data if it came from the in-process server."""
    revision: int = msgspec.field(default_factory=int)


CONTROLLERREVISIONS = register(
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions", True, ControllerRevision)
)
