"""`steersman explore cascade-background '--faults=crash_after_write(7)'`, seed 0: owned objects stayed for ever.

A fork that was given its parent's seed drew the same uids again, so a ReplicaSet had the uid of a namespace.
"""

from __future__ import annotations

import pytest

from steersman.api.kinds import NAMESPACES
from steersman.sim.world import World
from steersman.testing.cluster import Cluster


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_no_two_objects_of_a_cluster_have_the_same_uid(seed: int) -> None:
    with Cluster(seed) as cluster:
        for number in range(30):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{number}"}})
        uids = [
            uid
            for table in cluster.world.server.store.tables()
            for key in table.keys()  # noqa: SIM118  (a table is no dict)
            if (uid := table.get(key).metadata.uid)
        ]
    assert len(uids) > 30
    assert len(set(uids)) == len(uids)


def test_a_fork_with_its_parents_seed_gives_no_uid_out_twice() -> None:
    with World(3) as world, world.fork(3) as fork:
        made = fork.run(fork.api().create(NAMESPACES, "", {"metadata": {"name": "more"}}))
        known = [each.metadata.uid for each in world.run(world.api().list(NAMESPACES)).items]
        assert made.metadata.uid not in known
