"""What is odd about an object and not refused: told to whoever writes it, in a header of the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from steersman.api.generated import apps_v1, core_v1, networking_v1, node_v1, storage_v1
from steersman.server.validation.pods import warnings as pods

Remarks: TypeAlias = Callable[[Any, Any], Iterator[str]]

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template"),
    ),
}
_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS = (
    f'metadata.annotations[{_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
)
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


def remarks(kind: str, obj: Any, old: Any) -> tuple[str, ...]:
    """All that is odd about an object of a built-in kind that was written; ``old`` is None for a new one."""
    told: list[str] = []
    if kind == "Pod":
        # Pods are seldom written over by those who would read it.
        return tuple(pods.remarks(obj.spec, obj.metadata)) if old is None else ()
    where = _TEMPLATES.get(kind)
    if where is not None and (old is None or old.metadata.generation != obj.metadata.generation):
        template = obj
        for part in where:
            template = getattr(template, part)
        if template is not None:
            told += pods.remarks(template.spec, template.metadata, ".".join((*where, "")))
    special = _SPECIAL.get(kind)
    if special is not None:
        told += special(obj, old)
    return tuple(told)


def _stateful_set(obj: apps_v1.StatefulSet, old: Any) -> Iterator[str]:
    limit = obj.spec.revisionHistoryLimit
    if limit is not None and limit < 0:
        retained = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {retained}"


def _ingress(obj: networking_v1.Ingress, old: Any) -> Iterator[str]:
    if old is None and _INGRESS_CLASS in obj.metadata.annotations:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _claim(obj: core_v1.PersistentVolumeClaim, old: Any) -> Iterator[str]:
    if _CLASS in obj.metadata.annotations:
        yield _OLD_CLASS
    sizes = obj.spec.resources.requests if obj.spec.resources is not None else {}
    yield from pods.fractions("spec.resources.requests", sizes, ("storage",))


def _volume(obj: core_v1.PersistentVolume, old: Any) -> Iterator[str]:
    spec = obj.spec
    if _CLASS in obj.metadata.annotations:
        yield _OLD_CLASS
    if spec.persistentVolumeReclaimPolicy == "Recycle":
        instead = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {instead}"
    affinity = spec.nodeAffinity
    if affinity is not None and affinity.required is not None:
        for i, term in enumerate(affinity.required.nodeSelectorTerms or ()):
            yield from pods.node_term(f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", term)
    for name in ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"):
        if getattr(spec, name) is not None:
            yield f"spec.{'storageOS' if name == 'storageos' else name}: {pods.VOLUMES[name]}"


def _node(obj: core_v1.Node, old: Any) -> Iterator[str]:
    if obj.spec.externalID:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _storage_class(obj: storage_v1.StorageClass, old: Any) -> Iterator[str]:
    for i, term in enumerate(obj.allowedTopologies):
        for j, wanted in enumerate(term.matchLabelExpressions):
            if wanted.key in pods.LABELS:
                at = f"allowedTopologies[{i}].matchLabelExpressions[{j}].key"
                yield f"{at}: {pods.LABELS[wanted.key]}"


def _runtime_class(obj: node_v1.RuntimeClass, old: Any) -> Iterator[str]:
    for label in sorted(obj.scheduling.nodeSelector) if obj.scheduling is not None else ():
        if label in pods.LABELS:
            yield f"scheduling.nodeSelector: {pods.LABELS[label]}"


def _account(obj: core_v1.ServiceAccount, old: Any) -> Iterator[str]:
    if _MOUNTABLE in obj.metadata.annotations and (old is None or _MOUNTABLE not in old.metadata.annotations):
        prefer = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; {prefer}"


def _service(obj: core_v1.Service, old: Any) -> Iterator[str]:
    spec = obj.spec
    headless, outside = spec.clusterIPs == ("None",), spec.type == "ExternalName"
    if _HINTS in obj.metadata.annotations:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if headless:
        if spec.loadBalancerIP:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.externalIPs:
            yield "spec.externalIPs is ignored for headless services"
        if spec.sessionAffinity != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    if spec.externalIPs and not headless and not outside:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.externalIPs and outside:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.externalName and not outside:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.trafficDistribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


_SPECIAL: Mapping[str, Remarks] = {
    "Ingress": _ingress,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "RuntimeClass": _runtime_class,
    "Service": _service,
    "ServiceAccount": _account,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
}
