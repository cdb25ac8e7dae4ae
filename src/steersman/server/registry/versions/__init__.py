"""Objects that are served in two versions: one table, in which they are of one of them.

`FACES` says of the other version where its objects are, and how they become what is there and back. Nothing
is lost on the way: what a version has no field for it has an annotation for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from steersman.api.generated import load
from steersman.server.registry.versions import event, horizontalpodautoscaler


class Face(NamedTuple):
    """A version whose objects are stored as another's."""

    table: str
    serve: Callable[[Any], Any]
    """From what is stored to what clients see."""
    store: Callable[[Any], Any]
    like: tuple[str, str, str]
    """Whose objects are stored: group, version and plural."""
    through: bool = False
    """Whether everything but reading is done to what is stored, by the rules of that version."""


class Kin(NamedTuple):
    """The other version of an object."""

    api_version: str
    kind: str
    type: type[Any]
    turn: Callable[[Any], Any]
    """From an object of this version to one of the other."""


FACES: Mapping[tuple[str, str, str], Face] = {
    ("autoscaling", "v1", "horizontalpodautoscalers"): Face(
        "horizontalpodautoscalers.autoscaling",
        horizontalpodautoscaler.older,
        horizontalpodautoscaler.newer,
        ("autoscaling", "v2", "horizontalpodautoscalers"),
        through=True,
    ),
    ("events.k8s.io", "v1", "events"): Face("events", event.newer, event.older, ("", "v1", "events")),
}
"""By group, version and plural."""


def kin(group: str, version: str, plural: str, kind: str) -> Kin | None:
    """The other version of a kind, if it has one. Between groups upstream loses track of owners."""
    for (their_group, their_version, their_plural), face in FACES.items():
        if not face.through:
            continue
        if (group, version, plural) == face.like:
            return _kin(their_group, their_version, kind, face.serve)
        if (group, version, plural) == (their_group, their_version, their_plural):
            return _kin(face.like[0], face.like[1], kind, face.store)
    return None


def _kin(group: str, version: str, kind: str, turn: Callable[[Any], Any]) -> Kin:
    return Kin(f"{group}/{version}" if group else version, kind, load(group, version, kind).type, turn)
