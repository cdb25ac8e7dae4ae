"""The parts of an object's page, each from a snapshot: owner graph, timeline, YAML."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from steersman.dashboard import graph, timeline
from steersman.dashboard.live_objects import LiveObjects, LiveSnapshot
from steersman.dashboard.object_page import to_yaml
from steersman.dashboard.time_slices import TimeSlices
from steersman.explain.explanation import explain
from steersman.explain.model import Document, Ref, Snapshot

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def thing(kind: str, name: str, owner: str = "", namespace: str = "default", **fields: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"}
    if owner:
        above, _, called = owner.partition("-")
        meta["ownerReferences"] = [{"kind": above, "name": called, "uid": owner, "controller": True}]
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields}


def edges(found: graph.Graph) -> set[tuple[str, str, str]]:
    return {(str(one), relation, str(other)) for one, other, relation in found.edges}


CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}], "nodeName": "n1"}
WORLD: list[Document] = [
    thing("Deployment", "web"),
    thing("ReplicaSet", "web1", "Deployment-web"),
    thing("Pod", "a", "ReplicaSet-web1", spec=CLAIM, status={"phase": "Pending"}),
    thing("Pod", "b", "ReplicaSet-web1", spec={"nodeName": "n2"}),
    thing("Pod", "stranger"),
    thing("Node", "n1", namespace=""),
    thing("Node", "n2", namespace=""),
    thing("PersistentVolumeClaim", "data"),
    thing("HorizontalPodAutoscaler", "web", spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}}),
]


@pytest.mark.parametrize("subject", [0, 1, 2], ids=["top", "middle", "bottom"])
async def test_the_graph_goes_up_to_the_owner_and_down_to_nodes_and_claims(subject: int) -> None:
    found = await graph.build(Snapshot(NOW, WORLD), WORLD[subject], TimeSlices())
    assert edges(found) == {
        ("Deployment web", "owns", "ReplicaSet web1"),
        ("ReplicaSet web1", "owns", "Pod a"),
        ("ReplicaSet web1", "owns", "Pod b"),
        ("Pod a", "runs on", "Node n1"),
        ("Pod b", "runs on", "Node n2"),
        ("Pod a", "uses", "PersistentVolumeClaim data"),
        ("HorizontalPodAutoscaler web", "uses", "Deployment web"),
    }
    told = found.json()
    assert {each["name"] for each in told["nodes"]} == {"web", "web1", "a", "b", "n1", "n2", "data"}
    assert told["leftOut"] == 0


async def test_a_large_graph_keeps_the_object_its_owners_and_what_is_not_well() -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pods = [thing("Pod", f"p{number}", "ReplicaSet-web1", status=ready) for number in range(500)]
    ill = thing("Pod", "ill", "ReplicaSet-web1", status={"phase": "Failed"})
    found = await graph.build(Snapshot(NOW, [*WORLD[:2], *pods, ill]), pods[400], TimeSlices())
    assert len(found.documents) == graph.MAX_NODES
    assert found.left_out == 503 - graph.MAX_NODES
    for name in ("web", "web1", "ill", "p400"):
        assert name in {ref.name for ref in found.documents}


async def test_owners_that_own_each_other_end_the_walk() -> None:
    one, other = thing("ReplicaSet", "a", "ReplicaSet-b"), thing("ReplicaSet", "b", "ReplicaSet-a")
    found = await graph.build(Snapshot(NOW, [one, other]), one, TimeSlices())
    assert len(found.documents) == 2


def round_(number: int, controller: str, name: str, **fields: Any) -> dict[str, Any]:
    started = f"2026-01-01T11:00:{number:02d}Z"
    base = {"number": number, "controller": controller, "namespace": "default", "name": name}
    return {**base, "started": started, "took": 0.5, "causes": [], "steps": [], **fields}


def cause(kind: str, name: str, writer: int = 0) -> dict[str, Any]:
    told = {"type": "event", "text": f"{kind} default/{name} added", "kind": kind}
    return {**told, "namespace": "default", "name": name, **({"round": writer} if writer else {})}


def write(resource: str, name: str) -> dict[str, Any]:
    return {"verb": "create", "resource": resource, "subresource": "", "namespace": "default", "name": name}


def step(*writes: dict[str, Any], outcome: str = "") -> dict[str, Any]:
    return {"action": "create 2 pods", "outcome": outcome, "writes": list(writes)}


ROUNDS = [
    round_(
        1,
        "deployment-controller",
        "web",
        causes=[cause("Deployment", "web")],
        steps=[step(write("replicasets.apps", "web1"))],
        ending={"wake": 600, "because": "rollout in progress"},
    ),
    round_(
        2,
        "replicaset-controller",
        "web1",
        causes=[cause("ReplicaSet", "web1", writer=1)],
        steps=[step(outcome="Forbidden: exceeded quota")],
        ending={"failure": "exceeded quota", "code": 403, "retryAfter": 5},
    ),
    round_(
        3, "statefulset-controller", "web", causes=[cause("StatefulSet", "web")], ending={"rest": "ready"}
    ),
    round_(
        4, "replicaset-controller", "other", causes=[cause("ReplicaSet", "other")], ending={"rest": "ready"}
    ),
]


def test_the_timeline_links_cause_decision_and_write_to_what_they_led_to() -> None:
    snapshot = Snapshot(NOW, WORLD, rounds={"rounds": ROUNDS})
    told = timeline.build(snapshot, WORLD[0], [Ref("ReplicaSet", "default", "web1")])
    assert [(each.kind, each.round, each.caused, each.text) for each in told] == [
        ("cause", 1, (1,), "Deployment default/web added"),
        ("decision", 1, (2,), "wakes in 10 min: rollout in progress"),
        ("write", 1, (2,), "create replicasets.apps default/web1"),
        ("cause", 2, (2,), "ReplicaSet default/web1 added"),
        ("decision", 2, (), "failed, tries again in 5 s: exceeded quota"),
        ("write", 2, (), "create 2 pods: Forbidden: exceeded quota"),
    ], "without the rounds of a StatefulSet of the same name, and of another ReplicaSet"
    assert told[2].subject == "ReplicaSet/default/web1"
    assert told[0].at < told[1].at


def test_events_and_conditions_stand_among_the_rounds_by_their_time() -> None:
    meta = {"uid": "e", "name": "e", "namespace": "default"}
    about = {"kind": "Deployment", "namespace": "default", "name": "web"}
    event = {
        "kind": "Event",
        "metadata": meta,
        "involvedObject": about,
        "reason": "ScalingReplicaSet",
        "message": "Scaled up",
        "lastTimestamp": "2026-01-01T11:00:01Z",
        "source": {"component": "deployment-controller"},
        "count": 2,
    }
    available = {"type": "Available", "status": "False", "lastTransitionTime": "2026-01-01T10:00:00Z"}
    web = {**WORLD[0], "status": {"conditions": [available]}}
    snapshot = Snapshot(NOW, [web, event], rounds={"rounds": ROUNDS[:1]})
    told = timeline.build(snapshot, web, ())
    assert [each.kind for each in told] == ["condition", "cause", "decision", "write", "event"]
    assert told[-1].text == "ScalingReplicaSet: Scaled up"
    assert timeline.events(snapshot, web)[0]["count"] == 2
    assert timeline.conditions(web)[0]["since"] == "2026-01-01T10:00:00Z"


def test_a_round_with_hundreds_of_writes_lists_few_and_counts_the_others() -> None:
    writes = [write("pods", f"web-{number}") for number in range(128)]
    big = round_(
        1,
        "replicaset-controller",
        "web1",
        causes=[cause("ReplicaSet", "web1")],
        steps=[{**step(*writes), "moreWrites": 372}],
        ending={"rest": "created"},
    )
    told = timeline.build(Snapshot(NOW, WORLD, rounds={"rounds": [big]}), WORLD[1], ())
    listed = [each.text for each in told if each.kind == "write"]
    assert len(listed) == timeline.MAX_WRITES + 1
    assert listed[-1] == "480 more writes"


def test_yaml_has_no_managed_fields() -> None:
    document = thing("ConfigMap", "c", data={"key": "value"})
    document["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    assert yaml.safe_load(to_yaml(document)) == thing("ConfigMap", "c", data={"key": "value"})


def test_the_data_of_a_secret_is_never_shown() -> None:
    secret = thing("Secret", "s", data={"password": "aHVudGVyMg=="}, stringData={"other": "correct horse"})
    applied = '{"data":{"password":"aHVudGVyMg=="}}'
    secret["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": applied,
        "kapp.k14s.io/original": applied,
        "objectset.rio.cattle.io/applied": f"H4sIAAAA{'x' * 200}",
        "a": "b",
    }
    shown = to_yaml(secret)
    assert "aHVudGVyMg" not in shown
    assert "horse" not in shown
    assert "H4sI" not in shown
    read = yaml.safe_load(shown)
    assert read["data"] == {"password": "(7 bytes)"}
    assert read["metadata"]["annotations"]["a"] == "b"


def test_objects_that_only_the_page_reads_are_in_its_snapshot() -> None:
    """The feed does not follow EndpointSlices: every pod would change one."""
    service = thing("Service", "db", spec={"ports": [{"port": 5432}]})
    slice_ = thing("EndpointSlice", "db-1", endpoints=[{"addresses": ["10.0.0.7"]}])
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": "db"}
    told = explain(LiveSnapshot(NOW, LiveObjects(), others=[service, slice_]), service)
    assert told.first == "Service default/db wants endpoints: no selector, 1 endpoint listed."
    assert told.well
