"""`steersman explore min-ready-seconds --seed=2 '--faults=reset(verb=update_status, kind=replicasets, nth=6)'`.

A write that got no answer held its key back for five minutes: until the cache had reached the revision of the
whole server, which it does not while nothing of its own kind changes.
"""

from __future__ import annotations

import pytest

from steersman.sim import faults
from steersman.sim.faults import Fault
from steersman.testing.cluster import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""


@pytest.mark.parametrize(
    "fault",
    [
        faults.connection_reset("update_status", "deployments", nth=1),
        faults.connection_reset("update_status", "replicasets", nth=2),
        faults.connection_reset("create", "replicasets"),
        faults.connection_reset("create", "pods", nth=2),
        faults.response_lost(1),
        faults.response_lost(3, times=3),
        faults.response_lost(9),
        faults.error_response(504, "create", "pods"),
    ],
    ids=str,
)
def test_a_write_without_an_answer_holds_nothing_up(fault: Fault) -> None:
    with Cluster(seed=2, faults=[fault]) as cluster:
        cluster.apply(WEB)
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.availableReplicas == 3, timeout=10)
        assert len(cluster.list("pods", selector="app=web")) == 3, "and nothing is made twice"


def test_a_delete_without_an_answer_holds_nothing_up() -> None:
    with Cluster(
        seed=2, faults=[faults.connection_reset("delete", "pods"), faults.response_lost(14)]
    ) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        cluster.scale("Deployment", "web", 1)
        cluster.wait_until(lambda: len(cluster.list("pods", selector="app=web")) == 1, timeout=10)
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.replicas == 1, timeout=10)


def test_who_may_create_and_not_read_goes_on_after_a_lost_answer() -> None:
    """`steersman explore service-account --seed=104 '--faults=response_lost(1)'`: the account controller may not
    list accounts with its own rights, so it never learned what had become of the one it made."""
    with Cluster(seed=2, faults=[faults.response_lost(1)]) as cluster:
        for _ in range(2):
            cluster.delete("ServiceAccount", "default")
            cluster.wait_until(lambda: cluster.get("ServiceAccount", "default"), timeout=10)
        looks = [str(entry) for entry in cluster.history("Namespace", "default", "")]
    assert not [look for look in looks if "forbidden" in look]
