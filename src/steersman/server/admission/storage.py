"""StorageObjectInUseProtection and PersistentVolumeClaimResize: finalizers of volumes and claims, and expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steersman.api.quantity import storage_of
from steersman.server.admission.default_classes import BETA_STORAGE_CLASS, STORAGE_CLASSES
from steersman.server.admission.plugin import AdmissionDenied, Listers, Plugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes, BeforeWrite

CLAIMS = "persistentvolumeclaims"


_PROTECTED: Mapping[str, str] = {
    CLAIMS: "pvc",
    "persistentvolumes": "pv",
    "volumeattributesclasses.storage.k8s.io": "vac",
}


class StorageObjectInUseProtection(Plugin, frozen=True):
    """Adds a protection finalizer to new claims, volumes and VolumeAttributesClasses."""

    name: ClassVar[str] = "StorageObjectInUseProtection"
    mutates: ClassVar[tuple[str, ...]] = tuple(_PROTECTED)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        obj = request.obj
        finalizer = f"kubernetes.io/{_PROTECTED[request.resource.id]}-protection"
        meta = obj.metadata
        if request.operation != "CREATE" or finalizer in meta.finalizers:
            return obj
        return put(obj, metadata=put(meta, finalizers=(*meta.finalizers, finalizer)))


class PersistentVolumeClaimResize(Plugin, frozen=True):
    """Denies the expansion of claims that are not bound, or whose StorageClass does not allow it."""

    name: ClassVar[str] = "PersistentVolumeClaimResize"
    validates: ClassVar[tuple[str, ...]] = (CLAIMS,)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        new, old = request.obj, request.old
        if old is None or storage_of(new.spec.resources.requests) <= storage_of(old.spec.resources.requests):
            return None
        if old.status.phase != "Bound":
            raise AdmissionDenied("Only bound persistent volume claims can be expanded")
        wanted = class_of(new)
        found = listers.get(STORAGE_CLASSES, "", wanted) if wanted and wanted == class_of(old) else None
        if found is None or not found.allowVolumeExpansion:
            raise AdmissionDenied(
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )
        return None


def class_of(claim: Any) -> str:
    """The StorageClass of a claim, by the beta annotation or the field."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS) or claim.spec.storageClassName or ""
