"""Revisions: the numbers of a Deployment's ReplicaSets in its rollout history.

The new ReplicaSet always has the highest number. A ReplicaSet that becomes the new one again gets the next
number and keeps its earlier ones in an annotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from steersman.api.kinds import Deployment, Object, ReplicaSet
from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.controllers.deployment.replicasets import ReplicaSets, age, annotated, history_limit, size
from steersman.controllers.deployment.scale import DESIRED_REPLICAS, MAX_REPLICAS

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
ROLLBACK_TO = "deprecated.deployment.rollback.to"

MAX_HISTORY_LENGTH = 2000
"""The longest revision-history annotation, in characters: about a hundred entries."""

NOT_COPIED = frozenset(
    {LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO}
)
"""Annotations that are never copied between a Deployment and its ReplicaSets."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def parse_revision(text: str) -> int | None:
    """A revision as a 64-bit number; None where the text is none."""
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def revision_of(obj: Object) -> int | None:
    """An object's revision; 0 where it has none yet, None where it is not a number."""
    text = obj.metadata.annotations.get(REVISION)
    return 0 if text is None else parse_revision(text)


def max_revision(sets: Iterable[ReplicaSet]) -> int:
    return max((0, *(revision_of(rs) or 0 for rs in sets)))


def last_revision(sets: Iterable[ReplicaSet]) -> int:
    """The revision before the highest one; 0 where there is none."""
    known = sorted(revision for rs in sets if (revision := revision_of(rs)) is not None and revision > 0)
    return known[-2] if len(known) > 1 else 0


def copied_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations that a Deployment and its ReplicaSets have in common."""
    return {name: value for name, value in annotations.items() if name not in NOT_COPIED}


def with_revision(rs: ReplicaSet, revision: int, annotations: Mapping[str, str]) -> ReplicaSet:
    """The new ReplicaSet with its revision and the Deployment's annotations.

    A revision above the given one stays: old ReplicaSets may have been deleted since.
    """
    text = rs.metadata.annotations.get(REVISION, "")
    current = parse_revision(text) if text else 0
    if current is None:
        # Edited by a user; upstream leaves such a ReplicaSet alone.
        return rs
    updated = dict(annotations)
    if current < revision:
        updated[REVISION] = str(revision)
        if REVISION in rs.metadata.annotations:
            updated[REVISION_HISTORY] = append_history(
                rs.metadata.annotations.get(REVISION_HISTORY, ""), text
            )
    return annotated(rs, updated)


def append_history(history: str, revision: str, limit: int = MAX_HISTORY_LENGTH) -> str:
    """A revision-history annotation with one more entry, without its oldest entries where it would be too long."""
    entries = history.split(",")
    if not entries[0]:
        return revision
    length = len(history) + len(revision) + 1
    dropped = 0
    while length > limit and dropped < len(entries):
        length -= len(entries[dropped]) + 1
        dropped += 1
    if length > limit:
        return history
    return ",".join([*entries[dropped:], revision])


def sync_new(sets: ReplicaSets) -> ReplicaSets:
    """The ReplicaSets with the new one's revision, annotations and ``minReadySeconds`` set from the Deployment."""
    new = sets.new
    if new is None:
        return sets
    deployment = sets.deployment
    synced = with_revision(
        new, max_revision(sets.old) + 1, copied_annotations(deployment.metadata.annotations)
    )
    seconds = deployment.spec.minReadySeconds
    if synced.spec.minReadySeconds != seconds:
        synced = replace(synced, spec=replace(synced.spec, minReadySeconds=seconds))
    return sets.updated({new.metadata.name: synced})


def revised_annotations(deployment: Deployment, new: ReplicaSet | None) -> Mapping[str, str]:
    """The Deployment's annotations with the revision of its new ReplicaSet; the same object where it has it."""
    annotations = deployment.metadata.annotations
    if new is None:
        return annotations
    revision = new.metadata.annotations.get(REVISION, "")
    return annotations if annotations.get(REVISION) == revision else {**annotations, REVISION: revision}


def beyond_history_limit(sets: ReplicaSets) -> list[ReplicaSet]:
    """The old ReplicaSets to delete: empty and beyond ``revisionHistoryLimit``, lowest revision first."""
    keep = history_limit(sets.deployment)
    if keep is None:
        return []
    candidates = [rs for rs in sets.old if rs.metadata.deletionTimestamp is None]
    excess = len(candidates) - keep
    if excess <= 0:
        return []
    # differs: a ReplicaSet with an invalid revision counts as one without any; upstream compares it by
    # age, which is no total order where three are compared.
    candidates.sort(key=lambda rs: (revision_of(rs) or 0, age(rs)))
    return [rs for rs in candidates[:excess] if _is_empty(rs)]


def _is_empty(rs: ReplicaSet) -> bool:
    """Whether a ReplicaSet has no pods by a status that reflects its present spec."""
    return (
        size(rs) == 0 and rs.status.replicas == 0 and rs.metadata.generation <= rs.status.observedGeneration
    )
