"""Where the embedded server answers the scenario differently from a real one, each by name and with a reason.

The names are those of the list in ``docs/compatibility.md``. The comparison holds both ways: what differs and is not
here is a fault, and so is what is here and differs no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One difference: which answers it is in, and where in them."""

    name: str
    asks: tuple[str, ...]
    """Patterns of what requests are called."""
    at: tuple[str, ...]
    """Patterns of where in the answer, and below."""
    what: str
    why: str

    def covers(self, ask: str, path: str) -> bool:
        places = (pattern for at in self.at for pattern in (at, f"{at}.*"))
        return any(fnmatchcase(ask, each) for each in self.asks) and any(
            fnmatchcase(path, each) for each in places
        )


DIFFERENCES = (
    Difference(
        "no protobuf for custom resources",
        ("custom: as protobuf",),
        ("body", "code", "headers"),
        "refused with 415",
        "upstream's handler panics and hangs up",
    ),
    Difference(
        "health checks",
        ("paths: readyz, in words",),
        ("body",),
        "other checks are named",
        "they are of other parts",
    ),
    Difference(
        "component statuses",
        ("paths: component statuses", "watching: what cannot be watched"),
        ("body.message", "body.details.kind", "headers.Warning"),
        "there are none, and they are spoken of as of any other resource",
        "deprecated since 1.19, and there are no such components",
    ),
    Difference(
        "column descriptions",
        ("*table*",),
        ("body.columnDefinitions.*.description", "body.*.object.columnDefinitions.*.description"),
        "columns of tables have no descriptions",
        "they are upstream's documentation",
    ),
    Difference(
        "expired watches of events",
        ("reading: a watch from what is forgotten",),
        ("body.object.message",),
        "refused in the words for any other resource",
        "upstream has no cache of events and passes on what etcd says",
    ),
    Difference(
        "what may not change",
        (
            "pods: what may not change",
            "pods: an ephemeral container changed",
            "changing: more room",
            "changing: another class",
        ),
        ("body.message", "body.details.causes.0.message"),
        "what would have changed is shown field by field, by the names on the wire",
        "upstream shows a line-wise difference of Go structs",
    ),
    Difference(
        "values in messages",
        ("changing: its work", "defaulting: put a job", "defaulting: put a indexed job"),
        ("body.message", "body.details.causes.*.message"),
        "a pod template is shown as JSON, as on the wire",
        "upstream shows it with all fields of its Go struct",
    ),
    Difference(
        "empty lists",
        (
            "changing: a slice",
            "everything: csi node",
            "everything: patch a csi node",
            "everything: delete a csi node",
        ),
        ("body.endpoints", "body.spec.drivers"),
        "a list that must be there and has nothing in it is []",
        "upstream says null, which typed clients must take for [] anyway",
    ),
    Difference(
        "blanks in revisions",
        ("everything: patch a revision",),
        ("body", "code"),
        "data of a ControllerRevision that differ only in their blanks are the same",
        "upstream compares bytes, and its own patching rewrites them",
    ),
    Difference(
        "custom resources of an unknown version",
        ("custom: another version",),
        ("headers.Warning",),
        "refused without the warning that their fields are unknown",
        "they were not looked at",
    ),
)

TABLES = (next(each for each in DIFFERENCES if each.name == "column descriptions"),)
"""The differences in chapters with tables."""

SERVERS = (
    *TABLES,
    Difference(
        "owners in other versions",
        (
            "conversion: converts: patch converted",
            "conversion: sets * patch converted",
            "conversion: is not asked: patch converted",
        ),
        ("body.metadata.managedFields",),
        "an owner of a custom resource in another version keeps fields that are written in this one",
        "upstream converts the object to the version of each owner, with a call to the webhook for each",
    ),
    Difference(
        "protobuf that is no UTF-8",
        ("messages: a text that is no UTF-8",),
        ("code",),
        "refused with 400, since the body cannot be decoded",
        "upstream decodes it, and cannot write it as JSON afterwards",
    ),
    Difference(
        "allocations in messages",
        ("devices: another allocation",),
        ("body.message", "body.details.causes.0.message"),
        "an allocation is shown as JSON, as on the wire",
        "upstream shows it with all fields of its Go struct",
    ),
)
"""The differences in the chapters about other servers."""


def unlisted(
    found: Mapping[str, list[tuple[str, Any, Any]]], known: tuple[Difference, ...] = DIFFERENCES
) -> Iterator[str]:
    """What differs, by request, and is not on the list."""
    for ask, places in found.items():
        for path, ours, theirs in places:
            if not any(each.covers(ask, path) for each in known):
                yield f"{ask}: {path}\n    here:  {ours!r}\n    there: {theirs!r}"


def obsolete(
    found: Mapping[str, list[tuple[str, Any, Any]]], known: tuple[Difference, ...] = DIFFERENCES
) -> Iterator[str]:
    """What is on the list and differs no more."""
    for each in known:
        for pattern in each.asks:
            asks = [ask for ask in found if fnmatchcase(ask, pattern)]
            if not any(each.covers(ask, path) for ask in asks for path, _, _ in found[ask]):
                yield f"{each.name}: {pattern}"
