"""A feature gate that changes a controller of kube-controller-manager changes it here."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.kinds import Container, ObjectMeta, Pod, PodSpec, ResourceRequirements
from steersman.controllers.horizontalpodautoscaler.replica_calculator import pod_requests
from steersman.testing import Cluster

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web:v1"}]}}


def deployment(replicas: int) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def job(*, suspend: bool) -> dict[str, Any]:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "web:v1"}]}}
    spec = {"suspend": suspend, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec}


@pytest.mark.parametrize(("on", "shown"), [(True, 0), (False, None)])
def test_pods_that_terminate_are_counted_where_the_gate_is_on(on: bool, shown: int | None) -> None:
    with Cluster(gates={"DeploymentReplicaSetTerminatingReplicas": on}) as cluster:
        cluster.apply(deployment(2))
        cluster.advance(minutes=1)
        (replicaset,) = cluster.list("replicasets")
        assert replicaset.status.readyReplicas == 2
        assert replicaset.status.terminatingReplicas == shown
        assert cluster.get("Deployment", "web").status.terminatingReplicas == shown


@pytest.mark.parametrize("on", [True, False])
def test_what_a_pod_would_cost_counts_where_the_gate_is_on(on: bool) -> None:
    with Cluster(gates={"PodDeletionCost": on}) as cluster:
        cluster.apply(deployment(6))
        cluster.advance(minutes=1)
        without = cluster.fork()
        without.apply(deployment(1))
        without.advance(minutes=1)
        (otherwise_left,) = without.list("pods")
        # The pod that would stay is the first to go.
        names = [pod.metadata.name for pod in cluster.list("pods")]
        for name in names:
            cost = "-1" if name == otherwise_left.metadata.name else "1"
            note = {"controller.kubernetes.io/pod-deletion-cost": cost}
            cluster.patch("Pod", name, {"metadata": {"annotations": note}})
        cluster.apply(deployment(1))
        cluster.advance(minutes=1)
        (left,) = cluster.list("pods")
        assert (left.metadata.name != otherwise_left.metadata.name) is on


@pytest.mark.parametrize("on", [True, False])
def test_a_suspended_job_has_not_started_where_the_gate_is_on(on: bool) -> None:
    with Cluster(nodes=0, gates={"MutableSchedulingDirectivesForSuspendedJobs": on}) as cluster:
        cluster.apply(job(suspend=False))
        cluster.advance(seconds=5)
        assert cluster.get("Job", "work").status.startTime is not None
        cluster.apply(job(suspend=True))
        cluster.advance(seconds=5)
        assert (cluster.get("Job", "work").status.startTime is None) is on


@pytest.mark.parametrize(("on", "pods"), [(True, 0), (False, 1)])
def test_a_job_is_left_to_another_controller_where_the_gate_is_on(on: bool, pods: int) -> None:
    with Cluster(gates={"JobManagedBy": on}) as cluster:
        of = job(suspend=False)
        of["spec"]["managedBy"] = "example.com/controller"
        cluster.apply(of)
        cluster.advance(seconds=5)
        assert len(cluster.list("pods")) == pods


@pytest.mark.parametrize(("on", "pods", "terminating"), [(True, 1, 1), (False, 2, None)])
def test_a_job_waits_for_a_terminating_pod_where_the_gate_is_on(
    on: bool, pods: int, terminating: int | None
) -> None:
    with Cluster(gates={"JobPodReplacementPolicy": on}) as cluster:
        of = job(suspend=False)
        of["spec"]["podReplacementPolicy"] = "Failed"
        template = of["spec"]["template"]
        template["metadata"] = {"annotations": {"sim.steersman.dev/shutdown": "60"}}
        template["spec"] |= {"terminationGracePeriodSeconds": 60}
        template["spec"]["containers"][0]["command"] = ["sleep", "3600"]
        cluster.apply(of)
        cluster.advance(seconds=5)
        (pod,) = cluster.list("pods")
        cluster.delete("Pod", pod.metadata.name)
        cluster.advance(seconds=20)
        assert len(cluster.list("pods")) == pods
        assert cluster.get("Job", "work").status.terminating == terminating


@pytest.mark.parametrize(("on", "amount"), [(True, 500), (False, 1000)])
def test_what_a_pod_asks_for_as_a_whole_counts_where_the_gate_is_on(on: bool, amount: int) -> None:
    asks = ResourceRequirements(requests={"cpu": "1"})
    spec = PodSpec(
        containers=(Container(name="c", resources=asks),),
        resources=ResourceRequirements(requests={"cpu": "500m"}),
    )
    pod = Pod(metadata=ObjectMeta(name="p"), spec=spec)
    assert pod_requests([pod], "", "cpu", pod_level=on) == {"p": amount}
