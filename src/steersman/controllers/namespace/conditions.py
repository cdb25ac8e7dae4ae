"""The deletion conditions of a terminating namespace, with upstream's reasons and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from steersman.api.meta import format_time

DISCOVERY = "NamespaceDeletionDiscoveryFailure"
PARSING = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT = "NamespaceDeletionContentFailure"
REMAINING = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"


class State(NamedTuple):
    """The state of a condition, without its time."""

    status: str
    reason: str
    message: str


HEALTHY: Mapping[str, State] = {
    DISCOVERY: State("False", "ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: State("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT: State(
        "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    REMAINING: State("False", "ContentRemoved", "All content successfully removed"),
    FINALIZERS: State("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The state of each condition where nothing is wrong, in the order they are written."""


def discovery_failed(message: str, groups: int) -> State:
    """Discovery failed: for ``groups`` API groups, or as a whole where that is 0."""
    if groups:
        message = f"Discovery failed for some groups, {groups} failing: {message}"
    return State("True", "DiscoveryFailed", message)


def parsing_failed(names: Iterable[str]) -> State:
    message = ", ".join(f"unexpected GroupVersion string: {name}" for name in names)
    return State("True", "GroupVersionParsingFailed", message)


def deletion_failed(errors: Iterable[str]) -> State:
    """Some requests failed, or objects remain without a reason."""
    messages = sorted(errors)
    return State(
        "True",
        "ContentDeletionFailed",
        f"Failed to delete all resource types, {len(messages)} remaining: {', '.join(messages)}",
    )


def content_remaining(counts: Mapping[tuple[str, str], int]) -> State:
    """Objects remain; the counts are by resource name and group."""
    each = sorted(f"{name}.{group} has {count} resource instances" for (name, group), count in counts.items())
    return State("True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(each)}")


def finalizers_remaining(counts: Mapping[str, int]) -> State:
    """Objects with finalizers remain; the counts are by finalizer."""
    each = sorted(f"{name} in {count} resource instances" for name, count in counts.items())
    return State(
        "True",
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {', '.join(each)}",
    )


def update_conditions(
    conditions: Iterable[Mapping[str, Any]], states: Mapping[str, State], now: datetime
) -> list[dict[str, Any]]:
    """The conditions in these states, `HEALTHY` where none is given.

    Conditions of other writers stay. The transition time changes with the status only.
    """
    found = [dict(condition) for condition in conditions]
    timestamp = format_time(now)
    for type_, healthy in HEALTHY.items():
        state = states.get(type_, healthy)
        known = next((condition for condition in found if condition.get("type") == type_), None)
        if known is None:
            known = {"type": type_}
            found.append(known)
        if known.get("status") != state.status:
            known["lastTransitionTime"] = timestamp
        known.update(state._asdict())
    return found
