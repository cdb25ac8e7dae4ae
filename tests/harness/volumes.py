"""Manifests of claims, volumes and the pods that use them."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
"""The spec of a claim of one gibibyte."""


def claim(name: str, volume: str = "", **spec: Any) -> Document:
    """A claim of one gibibyte; with a volume, one that is bound by hand and never provisioned."""
    bound = {"volumeName": volume, "storageClassName": ""} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**CLAIM, **bound, **spec},
    }


def volume(name: str, **spec: Any) -> Document:
    """A volume of one gibibyte on the host."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": f"/volumes/{name}"},
            **spec,
        },
    }


def pod(name: str, *claims: str, node: str = "node-1", ephemeral: str = "", **meta: Any) -> Document:
    """A pod on a node, with volumes of these claims, and an ephemeral one of this name."""
    volumes: list[Document] = [
        {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims
    ]
    if ephemeral:
        volumes.append({"name": ephemeral, "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}})
    spec: Document = {"containers": [{"name": "main", "image": "example/app:1"}], "volumes": volumes}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}
