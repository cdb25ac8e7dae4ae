"""Nothing is deleted, released, detached or given away because an object that stands in the way cannot be decoded.

Each row is a decision that does something once another object is absent, and must not while that one is merely undecodable.
kube-controller-manager does nothing at all then: its reflectors fail to list the whole kind.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Object
from steersman.api.kinds.daemonsets import DAEMONSETS
from steersman.api.kinds.devices import DELETE_PROTECTION, DEVICETAINTRULES, RESOURCECLAIMS, RESOURCESLICES
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.podgroups import PODGROUPS
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    VOLUMEATTRIBUTESCLASSES,
)
from steersman.api.scheme import Key, Kind, kind_of
from steersman.controllers import CONTROLLERS
from steersman.controllers.attachdetach.world import MANAGED
from steersman.controllers.nodelifecycle import ZONES
from steersman.controllers.nodelifecycle.disruption import ZonesSeen
from steersman.controllers.podgc import TERMINATED
from steersman.controllers.shared.volumes import attachment_name, volume_named
from steersman.intent.actions import Action, Create, Delete, Patch, Read, Write
from steersman.intent.controller import Change, Controller
from steersman.intent.settings import Settings
from steersman.intent.undecodable import Undecodable
from steersman.runtime.undecodable_caches import UndecodableCaches
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ERROR = "Expected `object`, got `str` - at `$.spec`"
VOLUME = "kubernetes.io/csi/csi.example.com^disk"
UNIQUE = volume_named(VOLUME)
assert UNIQUE is not None


def make(kind: Kind[Any], name: str, namespace: str = "ns", **fields: Any) -> Object:
    """An object that was created an hour ago; fields of the metadata go there."""
    meta: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": NOW - timedelta(hours=1),
        **({"namespace": namespace} if kind.namespaced else {}),
    }
    for field in ("finalizers", "labels", "annotations", "ownerReferences"):
        if field in fields:
            meta[field] = fields.pop(field)
    if fields.pop("deleted", False):
        meta["deletionTimestamp"] = NOW - timedelta(minutes=10)
    made: Object = msgspec.json.decode(msgspec.json.encode({"metadata": meta, **fields}), type=kind.type)
    return made


def owned_by(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def pod(name: str = "user", **more: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": "n1", **more.pop("spec", {})}
    return make(PODS, name, spec=spec, status={"phase": "Running"}, **more)


MOUNTS = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
CLAIM = {"volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}}
BOUND = make(PERSISTENTVOLUMECLAIMS, "data", spec=CLAIM, status={"phase": "Bound"})
PV = make(
    PERSISTENTVOLUMES,
    "pv",
    spec={
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.example.com", "volumeHandle": "disk"},
        "claimRef": {"namespace": "ns", "name": "data", "uid": "uid-data"},
    },
    status={"phase": "Bound"},
)
LABELS = {"app": "web"}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}
SELECTED = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}


class Row(msgspec.Struct):
    controller: str
    key: Key
    objects: tuple[Object, ...]
    """The last one is that which cannot be decoded."""
    gates: dict[str, bool] = {}

    def __str__(self) -> str:
        return self.controller


ROWS = [
    Row(
        "persistentvolumeclaim-protection-controller",
        Key("", "ns"),
        (
            make(
                PERSISTENTVOLUMECLAIMS,
                "data",
                finalizers=["kubernetes.io/pvc-protection"],
                deleted=True,
                spec=CLAIM,
            ),
            pod(spec=MOUNTS),
        ),
    ),
    Row(
        "volumeattributesclass-protection-controller",
        Key("", "gold"),
        (
            make(
                VOLUMEATTRIBUTESCLASSES,
                "gold",
                finalizers=["kubernetes.io/vac-protection"],
                deleted=True,
                driverName="csi.example.com",
            ),
            make(PERSISTENTVOLUMECLAIMS, "data", spec={"volumeAttributesClassName": "gold"}),
        ),
    ),
    Row(
        "podgroup-protection-controller",
        Key("ns", "group"),
        (
            make(PODGROUPS, "group", finalizers=["scheduling.k8s.io/podgroup-protection"], deleted=True),
            pod(spec={"schedulingGroup": {"podGroupName": "group"}}),
        ),
        gates={"GenericWorkload": True},
    ),
    Row(
        "resourceclaim-controller",
        Key("ns", "claim/gpu"),
        (
            make(
                RESOURCECLAIMS,
                "gpu",
                finalizers=[DELETE_PROTECTION],
                status={
                    "allocation": {},
                    "reservedFor": [{"resource": "pods", "name": "user", "uid": "uid-user"}],
                },
            ),
            # As metadata alone, a pod that is being deleted seems never to have been scheduled, and thus to be done.
            pod(deleted=True, spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}),
        ),
    ),
    Row(
        "persistentvolume-attach-detach-controller",
        Key("", VOLUME),
        (
            make(
                NODES,
                "n1",
                annotations={MANAGED: "true"},
                status={"volumesAttached": [{"name": VOLUME, "devicePath": ""}]},
            ),
            PV,
            BOUND,
            make(
                VOLUMEATTACHMENTS,
                attachment_name(UNIQUE, "n1"),
                spec={
                    "attacher": "csi.example.com",
                    "nodeName": "n1",
                    "source": {"persistentVolumeName": "pv"},
                },
                status={"attached": True},
            ),
            pod(spec=MOUNTS),
        ),
    ),
    Row("persistentvolume-binder-controller", Key("", "pv"), (PV, BOUND)),
]


def configured(name: str, gates: dict[str, bool], **flags: Any) -> Controller[Any]:
    (found,) = [each for each in CONTROLLERS if each.name == name]
    built = found.configured(
        Settings({flag.replace("_", "-"): value for flag, value in flags.items()}, gates)
    )
    assert built is not None
    return built


def written(
    controller: Controller[Any], caches: StaticCaches, key: Key, live: Object | None = None
) -> list[Action[Any]]:
    """The writes of a round, until it ends or fails because of an object that cannot be decoded. Reads find ``live``."""
    recorded: list[Action[Any]] = []
    with suppress(Undecodable):
        seen = controller.see(UndecodableCaches(caches), key)
        if seen is not None:
            walk(controller.decide(seen, NOW), {Read: live or NotFound("gone")}, recorded=recorded)
    return [each for each in recorded if isinstance(each, Write)]


def filled(controller: Controller[Any], objects: tuple[Object, ...]) -> StaticCaches:
    """Caches whose handlers have been called, as those of an informer."""
    caches = StaticCaches(controller)
    for obj in objects:
        caches.put(obj)
        tell(controller, caches, Change(None, obj))
    return caches


def tell(controller: Controller[Any], caches: StaticCaches, change: Change[Any]) -> None:
    for watch in controller.watches:
        if watch.kind is kind_of(change.obj):
            tuple(watch.to(caches, change))


def spoil(controller: Controller[Any], caches: StaticCaches, obj: Object) -> None:
    """Makes an object one that cannot be decoded any more."""
    kind = kind_of(obj)
    caches.put_undecodable(kind, obj.metadata, ERROR)
    tell(controller, caches, Change(obj, kind.type(metadata=obj.metadata)))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_object_that_cannot_be_decoded_does_not_count_as_absent(row: Row) -> None:
    controller, in_the_way = configured(row.controller, row.gates), row.objects[-1]
    caches = filled(controller, row.objects[:-1])
    assert written(controller, caches, row.key), "once it is gone"
    caches = filled(controller, row.objects)
    assert written(controller, caches, row.key) == []
    spoil(controller, caches, in_the_way)
    assert written(controller, caches, row.key) == []
    at_start = filled(controller, row.objects[:-1])
    spoil(controller, at_start, in_the_way)
    assert written(controller, at_start, row.key) == [], "nor where it never could be"


def test_pods_that_cannot_be_decoded_are_not_collected_as_terminated() -> None:
    # As metadata alone, a pod has no phase, and counts as terminated.
    controller = configured("pod-garbage-collector-controller", {}, terminated_pod_gc_threshold=2)
    failed = tuple(make(PODS, name, status={"phase": "Failed"}) for name in ("a", "b", "c"))
    caches = filled(controller, failed)
    assert {type(each) for each in written(controller, caches, TERMINATED)} == {Delete}
    spoil(controller, caches, failed[0])
    assert written(controller, caches, TERMINATED) == []


def test_pods_that_cannot_be_decoded_are_not_collected_as_orphans() -> None:
    controller = configured("pod-garbage-collector-controller", {})
    caches = filled(controller, (pod("a"), pod("b")))
    spoil(controller, caches, pod("a"))
    deleted = [each for each in written(controller, caches, Key("", "node/n1")) if isinstance(each, Delete)]
    assert [each.target.key.name for each in deleted] == ["b"]


def test_a_daemonset_gets_no_second_pod_on_the_node_of_one_that_cannot_be_decoded() -> None:
    controller = configured("daemonset-controller", {})
    daemonset, mine = make(DAEMONSETS, "agent", spec=SELECTED), owned_by("DaemonSet", "agent")
    nodes = (make(NODES, "n1"), make(NODES, "n2"))
    one = pod("agent-1", labels=LABELS, ownerReferences=mine)
    caches = filled(controller, (daemonset, *nodes, one))
    assert written(controller, caches, daemonset.key)
    spoil(controller, caches, one)
    assert written(controller, caches, daemonset.key) == []


def pod_changes(controller: Controller[Any], caches: StaticCaches, key: Key) -> list[Action[Any]]:
    """The pods that a round creates and deletes."""
    return [
        each
        for each in written(controller, caches, key)
        if isinstance(each, Delete) or (isinstance(each, Create) and each.kind is PODS)
    ]


def test_a_node_that_cannot_be_decoded_keeps_its_daemon_pods_while_others_get_theirs() -> None:
    controller = configured("daemonset-controller", {})
    daemonset, mine = make(DAEMONSETS, "agent", spec=SELECTED), owned_by("DaemonSet", "agent")
    nodes = tuple(make(NODES, name) for name in ("n1", "n2", "n3"))
    surplus = tuple(pod(f"agent-{n}", labels=LABELS, ownerReferences=mine) for n in (1, 2))
    caches = filled(controller, (daemonset, *nodes, *surplus))
    for spoiled in nodes[:2]:
        spoil(controller, caches, spoiled)
    changes = pod_changes(controller, caches, daemonset.key)
    assert [type(each) for each in changes] == [Create]
    assert isinstance(changes[0], Create)
    assert b'"n3"' in msgspec.json.encode(changes[0].body), "n1 has a pod too many, n2 none"


def test_a_pod_stays_on_a_node_that_is_no_longer_selected_and_cannot_be_decoded() -> None:
    controller = configured("daemonset-controller", {})
    selective = {"nodeSelector": {"disk": "ssd"}, **TEMPLATE["spec"]}
    spec = {**SELECTED, "template": {**TEMPLATE, "spec": selective}}
    daemonset, node = make(DAEMONSETS, "agent", spec=spec), make(NODES, "n1")
    one = pod("agent-1", labels=LABELS, ownerReferences=owned_by("DaemonSet", "agent"))
    caches = filled(controller, (daemonset, node, one))
    assert [type(each) for each in pod_changes(controller, caches, daemonset.key)] == [Delete]
    spoil(controller, caches, node)
    assert pod_changes(controller, caches, daemonset.key) == []


CLUSTER = {"allocate_node_cidrs": True, "cluster_cidr": "10.0.0.0/23", "node_cidr_mask_size": 24}


def test_no_node_gets_a_cidr_while_that_of_another_cannot_be_decoded() -> None:
    controller = configured("node-ipam-controller", {}, **CLUSTER)
    waiting, other = make(NODES, "new"), make(NODES, "old", spec={"podCIDRs": ["10.0.0.0/24"]})
    caches = filled(controller, (waiting,))
    spoil(controller, caches, other)
    assert written(controller, caches, waiting.key) == []
    known = filled(controller, (waiting, other))
    spoil(controller, known, other)
    (patch,) = written(controller, known, waiting.key)
    assert isinstance(patch, Patch)
    assert "10.0.1.0/24" in str(patch.body), "what it had when it could be decoded is still its own"


def test_a_node_that_cannot_be_decoded_is_left_out_of_its_zone() -> None:
    controller = configured("node-lifecycle-controller", {})
    nodes = (make(NODES, "n1"), make(NODES, "n2"))
    caches = filled(controller, nodes)
    spoil(controller, caches, nodes[0])
    seen = controller.see(UndecodableCaches(caches), ZONES)
    assert isinstance(seen, ZonesSeen)
    assert [node.metadata.name for node in seen.nodes] == ["n2"]


def test_a_rule_that_cannot_be_decoded_keeps_no_pod_on_a_device_that_its_driver_has_tainted() -> None:
    controller = configured("device-taint-eviction-controller", {"DRADeviceTaintRules": True})
    device = {"driver": "gpu.example.com", "pool": "pool", "device": "gpu-0"}
    taint = {"key": "broken", "effect": "NoExecute", "timeAdded": NOW - timedelta(minutes=1)}
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    user = pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
    objects = (
        make(
            RESOURCESLICES,
            "slice",
            spec={
                "driver": device["driver"],
                "pool": pool,
                "devices": [{"name": "gpu-0", "taints": [taint]}],
            },
        ),
        make(
            RESOURCECLAIMS,
            "gpu",
            status={
                "allocation": {"devices": {"results": [device]}},
                "reservedFor": [{"resource": "pods", "name": "user", "uid": "uid-user"}],
            },
        ),
        user,
    )
    rule = make(DEVICETAINTRULES, "rule", spec={"deviceSelector": {}, "taint": taint})
    key = Key("ns", "pod/user")
    caches = filled(controller, objects)
    spoil(controller, caches, rule)
    assert {type(each) for each in written(controller, caches, key, live=user)} == {Patch, Delete}
    caches = filled(controller, objects[1:])
    spoil(controller, caches, rule)
    assert written(controller, caches, key, live=user) == [], "what it says is not known"
