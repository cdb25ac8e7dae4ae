"""Volumes and claims: their default class, who protects them while in use, when they may grow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from steersman.api.quantity import ZERO, Quantity
from steersman.server.admission.plugin import Lookups, Plugin, Refused
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes, Settle

CLASSES = "storageclasses.storage.k8s.io"
CLAIMS = "persistentvolumeclaims"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_EPOCH = datetime.fromtimestamp(0, UTC)


class DefaultStorageClass(Plugin):
    """Gives a new claim that names no class the newest default class."""

    name: ClassVar[str] = "DefaultStorageClass"
    mutates: ClassVar[tuple[str, ...]] = (CLAIMS,)
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        claim = request.obj
        if request.operation != "CREATE" or claim.spec.storageClassName is not None:
            return claim
        if BETA_CLASS in claim.metadata.annotations:
            return claim
        marked = [
            each
            for each in look.all(CLASSES)
            if "true" in (each.metadata.annotations.get(DEFAULT), each.metadata.annotations.get(BETA_DEFAULT))
        ]
        chosen = newest(marked)
        return put(claim, spec=put(claim.spec, storageClassName=chosen)) if chosen else claim


def newest(marked: list[Any]) -> str:
    """Of several defaults the newest, of equally new ones the first by name; ``""`` of none."""
    marked.sort(key=lambda each: each.metadata.name)
    marked.sort(key=lambda each: each.metadata.creationTimestamp or _EPOCH, reverse=True)
    return marked[0].metadata.name if marked else ""


_PROTECTED: Mapping[str, str] = {
    CLAIMS: "pvc",
    "persistentvolumes": "pv",
    "volumeattributesclasses.storage.k8s.io": "vac",
}


class StorageObjectInUseProtection(Plugin):
    """New claims, volumes and classes of their attributes bear a finalizer: it goes when nobody uses them."""

    name: ClassVar[str] = "StorageObjectInUseProtection"
    mutates: ClassVar[tuple[str, ...]] = tuple(_PROTECTED)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        obj = request.obj
        finalizer = f"kubernetes.io/{_PROTECTED[request.resource.id]}-protection"
        meta = obj.metadata
        if request.operation != "CREATE" or finalizer in meta.finalizers:
            return obj
        return put(obj, metadata=put(meta, finalizers=(*meta.finalizers, finalizer)))


class PersistentVolumeClaimResize(Plugin):
    """Claims may grow once bound, if their class says so."""

    name: ClassVar[str] = "PersistentVolumeClaimResize"
    validates: ClassVar[tuple[str, ...]] = (CLAIMS,)

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        new, old = request.obj, request.old
        if old is None or size(new) <= size(old):
            return None
        if old.status.phase != "Bound":
            raise Refused("Only bound persistent volume claims can be expanded")
        wanted = class_of(new)
        found = look.get(CLASSES, "", wanted) if wanted and wanted == class_of(old) else None
        if found is None or not found.allowVolumeExpansion:
            raise Refused(
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )
        return None


def size(claim: Any) -> Quantity:
    """How much a claim asks for."""
    asked = claim.spec.resources.requests.get("storage")
    return ZERO if asked is None else Quantity.parse(asked)


def class_of(claim: Any) -> str:
    """The class a claim asks for, by the field or the annotation of old."""
    return claim.metadata.annotations.get(BETA_CLASS) or claim.spec.storageClassName or ""
