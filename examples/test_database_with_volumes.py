"""A database with a volume for each replica, under virtual time: its data survive its pods, and a full disk is expanded.

pytest examples/test_database_with_volumes.py
"""

from typing import Any

import pytest

from steersman.testing import Cluster


def database(storage_class: str, replicas: int = 3) -> dict[str, Any]:
    labels = {"app": "db"}
    mounts = [{"name": "data", "mountPath": "/var/lib/db"}]
    container = {"name": "db", "image": "db:1", "volumeMounts": mounts}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }


def is_ready(cluster: Cluster, replicas: int = 3) -> bool:
    ready: int = cluster.get("StatefulSet", "db").status.readyReplicas
    return ready == replicas


def test_the_data_of_a_replica_survive_its_pod(cluster: Cluster) -> None:
    cluster.apply(database("standard"))
    cluster.wait_until(lambda: is_ready(cluster))
    before = cluster.get("PersistentVolumeClaim", "data-db-1")
    pod = cluster.get("Pod", "db-1")
    cluster.delete("Pod", "db-1")
    cluster.settle()
    assert is_ready(cluster)
    # A volume of the class "standard" is a directory of its node, so the pod is back on the same node.
    assert cluster.get("PersistentVolumeClaim", "data-db-1").metadata.uid == before.metadata.uid
    assert cluster.get("Pod", "db-1").spec.nodeName == pod.spec.nodeName


def test_a_replica_waits_for_the_node_that_has_its_data(cluster: Cluster) -> None:
    cluster.apply(database("standard", replicas=1))
    cluster.wait_until(lambda: is_ready(cluster, 1))
    home = cluster.get("Pod", "db-0").spec.nodeName
    cluster.node(home).cordon()
    cluster.delete("Pod", "db-0")
    cluster.advance(hours=1)
    (condition,) = (
        each for each in cluster.get("Pod", "db-0").status.conditions if each.type == "PodScheduled"
    )
    assert "2 node(s) didn't match PersistentVolume's node affinity" in condition.message
    cluster.node(home).uncordon()
    cluster.wait_until(lambda: is_ready(cluster, 1))


@pytest.mark.cluster(csi=True)
def test_a_full_disk_is_expanded_while_the_database_runs(cluster: Cluster) -> None:
    cluster.apply(database("csi-sim", replicas=1))
    cluster.wait_until(lambda: is_ready(cluster, 1))
    claim = ("PersistentVolumeClaim", "data-db-0")
    cluster.patch(*claim, {"spec": {"resources": {"requests": {"storage": "20Gi"}}}})
    cluster.wait_until(lambda: cluster.get(*claim).status.capacity["storage"] == "20Gi")
    assert cluster.get("Pod", "db-0").status.containerStatuses[0].restartCount == 0


@pytest.mark.cluster(csi=True)
def test_a_disk_that_cannot_be_provisioned_says_why(cluster: Cluster) -> None:
    broken = {"metadata": {"annotations": {"sim.steersman.dev/provision-error": "quota exceeded"}}}
    cluster.patch("StorageClass", "csi-sim", broken)
    cluster.apply(database("csi-sim"))
    cluster.advance(minutes=5)
    messages = {each.message for each in cluster.list("Event") if each.reason == "ProvisioningFailed"}
    assert messages == {'failed to provision volume with StorageClass "csi-sim": quota exceeded'}
    broken["metadata"]["annotations"] = {"sim.steersman.dev/provision-error": None}  # type: ignore[dict-item]
    cluster.patch("StorageClass", "csi-sim", broken)
    cluster.wait_until(lambda: is_ready(cluster))
