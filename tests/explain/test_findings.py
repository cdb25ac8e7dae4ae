"""Findings as pure functions: rows of documents and messages to causes, and the ranking of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.explain.explanation import explain, rank
from steersman.explain.model import Case, Finding, Ref, Snapshot, Weight
from steersman.explain.render import text
from steersman.explain.situations import findings
from steersman.explain.situations.predicates import read_predicates
from steersman.explain.words import at, brief, duration, some

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def found(document: dict[str, Any], *others: dict[str, Any], rounds: Any = None) -> list[Finding]:
    return list(findings(Case(Snapshot(NOON, [document, *others], rounds=rounds), document)))


@pytest.mark.parametrize(
    ("message", "code", "cause"),
    [
        (
            "0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            "resources",
            "no node of 3 fits: 1 has too little memory, 2 have a taint that the pod does not tolerate "
            "(node-role.kubernetes.io/control-plane:)",
        ),
        (
            "0/2 nodes are available: 2 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2",
            "cordoned",
            "no node of 2 fits: 2 are cordoned",
        ),
        (
            "0/4 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 1 node(s) were unschedulable, "
            "2 node(s) didn't match PersistentVolume's node affinity. preemption: 0/4 nodes are available: 4 Preemption is not helpful",
            "no-local-volume",
            "no node of 4 fits: 1 has no volume for its claims, and none can be provisioned there, 1 is cordoned, "
            "2 cannot reach its volume, which is bound to another node or zone",
        ),
        (
            "0/3 nodes are available: 3 node(s) had no available volume zone.",
            "volume-zone",
            "no node of 3 fits: 3 cannot reach its volume, which is bound to another node or zone",
        ),
        (
            "0/3 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, 2 node(s) did not have enough free storage.",
            "anti-affinity",
            "no node of 3 fits: 1 has a pod whose anti-affinity excludes it, 2 have too little storage for its claims",
        ),
        (
            "0/2 nodes are available: 1 node(s) had no available disk, 1 node(s) unavailable due to one or more pvc(s) bound to "
            "non-existent pv(s).",
            "disk",
            "no node of 2 fits: 1 has a pod that uses its volume, which takes one pod only, its claim is bound to a "
            "PersistentVolume that does not exist",
        ),
        (
            "0/3 nodes are available: request gpu-2: device class fast does not exist. still not schedulable",
            "unschedulable",
            "no node of 3 fits: request gpu-2: device class fast does not exist",
        ),
        (
            "0/3 nodes are available: 1 node(s) exceed max volume count, 2 Too many pods.",
            "volume-limit",
            "no node of 3 fits: 1 has its full number of volumes, 2 have their full number of pods",
        ),
        ("0/0 nodes are available: .", "no-nodes", "there is no node at all"),
        (
            "0/1 nodes are available: 1 node(s) had a bad day.",
            "unschedulable",
            "no node of 1 fits: 1 node(s) had a bad day",
        ),
        ("", "unschedulable", "not scheduled: the scheduler gives no reason"),
        ("strange", "unschedulable", "not scheduled: strange"),
    ],
)
def test_predicates_of_the_scheduler_are_said_in_words(message: str, code: str, cause: str) -> None:
    assert read_predicates(message)[:2] == (code, cause)


def finding(code: str, weight: Weight, depth: int = 0, name: str = "x") -> Finding:
    return Finding(code=code, subject=Ref("Pod", "a", name), cause=code, weight=weight, depth=depth)


def test_the_deepest_of_the_causes_that_explain_most_comes_first() -> None:
    ranked = rank(
        [
            finding("note", Weight.NOTE, 9),
            finding("shallow", Weight.BLOCKED, 1),
            finding("deep", Weight.BLOCKED, 3),
            finding("waits", Weight.WAITS, 5),
            finding("consequence", Weight.CONSEQUENCE, 7),
        ]
    )
    assert [each.code for each in ranked] == ["deep", "shallow", "waits", "consequence", "note"]
    assert rank([finding("deep", Weight.BLOCKED, 3), finding("root", Weight.ROOT)])[0].code == "root"


def test_a_consequence_without_a_cause_is_the_answer() -> None:
    assert (
        rank([finding("consequence", Weight.CONSEQUENCE), finding("note", Weight.NOTE, 2)])[0].code
        == "consequence"
    )


def test_equal_causes_are_one_finding() -> None:
    (one,) = rank([finding("image", Weight.BLOCKED, 2, name) for name in ("a", "b", "c")])
    assert one.sentence == "Pod a and 2 more: image."


def pod(**status: Any) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "a", "uid": "u1", "creationTimestamp": "2026-01-02T11:00:00Z"}
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n"}, "status": status}


def test_a_container_out_of_memory_is_told_from_one_that_crashes() -> None:
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-02T11:59:50Z"}
    status = {
        "name": "main",
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    (oom,) = found(pod(phase="Running", containerStatuses=[status]))
    assert oom.code == "oom"
    assert oom.cause == (
        "container main is killed because it uses more memory than its limit (OOMKilled), 3 restarts so far"
    )
    assert (
        oom.next
        == "the kubelet starts it again at 12:00:30 (in 30 s); the pause doubles each time, up to 5 min"
    )


def test_a_multi_attach_error_is_named() -> None:
    event = {
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "a"},
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": "web", "uid": "u1"},
        "reason": "FailedAttachVolume",
        "message": 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) old',
        "lastTimestamp": "2026-01-02T11:59:00Z",
    }
    since = {**event, "message": str(event["message"]).replace("Multi-Attach error", "Waiting for detach")}
    for each in (event, since):
        told = next(one for one in found(pod(phase="Pending"), each) if one.code == "multi-attach")
        assert told.cause == (
            "its volume pvc-1 is still attached to another node: Volume is already used by pod(s) old"
        )
        assert told.controller == "persistentvolume-attach-detach-controller"
        assert told.remedy.startswith("wait until the old pod is gone")


def test_a_node_is_silent_since_the_last_renewal_of_its_lease_and_not_since_its_last_status() -> None:
    ready = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "lastHeartbeatTime": "2026-01-02T11:55:00Z",
        "lastTransitionTime": "2026-01-02T11:59:00Z",
    }
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {}, "status": {"conditions": [ready]}}
    (told,) = found(node)
    assert told.cause == "its kubelet has not reported for 1 min 50 s (NodeStatusUnknown)"


def test_a_claim_in_use_by_several_pods_names_them_in_the_plural() -> None:
    held = {"deletionTimestamp": "2026-01-02T11:59:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "a", **held},
        "spec": {"volumeName": "disk"},
        "status": {"phase": "Bound"},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "a"},
            "spec": {"nodeName": "n", "volumes": volumes},
            "status": {"phase": "Running"},
        }
        for name in ("one", "two")
    ]
    (told,) = found(claim, *pods)
    assert told.cause == (
        "it is deleted, but Pods one, two still use it (finalizer kubernetes.io/pvc-protection)"
    )


def test_finalizers_that_a_bound_claim_holds_are_not_told_beside_it() -> None:
    finalizers = [
        "kubernetes.io/pv-protection",
        "external-provisioner.volume.kubernetes.io/finalizer",
        "external-attacher/csi-example-com",
    ]
    meta = {"name": "disk", "deletionTimestamp": "2026-01-02T11:59:00Z", "finalizers": finalizers}
    claim = {"namespace": "a", "name": "data"}
    volume = {
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": {"claimRef": claim},
        "status": {"phase": "Bound"},
    }
    assert [each.code for each in found(volume)] == ["volume-in-use"]
    foreign = {**volume, "metadata": {**meta, "finalizers": [*finalizers, "example.com/hold"]}}
    assert "waits for the finalizer example.com/hold," in " ".join(each.cause for each in found(foreign))


def test_the_trace_tells_of_failed_rounds_stale_caches_and_fights() -> None:
    meta = {"name": "web", "namespace": "a", "generation": 1}
    deployment = {"kind": "Deployment", "metadata": meta, "spec": {}, "status": {"observedGeneration": 1}}
    rounds = {
        "rounds": [
            {
                "controller": "deployment-controller",
                "namespace": "a",
                "name": "web",
                "ending": {"failure": "etcd is slow", "code": 500, "retryAfter": 5.0},
                "next": "2026-01-02T12:00:05Z",
            }
        ],
        "keys": [
            {"controller": "deployment-controller", "name": "web", "waitsForCacheOf": "replicasets.apps"}
        ],
        "fights": [
            {
                "kind": "Deployment",
                "namespace": "a",
                "name": "web",
                "actors": ["hpa", "another client"],
                "turns": 7,
            }
        ],
    }
    told = {each.code: each for each in found(deployment, rounds=rounds)}
    assert told["failing"].next == "it tries again at 12:00:05 (in 5 s)"
    assert told["stale-cache"].cause.endswith(
        "waits until its cache of replicasets.apps shows its own last write"
    )
    assert told["fight"].cause == "hpa, another client keep changing it in turns, 7 times in 10 minutes"


KINDS = (
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "Service",
    "Node",
    "Namespace",
    "PersistentVolumeClaim",
)
FIELDS = (
    "phase",
    "replicas",
    "conditions",
    "containerStatuses",
    "active",
    "failed",
    "type",
    "volumes",
    "metrics",
    "finalizers",
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
    max_leaves=6,
)
PART = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=4)


@given(kind=st.sampled_from(KINDS), spec=PART, status=PART)
def test_no_object_however_odd_stops_an_explanation(
    kind: str, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    meta = {"name": "web", "namespace": "a", "uid": "u1", "creationTimestamp": "2026-01-02T11:00:00Z"}
    odd = {"kind": kind, "metadata": meta, "spec": spec, "status": status}
    told = explain(Snapshot(NOON, [odd]), odd)
    assert told.summary.startswith(f"{kind} a/web wants")
    assert text(told)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (90_000, "1 d 1 h")]
)
def test_durations_have_two_units(seconds: int, words: str) -> None:
    assert duration(timedelta(seconds=seconds)) == words


def test_words() -> None:
    assert at(NOON + timedelta(seconds=5), NOON) == "at 12:00:05 (in 5 s)"
    assert at(NOON - timedelta(days=2), NOON) == "at 2025-12-31 12:00 (2 d ago)"
    assert some(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert brief("a\n b. ") == "a b"
    assert brief("a\x1b[2Jb") == "a [2Jb", "a message cannot write to the terminal"
    assert len(brief("x" * 999)) == 300


def autoscaler(
    conditions: list[dict[str, str]], spec: dict[str, Any] | None = None, **status: Any
) -> dict[str, Any]:
    return {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "a"},
        "spec": {"minReplicas": 1, "maxReplicas": 5, **(spec or {})},
        "status": {"conditions": conditions, "currentReplicas": 3, "desiredReplicas": 3, **status},
    }


ABLE = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
UTILIZATION = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}


@pytest.mark.parametrize(
    ("document", "code", "cause", "next_"),
    [
        (
            autoscaler(
                [{**ABLE, "reason": "ScaleDownStabilized"}, ACTIVE], lastScaleTime="2026-01-02T11:58:00Z"
            ),
            "stabilization",
            "fewer replicas are needed, but a recommendation of the last 300 s asked for more (stabilization window)",
            "it scales at 12:03:00 (in 3 min) at the latest",
        ),
        (
            autoscaler(
                [ABLE, ACTIVE, {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}]
            ),
            "bound",
            "it is at its maxReplicas of 5, and its metrics ask for more",
            "",
        ),
        (
            autoscaler(
                [ABLE, ACTIVE],
                {"metrics": [UTILIZATION]},
                currentMetrics=[{"resource": {"current": {"averageUtilization": 53}}}],
            ),
            "tolerance",
            "the utilization of 53% is within the tolerance of 10% around its target of 50%",
            "it looks again every 15 s",
        ),
        (
            autoscaler(
                [
                    {
                        "type": "AbleToScale",
                        "status": "False",
                        "reason": "FailedGetScale",
                        "message": "not found",
                    }
                ]
            ),
            "no-target",
            "its target None None cannot be read: not found",
            "it looks again every 15 s",
        ),
    ],
)
def test_an_autoscaler_says_why_it_does_not_scale(
    document: dict[str, Any], code: str, cause: str, next_: str
) -> None:
    (one,) = found(document)
    assert (one.code, one.cause, one.next) == (code, cause, next_)


def lease(renewed: str, holder: str = "master-1") -> dict[str, Any]:
    meta = {"name": "kube-controller-manager", "namespace": "kube-system"}
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"kind": "Lease", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("leases", "cause"),
    [
        ([], "no controller manager holds the lease kube-system/kube-controller-manager"),
        (
            [lease("2026-01-02T11:50:00.000000Z")],
            "no controller manager leads, and master-1 renewed its lease 10 min ago",
        ),
        (
            [lease("2026-01-02T11:59:58.000000Z")],
            "though master-1 leads: the controller is off, or it is refused",
        ),
    ],
)
def test_a_spec_that_no_controller_looks_at_names_the_leader(
    leases: list[dict[str, Any]], cause: str
) -> None:
    meta = {"name": "web", "namespace": "a", "generation": 2, "creationTimestamp": "2026-01-02T11:00:00Z"}
    document = {"kind": "StatefulSet", "metadata": meta, "spec": {}, "status": {"observedGeneration": 1}}
    (one,) = found(document, *leases)
    assert one.code == "not-observed"
    assert cause in one.cause


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        (
            {"kind": "Job", "spec": {"backoffLimit": 6}, "status": {"failed": 2}},
            "2 pods failed, and the next comes after a back-off of 20 s",
        ),
        (
            {"kind": "CronJob", "spec": {"suspend": True}},
            "it is suspended (spec.suspend), so no Job is created at its times",
        ),
        (
            {
                "kind": "Deployment",
                "spec": {"replicas": 2, "minReadySeconds": 30},
                "status": {"readyReplicas": 2},
            },
            "2 pods must stay ready for 30 s (minReadySeconds) to be available",
        ),
        (
            {"kind": "PersistentVolumeClaim", "spec": {"volumeName": "v"}, "status": {"phase": "Lost"}},
            "its PersistentVolume v does not exist any more",
        ),
        (
            {"kind": "PersistentVolumeClaim", "spec": {}},
            "it names no StorageClass, and no class is the default one",
        ),
        (
            {"kind": "Service", "spec": {"type": "LoadBalancer"}},
            "no cloud provider has picked it up, so it gets no external address",
        ),
        (
            {
                "kind": "Node",
                "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no network"}]},
            },
            "its kubelet reports that it is not ready: no network",
        ),
        (
            {"kind": "Deployment", "spec": {"replicas": 0}},
            "it is scaled to 0 replicas",
        ),
    ],
)
def test_a_row_of_situations(document: dict[str, Any], cause: str) -> None:
    meta = {"name": "x", "namespace": "a", "uid": "u", "creationTimestamp": "2026-01-02T11:00:00Z"}
    assert cause in [each.cause for each in found({"metadata": meta, **document})]
