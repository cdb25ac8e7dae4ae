"""Claims, volumes, classes and pods for rows about volumes, in short."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.api.scheme import Key

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(
    name: str = "data",
    volume: str = "",
    *,
    sc: str = "wait",
    size: str = "1Gi",
    phase: str = "",
    selected: str = "",
    bound: bool | None = None,
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    owner: str = "",
    **spec: Any,
) -> v1.PersistentVolumeClaim:
    """A claim; with a ``volume`` it is bound unless said otherwise."""
    annotations = {SELECTED: selected} if selected else {}
    if bound or (bound is None and volume):
        annotations[BOUND] = "yes"
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": annotations,
            "ownerReferences": owners if owner else [],
        },
        "spec": {
            "accessModes": modes,
            "storageClassName": sc,
            "volumeName": volume,
            "resources": {"requests": {"storage": size}},
            **spec,
        },
        "status": {"phase": phase or ("Bound" if volume else "Pending")},
    }
    return msgspec.convert(document, v1.PersistentVolumeClaim)


def volume(
    name: str = "pv",
    *,
    sc: str = "wait",
    size: str = "1Gi",
    node: str = "",
    claim: str = "",
    uid: str | None = None,
    phase: str = "",
    driver: str = "",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> v1.PersistentVolume:
    """A volume, for one ``node`` or all; with a ``claim`` it is bound to it."""
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]}]
    reference = {"namespace": "default", "name": claim, "uid": f"uid-{claim}" if uid is None else uid}
    document = {
        "metadata": {"name": name, "uid": name, "labels": labels or {}},
        "spec": {
            "accessModes": modes,
            "capacity": {"storage": size},
            "storageClassName": sc,
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if node else {}),
            **({"claimRef": reference} if claim else {}),
            **({"csi": {"driver": driver, "volumeHandle": f"vol-{name}"}} if driver else {}),
            **spec,
        },
        "status": {"phase": phase or ("Bound" if claim else "Available")},
    }
    return msgspec.convert(document, v1.PersistentVolume)


def storage_class(
    name: str = "wait",
    mode: str = "WaitForFirstConsumer",
    provisioner: str = "example.com/disk",
    **fields: Any,
) -> storage_v1.StorageClass:
    document = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields}
    return msgspec.convert(document, storage_v1.StorageClass)


CLASSES = (
    storage_class(),
    storage_class("now", "Immediate"),
    storage_class("static", provisioner="kubernetes.io/no-provisioner"),
)


class Storage:
    """Storage objects without a server, as the scheduler's filters read them."""

    def __init__(
        self,
        *objects: v1.PersistentVolumeClaim | v1.PersistentVolume | storage_v1.StorageClass,
        limits: dict[str, int] | None = None,
        attached: Iterable[str] = (),
        required: bool = False,
    ) -> None:
        """``limits`` are those of each driver on every node, ``attached`` volumes; ``required`` drivers must be installed."""
        found = (*CLASSES, *objects)
        self.claims = {each.key: each for each in found if isinstance(each, v1.PersistentVolumeClaim)}
        self.volumes = {each.metadata.name: each for each in found if isinstance(each, v1.PersistentVolume)}
        self.classes = {
            each.metadata.name: each for each in found if isinstance(each, storage_v1.StorageClass)
        }
        self._limits = limits
        self._attached = attached
        self._required = required

    def claim(self, key: Key) -> v1.PersistentVolumeClaim | None:
        return self.claims.get(key)

    def volume(self, name: str) -> v1.PersistentVolume | None:
        return self.volumes.get(name)

    def volumes_of_class(self, name: str) -> Iterable[v1.PersistentVolume]:
        return [each for each in self.volumes.values() if each.spec.storageClassName == name]

    def storage_class(self, name: str) -> storage_v1.StorageClass | None:
        return self.classes.get(name)

    def csi_node(self, name: str) -> storage_v1.CSINode | None:
        if self._limits is None:
            return None
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": count}}
            for driver, count in self._limits.items()
        ]
        return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, storage_v1.CSINode)

    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None:
        if not self._required:
            return None
        document = {"metadata": {"name": name}, "spec": {"preventPodSchedulingIfMissing": True}}
        return msgspec.convert(document, storage_v1.CSIDriver)

    def attachments_of_node(self, name: str) -> Iterable[storage_v1.VolumeAttachment]:
        return [
            msgspec.convert(
                {
                    "metadata": {"name": each},
                    "spec": {"nodeName": name, "source": {"persistentVolumeName": each}},
                },
                storage_v1.VolumeAttachment,
            )
            for each in self._attached
        ]


def pod(name: str = "p", *claims: str, ephemeral: tuple[str, ...] = (), **spec: Any) -> v1.Pod:
    """A pod with these claims, and volumes of its own."""
    volumes: list[dict[str, Any]] = [
        {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims
    ]
    volumes += [{"name": each, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for each in ephemeral]
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **spec},
    }
    return msgspec.convert(document, v1.Pod)


def node(name: str = "a", **labels: str) -> v1.Node:
    """A node with room for ten pods."""
    document = {
        "metadata": {"name": name, "uid": name, "labels": {"host": name, **labels}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    return msgspec.convert(document, v1.Node)
