"""DefaultStorageClass and DefaultIngressClass: the default class of claims and ingresses that name none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from steersman.server.admission.plugin import Listers, Plugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes

STORAGE_CLASSES = "storageclasses.storage.k8s.io"
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_STORAGE_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"
INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class"

_EPOCH = datetime.fromtimestamp(0, UTC)


class DefaultStorageClass(Plugin, frozen=True):
    """Sets the newest default StorageClass in new claims that name no class."""

    name: ClassVar[str] = "DefaultStorageClass"
    mutates: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims",)
    reads: ClassVar[tuple[str, ...]] = (STORAGE_CLASSES,)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        claim = request.obj
        if request.operation != "CREATE" or claim.spec.storageClassName is not None:
            return claim
        if BETA_STORAGE_CLASS in claim.metadata.annotations:
            return claim
        defaults = [each for each in listers.list(STORAGE_CLASSES) if _is_default_storage_class(each)]
        chosen = _newest(defaults)
        return put(claim, spec=put(claim.spec, storageClassName=chosen)) if chosen else claim


def _is_default_storage_class(storage_class: Any) -> bool:
    annotations = storage_class.metadata.annotations
    return "true" in (annotations.get(DEFAULT_STORAGE_CLASS), annotations.get(BETA_DEFAULT_STORAGE_CLASS))


class DefaultIngressClass(Plugin, frozen=True):
    """Sets the newest default IngressClass in new ingresses that name no class, by field or annotation."""

    name: ClassVar[str] = "DefaultIngressClass"
    mutates: ClassVar[tuple[str, ...]] = ("ingresses.networking.k8s.io",)
    reads: ClassVar[tuple[str, ...]] = (INGRESS_CLASSES,)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        ingress = request.obj
        if request.operation != "CREATE" or ingress.spec.ingressClassName is not None:
            return ingress
        if INGRESS_CLASS_ANNOTATION in ingress.metadata.annotations:
            return ingress
        defaults = [
            each
            for each in listers.list(INGRESS_CLASSES)
            if each.metadata.annotations.get(DEFAULT_INGRESS_CLASS) == "true"
        ]
        chosen = _newest(defaults)
        return put(ingress, spec=put(ingress.spec, ingressClassName=chosen)) if chosen else ingress


def _newest(classes: list[Any]) -> str:
    """The name of the newest class, of equally new ones the first by name; empty if there is none."""
    classes.sort(key=lambda each: each.metadata.name)
    classes.sort(key=lambda each: each.metadata.creationTimestamp or _EPOCH, reverse=True)
    return classes[0].metadata.name if classes else ""
