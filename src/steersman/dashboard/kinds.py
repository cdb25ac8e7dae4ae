"""The kinds that the dashboard follows, and their objects as plain documents."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import Object, Opaque
from steersman.api.scheme import Kind, encode
from steersman.explain.collect import KINDS
from steersman.explain.model import Document

SHOWN = (
    "Namespace",
    "Node",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
    "Service",
    "PersistentVolumeClaim",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "Pod",
)
"""Kinds whose objects are summarized for viewers. The others are only read to explain these."""
_ABSENT = Opaque(b"null")


class ListedObject(Object, frozen=True):
    """An object of any kind, its fields as raw JSON: some three kilobytes a pod, and decoded when it is looked at.

    In the server's own process an `Api` gives the stored struct instead, which costs nothing.
    """

    spec: Opaque = _ABSENT
    status: Opaque = _ABSENT
    # Of Events.
    involvedObject: Opaque = _ABSENT
    series: Opaque = _ABSENT
    source: Opaque = _ABSENT
    reason: str = ""
    message: str | None = ""
    type: str | None = ""
    count: int | None = 0
    firstTimestamp: str | None = None
    lastTimestamp: str | None = None
    eventTime: str | None = None
    # Of StorageClasses.
    provisioner: str = ""
    volumeBindingMode: str | None = None


@cache
def followed() -> tuple[Kind[ListedObject], ...]:
    """The kinds to follow, those first that others refer to. Of Events only warnings: they say why."""
    by_name = {kind.name: kind.as_(ListedObject) for kind in KINDS}
    shown = [by_name.pop(name) for name in SHOWN]
    events = by_name.pop("Event").where("type!=Normal")
    return (*shown[:-1], *by_name.values(), events, shown[-1])


def document_of(kind: Kind[Any], obj: Object) -> dict[str, Any]:
    """An object as a plain document, without its managed fields."""
    if getattr(obj.metadata, "managedFields", None):
        # The embedded server computes them when they are first read.
        obj = replace(obj, metadata=replace(obj.metadata, managedFields=()))
    found: dict[str, Any] = msgspec.json.decode(encode(kind, obj))
    return found


def without_managed_fields(document: Document) -> dict[str, Any]:
    """A document without its managed fields."""
    meta = dict(document.get("metadata") or {})
    meta.pop("managedFields", None)
    return {**document, "metadata": meta}
