"""Chapters of the scenario about storage: volumes, claims, attachments and drivers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import (
    APPLY,
    CLAIMS,
    TABLE,
    VOLUMES,
    Ask,
    doc,
    get,
    patch,
    post,
    put,
)

ATTACHMENTS, DRIVERS = (f"/apis/storage.k8s.io/v1/{name}" for name in ("volumeattachments", "csidrivers"))


def volume(name: str, **spec: Any) -> dict[str, Any]:
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}
    return doc(
        "v1",
        "PersistentVolume",
        name,
        spec={key: value for key, value in {**base, **spec}.items() if value is not ...},
    )


def claim(name: str, **spec: Any) -> dict[str, Any]:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return doc(
        "v1",
        "PersistentVolumeClaim",
        name,
        spec={key: value for key, value in {**base, **spec}.items() if value is not ...},
    )


def term(key: str = "a", operator: str = "In", *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*terms: Any) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": list(terms)}}


CSI = {"driver": "csi.test", "volumeHandle": "h"}
SOURCES: Mapping[str, dict[str, Any]] = {
    "no source": {},
    "two sources": {"hostPath": {"path": "/a"}, "nfs": {"server": "a", "path": "/a"}},
    "local up": {
        "local": {"path": "../a"},
        "nodeAffinity": affinity({"matchExpressions": [term("a", "In", "b")]}),
    },
    "csi of an odd driver": {"csi": {"driver": "-a_b-", "volumeHandle": "h"}},
    "csi empty secrets": {
        "csi": {
            **CSI,
            **{
                name: {}
                for name in (
                    "controllerPublishSecretRef",
                    "nodeStageSecretRef",
                    "nodePublishSecretRef",
                    "controllerExpandSecretRef",
                    "nodeExpandSecretRef",
                )
            },
        }
    },
    "iscsi odd": {
        "iscsi": {
            "targetPortal": "a",
            "iqn": "foo",
            "lun": 256,
            "initiatorName": "x",
            "chapAuthSession": True,
        }
    },
    "iscsi good": {"iscsi": {"targetPortal": "a:3260", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}},
    "fc both": {"fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 300}},
    "azure disk odd": {"azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Nope", "cachingMode": "x"}},
}
VOLUME_FIELDS: Mapping[str, dict[str, Any]] = {
    "no capacity": {"capacity": ...},
    "another resource": {"capacity": {"storage": "1Gi", "cpu": "1"}},
    "one pod and others": {"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]},
    "recycle the root": {"persistentVolumeReclaimPolicy": "Recycle", "hostPath": {"path": "/"}},
    "odd attributes of csi": {"hostPath": ..., "csi": CSI, "volumeAttributesClassName": "A_"},
    "an unknown field": {"foo": 1, "claimRef": {"bar": 2}},
    "an odd term": {
        "nodeAffinity": affinity(
            {
                "matchExpressions": [
                    term("a b", "Nope", "c"),
                    term("a", "In"),
                    term("a", "Exists", "x"),
                    term("a", "Gt", "x"),
                    term("a", "Lt", "1", "2"),
                ]
            }
        )
    },
}
# fmt: on


def _volumes() -> Iterator[Ask]:
    for title, source in SOURCES.items():
        yield post(f"source: {title}", f"{VOLUMES}?dryRun=All", volume("v", **{"hostPath": ..., **source}))
    for title, spec in VOLUME_FIELDS.items():
        yield post(f"field: {title}", f"{VOLUMES}?dryRun=All&fieldValidation=Warn", volume("v", **spec))
    for key in ("mount-options", "storage-class"):
        meta = {"name": "an", "annotations": {f"volume.beta.kubernetes.io/{key}": ""}}
        yield post(f"annotation {key}", f"{VOLUMES}?dryRun=All", {**volume("an"), "metadata": meta})
    yield post("volume", VOLUMES, volume("path"))
    unknown = {"spec": {"foo": 1, "claimRef": {"bar": 2}, "capacity": {"storage": "2Gi"}}}
    yield patch("unknown fields", f"{VOLUMES}/path?dryRun=All", unknown)
    for title, status in {
        "a phase": {"phase": "Bound"},
        "a transition": {"lastPhaseTransitionTime": "2026-01-01T00:00:00Z", "phase": "Released"},
        "no phase": {"phase": None},
        "nothing": None,
        "an unknown field": {"foo": 1},
    }.items():
        change = {"status": status, "spec": {"volumeMode": "Block"}}
        yield patch(f"status: {title}", f"{VOLUMES}/path/status?fieldValidation=Warn", change)
    yield put("status: put", f"{VOLUMES}/path/status", {**volume("path"), "status": {}})
    yield get("table", VOLUMES, accept=TABLE)


CLAIM_FIELDS: Mapping[str, dict[str, Any]] = {
    "one pod and others": {"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]},
    "an empty class": {"storageClassName": ""},
    "a source": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}},
    "a snapshot": {"dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"}},
    "a pod": {"dataSource": {"kind": "Pod", "name": "a"}},
    "an empty source": {"dataSource": {}},
    "an odd source": {"dataSource": {"apiGroup": "a b", "kind": "", "name": ""}},
    "a source by reference": {"dataSourceRef": {"apiGroup": "a.b", "kind": "C", "name": "d"}},
    "a core reference": {"dataSourceRef": {"kind": "Pod", "name": "d"}},
    "a claim by reference": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "d"}},
    "a reference elsewhere": {"dataSourceRef": {"apiGroup": "a.b", "kind": "C", "name": "d", "namespace": "e"}},
    "a reference here": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "d", "namespace": "e"}},
    "two sources": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"}},
    "two equal sources": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"}},
    "an unknown field": {"foo": 1, "resources": {"requests": {"storage": "1Gi"}, "bar": 1}},
}  # fmt: skip
CONDITION = {"type": "Resizing", "status": "True"}
CLAIM_STATUS: Mapping[str, Any] = {
    "a phase": {"phase": "Bound"},
    "modes": {"accessModes": ["x"]},
    "capacity": {"capacity": {"storage": "1Gi"}},
    "odd capacity": {"capacity": {"storage": "x"}},
    "other capacity": {"capacity": {"cpu": "1", "a b": "2"}},
    "negatively allocated": {"allocatedResources": {"storage": "-2Gi"}},
    "allocated bits": {"allocatedResources": {"kubernetes.io/foo": "2"}},
    "resizing": {"allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"}},
    "a condition": {"conditions": [CONDITION]},
    "half a condition": {"conditions": [{"type": "x"}]},
    "a condition twice": {"conditions": [CONDITION, CONDITION]},
    "modifying": {"modifyVolumeStatus": {"status": "Pending", "targetVolumeAttributesClassName": "gold"}},
    "nothing": None,
}  # fmt: skip


def _claims() -> Iterator[Ask]:
    for title, spec in CLAIM_FIELDS.items():
        yield post(f"field: {title}", f"{CLAIMS}?dryRun=All", claim("c", **spec))
    yield post("pending", CLAIMS, claim("pending"))
    yield post("bound", CLAIMS, claim("bound", volumeName="v"))
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    yield patch("bound: status", f"{CLAIMS}/bound/status", {"status": status})
    for name in ("pending", "bound"):
        for title in ("a pod", "a reference elsewhere", "an unknown field"):
            yield patch(f"{name}: {title}", f"{CLAIMS}/{name}?dryRun=All", {"spec": CLAIM_FIELDS[title]})
        for title, status in CLAIM_STATUS.items():
            where, sent = f"{CLAIMS}/{name}/status?dryRun=All", {**claim(name), "status": status}
            yield patch(
                f"{name}: status: {title}", where, {"status": status, "spec": {"volumeMode": "Block"}}
            )
            yield put(f"{name}: put status: {title}", where, sent)
            yield patch(f"{name}: apply status: {title}", f"{where}&fieldManager=me&force=true", sent, APPLY)
    yield get("table", CLAIMS, accept=TABLE)


def _objects() -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, Any]]]:
    """Kinds of the group: a good object, and what is changed in it, by title."""
    pv = {"persistentVolumeName": "v"}
    va = doc(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "good",
        spec={"attacher": "a.b", "nodeName": "n", "source": pv},
    )
    inline = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": CSI}

    def spec(**more: Any) -> dict[str, Any]:
        return {"spec": {**va["spec"], **more}}

    yield "attachment", ATTACHMENTS, va, {
        "nothing": {"spec": {}},
        "an odd attacher": spec(attacher="A_b"),
        "a long attacher": spec(attacher="a" * 64),
        "no attacher": spec(attacher=""),
        "an odd node": spec(nodeName="a b"),
        "no node": spec(nodeName=""),
        "no source": spec(source={}),
        "two sources": spec(source={**pv, "inlineVolumeSpec": inline}),
        "an odd volume": spec(source={"persistentVolumeName": "A_"}),
        "no volume": spec(source={"persistentVolumeName": ""}),
        "an inline volume": spec(source={"inlineVolumeSpec": inline}),
        "a host path": spec(source={"inlineVolumeSpec": {**inline, "csi": None, "hostPath": {"path": "/a"}}}),
        "a class inside": spec(source={"inlineVolumeSpec": {**inline, "storageClassName": "x", "volumeMode": "Block", "claimRef": {"name": "a"}, "persistentVolumeReclaimPolicy": "Delete"}}),
        "an unknown field": spec(foo=1),
        "a status": {"status": {"attached": True, "attachmentMetadata": {"a": "b"}}},
    }  # fmt: skip
    driver = doc("storage.k8s.io/v1", "CSIDriver", "csi.test", spec={"attachRequired": True})

    def csi(**more: Any) -> dict[str, Any]:
        return {"spec": {**driver["spec"], **more}}

    yield "driver", DRIVERS, driver, {
        "nothing": {"spec": {}},
        "no spec": {"spec": None},
        "no attachment": csi(attachRequired=False),
        "a null": csi(attachRequired=None),
        "pod info": csi(podInfoOnMount=True),
        "no lifecycle": csi(volumeLifecycleModes=[]),
        "lifecycles": csi(volumeLifecycleModes=["Persistent", "Ephemeral", "Ephemeral"]),
        "odd lifecycles": csi(volumeLifecycleModes=["Nope", ""]),
        "capacity": csi(storageCapacity=True),
        "a group policy": csi(fsGroupPolicy="Nope"),
        "no group policy": csi(fsGroupPolicy=""),
        "another group policy": csi(fsGroupPolicy="File"),
        "tokens": csi(tokenRequests=[{"audience": "a"}, {"audience": "a"}]),
        "odd tokens": csi(tokenRequests=[{"audience": "", "expirationSeconds": 1}, {"audience": "b", "expirationSeconds": 2**33}]),
        "republish": csi(requiresRepublish=True),
        "mount by label": csi(seLinuxMount=True),
        "an update period": csi(nodeAllocatableUpdatePeriodSeconds=10),
        "a short update period": csi(nodeAllocatableUpdatePeriodSeconds=9),
        "no update period": csi(nodeAllocatableUpdatePeriodSeconds=0),
        "a token in secrets": csi(serviceAccountTokenInSecrets=True),
        "a token in secrets of requests": csi(serviceAccountTokenInSecrets=False, tokenRequests=[{"audience": "a"}]),
        "limits of nodes": csi(preventPodSchedulingIfMissing=True),
        "an unknown field": csi(foo=1),
    }  # fmt: skip


def packed(document: Any) -> bytes:
    """JSON without blanks: upstream compares some values as they were written, and its own patches have none."""
    return json.dumps(document, separators=(",", ":")).encode()


def kinds(objects: Any, *, immutable: tuple[str, ...] = ()) -> Iterator[Ask]:
    """Creates objects with each of their changes, and changes those so that can change."""
    for kind, path, good, changes in objects:
        for title, change in changes.items():
            yield post(f"{kind}: create: {title}", f"{path}?dryRun=All", packed({**good, **change}))
        yield post(f"{kind}: create", path, packed(good))
        where = f"{path}/{good['metadata']['name']}"
        for title, change in () if kind in immutable else changes.items():
            yield patch(f"{kind}: merge: {title}", f"{where}?dryRun=All", change)
        yield get(f"{kind}: table", path, accept=TABLE)


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "volumes": tuple(_volumes()),
    "claims": tuple(_claims()),
    "storage-kinds": tuple(kinds(_objects(), immutable=("attachment",))),
}
