"""Bringing the ends of two runs into one form: what must go, and what must stay."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from steersman.explore.normalize import Document, normalise


def run(hash_: str, suffix: str, uid: str) -> dict[str, list[Document]]:
    """What a manager leaves of a Deployment with one pod; the arguments are chance."""
    replicaset, pod = f"web-{hash_}", f"web-{hash_}-{suffix}"
    return {
        "deployments": [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "uid": uid, "generation": 4, "resourceVersion": uid},
                "status": {
                    "observedGeneration": 4,
                    "replicas": 1,
                    "conditions": [
                        {
                            "type": "Progressing",
                            "status": "True",
                            "lastUpdateTime": uid,
                            "message": f'ReplicaSet "{replicaset}" has successfully progressed.',
                        },
                        {"type": "Available", "status": "True", "lastTransitionTime": uid},
                    ],
                },
            }
        ],
        "replicasets": [
            {
                "metadata": {
                    "name": replicaset,
                    "annotations": {"deployment.kubernetes.io/revision": "2"},
                    "labels": {"app": "web", "pod-template-hash": hash_},
                    "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": uid}],
                },
                "spec": {"selector": {"matchLabels": {"pod-template-hash": hash_}}},
            }
        ],
        "pods": [
            {
                "metadata": {
                    "name": pod,
                    "generateName": f"{replicaset}-",
                    "labels": {"pod-template-hash": hash_, "controller-uid": uid},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": replicaset, "controller": True}],
                },
                "spec": {"volumes": [{"name": f"kube-api-access-{suffix}"}]},
                "status": {"phase": "Running", "podIP": uid},
            }
        ],
        "events": [
            {
                "metadata": {"name": f"web.{uid}"},
                "involvedObject": {"kind": "ReplicaSet", "name": replicaset},
                "type": "Normal",
                "reason": "SuccessfulCreate",
                "message": f"Created pod: {pod}",
                "source": {"component": "replicaset-controller"},
                "count": 1,
            }
        ],
    }


def test_two_runs_that_differ_by_chance_alone_are_the_same() -> None:
    assert normalise(run("5d4cf56db9", "x7k2p", "uid-1")) == normalise(run("77bb8f6c8", "zz9qw", "uid-2"))


def test_names_are_told_by_revision_and_owner() -> None:
    normal = normalise(run("5d4cf56db9", "x7k2p", "uid-1"))
    assert list(normal["replicasets"]) == ["web@2"]
    [pod] = normal["pods"]["web@2-*"]
    assert pod["metadata"] == {
        "generateName": "web@2-",
        "labels": {"pod-template-hash": "<web@2>", "controller-uid": "<uid of deployments>"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web@2", "controller": True}],
    }
    assert pod["spec"] == {"volumes": [{"name": "kube-api-access-*"}]}
    assert pod["status"] == "Running"
    assert normal["events"] == [
        {
            "about": "ReplicaSet/web@2",
            "type": "Normal",
            "reason": "SuccessfulCreate",
            "message": "Created pod: web@2-*",
            "source": "replicaset-controller",
            "count": 1,
        }
    ]
    assert [c["type"] for c in normal["deployments"]["web"]["status"]["conditions"]] == [
        "Available",
        "Progressing",
    ]


def put(document: Any, path: str, value: object) -> None:
    *steps, last = path.split("/")
    for step in steps:
        document = document[int(step) if step.isdecimal() else step]
    document[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("deployments/0/status/replicas", 2),
        ("deployments/0/status/observedGeneration", 3),
        ("deployments/0/status/conditions/0/status", "Unknown"),
        ("replicasets/0/metadata/annotations", {"deployment.kubernetes.io/revision": "1"}),
        ("replicasets/0/spec/selector", {}),
        ("pods/0/metadata/ownerReferences", []),
        ("pods/0/metadata/labels", {}),
        ("pods/0/metadata/deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("pods/0/status/phase", "Failed"),
        ("events/0/count", 2),
        ("events/0/reason", "FailedCreate"),
        ("events/0/message", "Created pod: another"),
        ("events/0/involvedObject/kind", "Deployment"),
    ],
)
def test_what_a_manager_did_otherwise_still_differs(path: str, value: object) -> None:
    first = run("5d4cf56db9", "x7k2p", "uid-1")
    second = copy.deepcopy(first)
    put(second, path, value)
    assert normalise(first) != normalise(second)


def event(message: str, **more: object) -> Document:
    about = {"kind": "Deployment", "name": "web"}
    return {
        "metadata": {},
        "involvedObject": about,
        "reason": "R",
        "message": message,
        "type": "Normal",
        **more,
    }


def test_a_set_that_is_gone_is_known_by_its_form() -> None:
    found = run("5d4cf56db9", "x7k2p", "uid-1")
    found["events"] = [event("Scaled down replica set web-6c54bd5869 from 1 to 0")]
    assert normalise(found)["events"][0]["message"] == "Scaled down replica set web@gone from 1 to 0"


def test_events_are_counted_however_they_are_split() -> None:
    whole = [event("one", count=3)]
    split = [event("one"), event("one", count=1), event("one", series={"count": 1})]
    assert normalise({"events": whole}) == normalise({"events": split})


def test_warnings_are_told_but_not_counted() -> None:
    once = [event("no", type="Warning", count=1)]
    often = [
        event("no", type="Warning", count=9),
        event("(combined from similar events): no", type="Warning"),
    ]
    assert normalise({"events": once}) == normalise({"events": often})
    assert normalise({"events": once}) != normalise({"events": []})


def test_what_belongs_to_a_daemonset_is_called_after_it_and_its_revision() -> None:
    owner = {"kind": "DaemonSet", "name": "agent"}
    labels = {"controller-revision-hash": "6f9d"}
    found = normalise(
        {
            "controllerrevisions": [
                {
                    "metadata": {"name": "agent-6f9d", "labels": labels, "ownerReferences": [owner]},
                    "revision": 3,
                }
            ],
            "pods": [{"metadata": {"name": "agent-x2x4z", "labels": labels}, "status": {"phase": "Running"}}],
            "events": [
                event("Created pod: gone-abcde", involvedObject={"kind": "DaemonSet", "name": "gone"}),
                event("Deleted pod: agent-x2x4z", involvedObject=owner),
            ],
        }
    )
    assert list(found["controllerrevisions"]) == ["agent@3"]
    (pod,) = found["pods"]["agent-*"]
    assert pod["metadata"]["labels"] == {"controller-revision-hash": "<agent@3>"}
    assert [event["message"] for event in found["events"]] == ["Deleted pod: agent-*", "Created pod: gone-*"]


def slices_of(suffix: str, address: str, node: str) -> dict[str, list[Document]]:
    """The EndpointSlices that a manager leaves of a Service; the arguments are chance."""
    meta = {
        "name": f"web-{suffix}",
        "generateName": "web-",
        "uid": suffix,
        "labels": {"kubernetes.io/service-name": "web"},
        "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": suffix},
    }
    endpoints = [
        {"addresses": [f"{address}{number}"], "nodeName": node, "conditions": {"ready": number == 1}}
        for number in (1, 2)
    ]
    return {"endpointslices": [{"metadata": meta, "addressType": "IPv4", "endpoints": endpoints}]}


def test_endpoint_slices_are_named_after_their_service_and_have_no_addresses() -> None:
    one, other = normalise(slices_of("abcde", "10.0.0.", "a")), normalise(slices_of("vwxyz", "10.1.0.", "b"))
    assert one == other
    (slice,) = one["endpointslices"]["web"]
    assert slice["endpoints"] == [{"conditions": {"ready": False}}, {"conditions": {"ready": True}}]
    changed = slices_of("abcde", "10.0.0.", "a")
    changed["endpointslices"][0]["endpoints"].pop()
    assert normalise(changed) != one
