"""What a namespace that is being deleted says of itself, in upstream's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

DISCOVERY = "NamespaceDeletionDiscoveryFailure"
PARSING = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT = "NamespaceDeletionContentFailure"
REMAINING = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"


class Word(NamedTuple):
    """A condition but for its times."""

    status: str
    reason: str
    message: str


FINE: Mapping[str, Word] = {
    DISCOVERY: Word("False", "ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: Word("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT: Word(
        "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    REMAINING: Word("False", "ContentRemoved", "All content successfully removed"),
    FINALIZERS: Word("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Each condition, where there is nothing to complain of; in the order they are written."""


def undiscovered(message: str, groups: int) -> Word:
    """Not all that is served is known; of some groups, where it is not of all."""
    if groups:
        message = f"Discovery failed for some groups, {groups} failing: {message}"
    return Word("True", "DiscoveryFailed", message)


def unparsed(names: Iterable[str]) -> Word:
    message = ", ".join(f"unexpected GroupVersion string: {name}" for name in names)
    return Word("True", "GroupVersionParsingFailed", message)


def failed(errors: Iterable[str]) -> Word:
    """Not everything could be deleted."""
    said = sorted(errors)
    return Word(
        "True",
        "ContentDeletionFailed",
        f"Failed to delete all resource types, {len(said)} remaining: {', '.join(said)}",
    )


def remaining(counts: Mapping[tuple[str, str], int]) -> Word:
    """How many objects are left of each resource: by name and group."""
    each = sorted(f"{name}.{group} has {count} resource instances" for (name, group), count in counts.items())
    return Word("True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(each)}")


def finalizers(counts: Mapping[str, int]) -> Word:
    """How many objects are left by the finalizers they wait for."""
    each = sorted(f"{name} in {count} resource instances" for name, count in counts.items())
    return Word(
        "True",
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {', '.join(each)}",
    )


def updated(
    conditions: Iterable[Mapping[str, Any]], words: Mapping[str, Word], now: datetime
) -> list[dict[str, Any]]:
    """The conditions as they should be; those of others stay, and a time changes with the status alone."""
    found = [dict(condition) for condition in conditions]
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    for type_, fine in FINE.items():
        word = words.get(type_, fine)
        known = next((condition for condition in found if condition.get("type") == type_), None)
        if known is None:
            known = {"type": type_}
            found.append(known)
        if known.get("status") != word.status:
            known["lastTransitionTime"] = moment
        known.update(word._asdict())
    return found
