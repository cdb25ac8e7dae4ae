"""Revisions: the numbers by which ReplicaSets of one Deployment are told apart in its history.

The new ReplicaSet always has the highest number. One that becomes the new one again gets the next
number, and its earlier ones are kept in its own history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from steersman.api.kinds import Deployment, Object, ReplicaSet
from steersman.controllers.deployment.limits import history
from steersman.controllers.deployment.replicasets import Family, age, annotated, size
from steersman.controllers.deployment.scale import DESIRED, MAX

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
ROLLBACK = "deprecated.deployment.rollback.to"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

HISTORY_LENGTH = 2000
"""The longest revision-history, in characters: about a hundred entries."""

OWN = frozenset({LAST_APPLIED, REVISION, HISTORY, DESIRED, MAX, ROLLBACK})
"""Annotations that mean something on their own object only, and are never copied."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def number(text: str) -> int | None:
    """A revision as a number; None where it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def revision_of(obj: Object) -> int | None:
    """An object's revision; 0 where it has none yet, None where it has one that is no number."""
    text = obj.metadata.annotations.get(REVISION)
    return 0 if text is None else number(text)


def highest(sets: Iterable[ReplicaSet]) -> int:
    return max((0, *(revision_of(rs) or 0 for rs in sets)))


def last(sets: Iterable[ReplicaSet]) -> int:
    """The revision before the highest one; 0 where there is none."""
    known = sorted(revision for rs in sets if (revision := revision_of(rs)) is not None and revision > 0)
    return known[-2] if len(known) > 1 else 0


def shared(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations a Deployment and its ReplicaSets have in common."""
    return {name: value for name, value in annotations.items() if name not in OWN}


def numbered(rs: ReplicaSet, revision: int, annotations: Mapping[str, str]) -> ReplicaSet:
    """The new ReplicaSet with its revision and the Deployment's annotations.

    A revision that is higher than the given one stays: old sets may have gone since it was given.
    """
    text = rs.metadata.annotations.get(REVISION, "")
    had = number(text) if text else 0
    if had is None:
        # Somebody's handiwork; upstream leaves such a set alone.
        return rs
    wanted = dict(annotations)
    if had < revision:
        wanted[REVISION] = str(revision)
        if REVISION in rs.metadata.annotations:
            wanted[HISTORY] = appended(rs.metadata.annotations.get(HISTORY, ""), text)
    return annotated(rs, wanted)


def appended(past: str, revision: str, limit: int = HISTORY_LENGTH) -> str:
    """A revision history with one more entry; the oldest ones make room for it."""
    entries = past.split(",")
    if not entries[0]:
        return revision
    length = len(past) + len(revision) + 1
    dropped = 0
    while length > limit and dropped < len(entries):
        length -= len(entries[dropped]) + 1
        dropped += 1
    if length > limit:
        return past
    return ",".join([*entries[dropped:], revision])


def recorded(family: Family) -> Family:
    """The family with the new ReplicaSet as the Deployment wants it recorded: revision,
    annotations, ``minReadySeconds``."""
    new = family.new
    if new is None:
        return family
    deployment = family.deployment
    wanted = numbered(new, highest(family.olds) + 1, shared(deployment.metadata.annotations))
    seconds = deployment.spec.minReadySeconds
    if wanted.spec.minReadySeconds != seconds:
        wanted = replace(wanted, spec=replace(wanted.spec, minReadySeconds=seconds))
    return family.having({new.metadata.name: wanted})


def revised(deployment: Deployment, new: ReplicaSet | None) -> Mapping[str, str]:
    """The Deployment's annotations with the revision of its new ReplicaSet."""
    has = deployment.metadata.annotations
    if new is None:
        return has
    revision = new.metadata.annotations.get(REVISION, "")
    return has if has.get(REVISION) == revision else {**has, REVISION: revision}


def outdated(family: Family) -> list[ReplicaSet]:
    """The old ReplicaSets that are past the history to keep, and empty. Lowest revision first."""
    keep = history(family.deployment)
    if keep is None:
        return []
    alive = [rs for rs in family.olds if rs.metadata.deletionTimestamp is None]
    excess = len(alive) - keep
    if excess <= 0:
        return []
    # differs: a set whose revision is no number counts as one without any; upstream compares it by
    # age, which is no order at all where three sets are compared.
    alive.sort(key=lambda rs: (revision_of(rs) or 0, age(rs)))
    return [rs for rs in alive[:excess] if _empty(rs)]


def _empty(rs: ReplicaSet) -> bool:
    """Whether a ReplicaSet has no pods, and says so of its present spec."""
    return (
        size(rs) == 0 and rs.status.replicas == 0 and rs.metadata.generation <= rs.status.observedGeneration
    )
