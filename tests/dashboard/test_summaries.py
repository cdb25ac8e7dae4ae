"""Summaries of objects: rows of documents and what an overview says of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from steersman.dashboard.summaries import Summary, summarize
from steersman.sim.kubelet.node import SIMULATED


def summary(kind: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> Summary:
    about = {"uid": "u", "name": "x", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return summarize({"apiVersion": "v1", "kind": kind, "metadata": {**about, **(meta or {})}, **fields})


def replicas(wanted: int, ready: int, **status: Any) -> dict[str, Any]:
    return {"spec": {"replicas": wanted}, "status": {"readyReplicas": ready, "replicas": wanted, **status}}


def container(ready: bool = False, **state: Any) -> dict[str, Any]:
    return {"name": "main", "ready": ready, "restartCount": 3, "state": state}


def condition(type_: str, status: str, reason: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason}


READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
ROWS: list[tuple[str, dict[str, Any], str, str]] = [
    ("Deployment", replicas(3, 3), "ok", "3/3 ready"),
    ("Deployment", replicas(3, 1), "waits", "1/3 ready"),
    ("Deployment", replicas(3, 3, updatedReplicas=1), "waits", "3/3 ready, 1 up to date"),
    ("Deployment", replicas(0, 0), "ok", "scaled to 0"),
    ("Deployment", replicas(3, 1, conditions=[condition("Progressing", "False")]), "bad", "1/3 ready"),
    ("ReplicaSet", replicas(0, 0), "done", "scaled to 0"),
    ("ReplicaSet", replicas(2, 0, conditions=[condition("ReplicaFailure", "True")]), "bad", "0/2 ready"),
    ("StatefulSet", replicas(2, 2, currentRevision="a", updateRevision="b"), "waits", "2/2 ready, updating"),
    (
        "DaemonSet",
        {"status": {"desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 3}},
        "ok",
        "3/3 ready",
    ),
    ("DaemonSet", {"status": {}}, "waits", "no node fits"),
    ("Job", {"status": {"active": 1}}, "ok", "0/1 completed, 1 active"),
    (
        "Job",
        {"status": {"succeeded": 1, "conditions": [condition("Complete", "True")]}},
        "done",
        "Complete",
    ),
    (
        "Job",
        {"status": {"conditions": [condition("Failed", "True", "BackoffLimitExceeded")]}},
        "bad",
        "BackoffLimitExceeded",
    ),
    ("CronJob", {"spec": {"schedule": "* * * * *"}}, "ok", "* * * * *"),
    ("Pod", {"status": READY}, "ok", "Running"),
    ("Pod", {"status": {"phase": "Succeeded"}}, "done", "Completed"),
    (
        "Pod",
        {
            "status": {
                "phase": "Running",
                "containerStatuses": [container(waiting={"reason": "CrashLoopBackOff"})],
            }
        },
        "bad",
        "CrashLoopBackOff",
    ),
    (
        "Pod",
        {"status": {"containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}},
        "waits",
        "ContainerCreating",
    ),
    (
        "Pod",
        {"status": {"initContainerStatuses": [container(waiting={"reason": "ErrImagePull"})]}},
        "bad",
        "Init:ErrImagePull",
    ),
    (
        "Pod",
        {"status": {"conditions": [condition("PodScheduled", "False", "Unschedulable")]}},
        "waits",
        "Unschedulable",
    ),
    ("Pod", {"status": {"phase": "Failed", "reason": "Evicted"}}, "bad", "Evicted"),
    ("Node", {"status": {"conditions": [condition("Ready", "True")]}}, "ok", "Ready"),
    ("Node", {"status": {"conditions": [condition("Ready", "Unknown")]}}, "bad", "NotReady, silent"),
    (
        "Node",
        {"spec": {"unschedulable": True}, "status": {"conditions": [condition("Ready", "True")]}},
        "waits",
        "Ready, cordoned",
    ),
    ("Service", {"spec": {"type": "LoadBalancer"}}, "waits", "LoadBalancer, no address yet"),
    ("PersistentVolumeClaim", {"status": {"phase": "Lost"}}, "bad", "Lost"),
    (
        "HorizontalPodAutoscaler",
        {"status": {"conditions": [condition("ScalingActive", "False", "FailedGetResourceMetric")]}},
        "bad",
        "FailedGetResourceMetric",
    ),
    (
        "PodDisruptionBudget",
        {"status": {"expectedPods": 3, "disruptionsAllowed": 0}},
        "waits",
        "0 of 3 pods may be evicted",
    ),
    ("Namespace", {"status": {"phase": "Active"}}, "ok", "Active"),
    ("Widget", {"status": {"conditions": [condition("Ready", "False", "NoParts")]}}, "waits", "NoParts"),
]


@pytest.mark.parametrize(("kind", "fields", "state", "status"), ROWS)
def test_an_object_is_told_in_a_word_and_in_words(
    kind: str, fields: dict[str, Any], state: str, status: str
) -> None:
    told = summary(kind, **fields)
    assert (told.state, told.status) == (state, status)


def test_a_pod_has_a_node_restarts_and_containers() -> None:
    spec = {"nodeName": "node-1", "containers": [{"name": "main"}, {"name": "side"}]}
    status = {**READY, "containerStatuses": [container(True), container()]}
    told = summary("Pod", spec=spec, status=status)
    assert (told.node, told.restarts, told.ready, told.wanted) == ("node-1", 6, 1, 2)
    assert told.pods is UNSET


def test_a_node_has_taints_and_says_whether_it_is_simulated() -> None:
    spec = {"providerID": "sim://n", "taints": [{"key": "gone", "effect": "NoExecute"}]}
    told = summary("Node", spec=spec)
    assert (told.simulated, told.cordoned, told.taints) == (True, False, ("gone:NoExecute",))
    machine = {"providerID": "cloud://zone/n"}
    assert not summary("Node", spec=machine).simulated
    assert summary("Node", spec=machine, meta={"annotations": {SIMULATED: "true"}}).simulated


def test_an_object_that_is_deleted_is_gone_and_one_with_a_controller_has_an_owner() -> None:
    owners = [{"uid": "a", "controller": False}, {"uid": "b", "controller": True}]
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners}
    told = summary("Pod", meta=meta, status=READY)
    assert (told.state, told.status, told.owner) == ("gone", "Terminating", "b")


@pytest.mark.parametrize(
    "odd", [{"spec": 3}, {"status": []}, {"spec": {"replicas": "many"}}, {"metadata": None}]
)
@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in ROWS}))
def test_an_odd_object_is_summarized_all_the_same(kind: str, odd: dict[str, Any]) -> None:
    assert summarize({"kind": kind, "metadata": {"uid": "u"}, **odd}).kind == kind
