"""Objects that are served in two versions: one table, in which they are of one of them.

`FACES` says of the other version where its objects are, and how they become what is there and back. Nothing
is lost on the way: what a version has no field for it has an annotation for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from steersman.server.versions import autoscalers, events


class Face(NamedTuple):
    """A version whose objects are stored as another's."""

    table: str
    serve: Callable[[Any], Any]
    """From what is stored to what clients see."""
    store: Callable[[Any], Any]


FACES: Mapping[tuple[str, str, str], Face] = {
    ("autoscaling", "v1", "horizontalpodautoscalers"): Face(
        "horizontalpodautoscalers.autoscaling", autoscalers.older, autoscalers.newer
    ),
    ("events.k8s.io", "v1", "events"): Face("events", events.newer, events.older),
}
"""By group, version and plural."""
