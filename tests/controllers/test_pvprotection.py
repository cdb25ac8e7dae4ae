"""persistentvolume-protection: upstream's rows, and bound volumes that are deleted in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import Conflict, Forbidden
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeStatus
from steersman.controllers.pvprotection import FINALIZER, controller
from steersman.intent.actions import Action, Update
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk
from tests.harness import volumes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def volume(phase: str = "", *, deleted: bool = False, protected: bool = True) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(
            name="pv",
            uid="pv",
            resourceVersion="7",
            deletionTimestamp=NOW if deleted else None,
            finalizers=(FINALIZER,) if protected else (),
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def sync(found: PersistentVolume, refusals: list[Any] | None = None) -> list[Action[Any]]:
    """The actions after a change of a volume; a round that fails is repeated."""
    (watch,) = controller.watches
    assert watch.when is not None
    if not watch.when(found):
        return []
    done: list[Action[Any]] = []
    left = list(refusals or ())
    while True:
        seen = controller.see(StaticCaches(controller, found), found.key)
        assert seen is not None
        try:
            walk(controller.decide(seen, NOW), left[:1], recorded=done)
        except (Forbidden, Conflict):
            left = left[1:]
            continue
        return done


ADD = Update(volume())
REMOVE = Update(volume(deleted=True, protected=False))
TWICE = [Forbidden("no"), Forbidden("no")]


@pytest.mark.parametrize(
    ("found", "refusals", "expected"),
    [
        (volume(protected=False), [], [ADD]),
        (volume(), [], []),
        (volume(protected=False), TWICE, [ADD] * 3),
        (volume(deleted=True), [], [REMOVE]),
        (volume(deleted=True), TWICE, [REMOVE] * 3),
        (volume("Bound", deleted=True), [], []),
        (volume("Bound", deleted=True, protected=False), [], []),
        (volume("Released", deleted=True), [], [Update(volume("Released", deleted=True, protected=False))]),
        (volume("Failed", deleted=True), [], [Update(volume("Failed", deleted=True, protected=False))]),
        (volume("Bound", protected=False), [], [Update(volume("Bound"))]),
        (volume(deleted=True), [Conflict("it was bound meanwhile")], [REMOVE] * 2),
    ],
    ids=[
        "no finalizer",
        "finalizer",
        "adding it fails twice",
        "deleted",
        "removing it fails twice",
        "deleted while bound",
        "deleted without the finalizer",
        "deleted and released",
        "deleted after a failure",
        "bound without the finalizer",
        "changed since the cache saw it",
    ],
)
def test_a_volume_keeps_the_finalizer_while_it_is_bound(
    found: PersistentVolume, refusals: list[Any], expected: list[Action[Any]]
) -> None:
    """The first six are upstream's."""
    assert sync(found, refusals) == expected


# -- in a cluster ---------------------------------------------------------------------------------


def phase(cluster: Cluster, value: str) -> None:
    cluster.patch("persistentvolumes", "disk", {"status": {"phase": value}}, subresource="status")


def test_a_bound_volume_that_is_deleted_goes_when_its_claim_releases_it() -> None:
    with Cluster(controllers=("persistentvolume-protection-controller",), nodes=0) as cluster:
        cluster.apply(volumes.volume("disk"))
        phase(cluster, "Bound")
        cluster.settle()
        cluster.delete("persistentvolumes", "disk")
        cluster.settle()
        (found,) = cluster.list("persistentvolumes")
        assert found.metadata.finalizers == (FINALIZER,)
        phase(cluster, "Released")
        cluster.settle()
        assert not cluster.list("persistentvolumes")


def test_a_volume_that_is_older_than_the_admission_plugin_gets_the_finalizer() -> None:
    with Cluster(controllers=("persistentvolume-protection-controller",), nodes=0) as cluster:
        cluster.crash_manager()
        cluster.apply(volumes.volume("disk"))
        cluster.patch("persistentvolumes", "disk", {"metadata": {"finalizers": None}})
        cluster.start_manager()
        cluster.settle()
        assert cluster.get("persistentvolumes", "disk").metadata.finalizers == (FINALIZER,)
