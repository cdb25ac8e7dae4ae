"""A claim that is bound to the volume of another is found at the write that does it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steersman.explore.volume_bindings import VolumeBindings
from steersman.testing.cluster import Cluster
from tests.harness.volumes import claim, volume

COMPLETED = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}


def take(cluster: Cluster, name: str) -> None:
    """Write the volume's half of a binding."""
    uid = cluster.get("PersistentVolumeClaim", name).metadata.uid
    ref = {"namespace": "default", "name": name, "uid": uid}
    cluster.patch("PersistentVolume", "v", {"spec": {"claimRef": ref}})


def bind(cluster: Cluster, name: str) -> None:
    """Write the claim's half of a binding."""
    cluster.patch("PersistentVolumeClaim", name, COMPLETED | {"spec": {"volumeName": "v"}})


def bind_in_turn(cluster: Cluster) -> None:
    take(cluster, "a")
    bind(cluster, "a")


def bind_twice(cluster: Cluster) -> None:
    bind_in_turn(cluster)
    bind(cluster, "b")


def take_away(cluster: Cluster) -> None:
    bind_in_turn(cluster)
    cluster.patch("PersistentVolume", "v", {"spec": {"claimRef": None}})
    take(cluster, "b")


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (bind_in_turn, []),
        (bind_twice, ["claim default/b was bound to volume v, which is another claim's"]),
        (take_away, ["volume v was bound to claim default/b as well"]),
    ],
)
def test_a_volume_that_is_bound_twice_is_found(write: Callable[[Cluster], None], found: list[str]) -> None:
    with Cluster(seed=3, nodes=0, controllers=[]) as cluster:
        bindings, violations = VolumeBindings(), list[str]()
        cluster.world.server.store.commit_hooks.append(
            lambda commit: violations.append(bindings.note(commit))
        )
        cluster.apply(volume("v"))
        for name in ("a", "b"):
            cluster.apply(claim(name))
        write(cluster)
    assert [each for each in violations if each] == found
