"""Protection finalizers: which objects get one, and which may lose it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steersman.api.kinds import Object, ObjectMeta
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.controllers.shared.protection import (
    add_finalizer,
    is_deletion_candidate,
    needs_finalizer,
    needs_sync,
    remove_finalizer,
)
from steersman.intent.actions import Update

PV, PVC = "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"
DELETED = datetime(2026, 1, 1, tzinfo=UTC)


def volume(deleted: bool, *finalizers: str) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(name="pv1", deletionTimestamp=DELETED if deleted else None, finalizers=finalizers)
    )


def claim(deleted: bool, *finalizers: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name="pvc1",
            namespace="default",
            deletionTimestamp=DELETED if deleted else None,
            finalizers=finalizers,
        )
    )


@pytest.mark.parametrize(
    ("obj", "finalizer", "candidate", "needy"),
    [
        (volume(False), PV, False, True),
        (claim(False), PVC, False, True),
        (volume(False, PV), PV, False, False),
        (claim(False, PVC), PVC, False, False),
        (volume(True), PV, False, False),
        (claim(True), PVC, False, False),
        (volume(True, PV), PV, True, False),
        (claim(True, PVC), PVC, True, False),
        (volume(True, PVC), PV, False, False),
        (volume(False, PVC), PV, False, True),
    ],
)
def test_the_finalizer_is_for_objects_that_are_not_being_deleted(
    obj: Object, finalizer: str, candidate: bool, needy: bool
) -> None:
    """Upstream's tables of IsDeletionCandidate and NeedToAddFinalizer."""
    assert is_deletion_candidate(obj, finalizer) == candidate
    assert needs_finalizer(obj, finalizer) == needy
    assert needs_sync(obj, finalizer) == (candidate or needy)


def test_other_finalizers_stay_where_they_are() -> None:
    assert add_finalizer(claim(False, "a"), PVC) == Update(claim(False, "a", PVC))
    assert remove_finalizer(claim(True, "a", PVC, "b"), PVC) == Update(claim(True, "a", "b"))
