"""Warnings about valid objects: deprecated fields and doubtful values, for the Warning header of a response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from steersman.api.generated import apps_v1, core_v1, networking_v1, node_v1, storage_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.label_syntax import value_errors
from steersman.api.quantity import Quantity
from steersman.server.validation.names import dns1123_label

WarningRule: TypeAlias = Callable[[Any, Any], Iterator[str]]

_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template"),
    ),
}
_HOSTNAMES: Mapping[str, str] = {
    "Pod": "this is used in the Pod's hostname",
    **dict.fromkeys(
        ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController"),
        "this is used in Pod names and hostnames",
    ),
}
"""The kinds whose names become names of hosts, and how."""
_NO_HOSTNAME = "which can result in surprising behavior; a DNS label is recommended"
_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEPRECATED_STORAGE_CLASS = f'metadata.annotations[{_STORAGE_CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


def warnings_for(kind: str, obj: Any, old: Any) -> tuple[str, ...]:
    """The warnings about a written object of a built-in kind; ``old`` is None on create."""
    warnings: list[str] = []
    if old is None and kind in _HOSTNAMES and (wrong := dns1123_label(obj.metadata.name)):
        warnings.append(f"metadata.name: {_HOSTNAMES[kind]}, {_NO_HOSTNAME}: [{' '.join(wrong)}]")
    if kind == "Pod":
        # Updates of pods come from controllers and kubelets, which do not show warnings.
        return (*warnings, *pod_warnings(obj.spec, obj.metadata)) if old is None else ()
    template_path = _TEMPLATE_PATHS.get(kind)
    if template_path is not None and (old is None or old.metadata.generation != obj.metadata.generation):
        template = obj
        for part in template_path:
            template = getattr(template, part)
        if template is not None:
            warnings += pod_warnings(template.spec, template.metadata, ".".join((*template_path, "")))
    special = _KIND_WARNINGS.get(kind)
    if special is not None:
        warnings += special(obj, old)
    return tuple(warnings)


def _stateful_set_warnings(obj: apps_v1.StatefulSet, old: apps_v1.StatefulSet | None) -> Iterator[str]:
    limit = obj.spec.revisionHistoryLimit
    if limit is not None and limit < 0:
        retained = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {retained}"


def _ingress_warnings(obj: networking_v1.Ingress, old: networking_v1.Ingress | None) -> Iterator[str]:
    if old is None and _INGRESS_CLASS in obj.metadata.annotations:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _claim_warnings(
    obj: core_v1.PersistentVolumeClaim, old: core_v1.PersistentVolumeClaim | None
) -> Iterator[str]:
    if _STORAGE_CLASS_ANNOTATION in obj.metadata.annotations:
        yield _DEPRECATED_STORAGE_CLASS
    sizes = obj.spec.resources.requests if obj.spec.resources is not None else {}
    yield from fractional_bytes("spec.resources.requests", sizes, ("storage",))


def _volume_warnings(obj: core_v1.PersistentVolume, old: core_v1.PersistentVolume | None) -> Iterator[str]:
    spec = obj.spec
    if _STORAGE_CLASS_ANNOTATION in obj.metadata.annotations:
        yield _DEPRECATED_STORAGE_CLASS
    if spec.persistentVolumeReclaimPolicy == "Recycle":
        instead = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {instead}"
    affinity = spec.nodeAffinity
    if affinity is not None and affinity.required is not None:
        for i, term in enumerate(affinity.required.nodeSelectorTerms or ()):
            yield from node_selector_term_warnings(f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", term)
    for name, value in (
        ("cephfs", spec.cephfs),
        ("photonPersistentDisk", spec.photonPersistentDisk),
        ("scaleIO", spec.scaleIO),
        ("storageos", spec.storageos),
        ("glusterfs", spec.glusterfs),
        ("rbd", spec.rbd),
    ):
        if value is not None:
            yield f"spec.{'storageOS' if name == 'storageos' else name}: {DEPRECATED_VOLUMES[name]}"


def _node_warnings(obj: core_v1.Node, old: core_v1.Node | None) -> Iterator[str]:
    if obj.spec.externalID:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _storage_class_warnings(
    obj: storage_v1.StorageClass, old: storage_v1.StorageClass | None
) -> Iterator[str]:
    for i, term in enumerate(obj.allowedTopologies):
        for j, wanted in enumerate(term.matchLabelExpressions):
            if wanted.key in DEPRECATED_NODE_LABELS:
                at = f"allowedTopologies[{i}].matchLabelExpressions[{j}].key"
                yield f"{at}: {DEPRECATED_NODE_LABELS[wanted.key]}"


def _runtime_class_warnings(obj: node_v1.RuntimeClass, old: node_v1.RuntimeClass | None) -> Iterator[str]:
    for label in sorted(obj.scheduling.nodeSelector) if obj.scheduling is not None else ():
        if label in DEPRECATED_NODE_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_NODE_LABELS[label]}"


def _service_account_warnings(
    obj: core_v1.ServiceAccount, old: core_v1.ServiceAccount | None
) -> Iterator[str]:
    if _MOUNTABLE in obj.metadata.annotations and (old is None or _MOUNTABLE not in old.metadata.annotations):
        prefer = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; {prefer}"


def _service_warnings(obj: core_v1.Service, old: core_v1.Service | None) -> Iterator[str]:
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


_KIND_WARNINGS: Mapping[str, WarningRule] = {
    "Ingress": _ingress_warnings,
    "Node": _node_warnings,
    "PersistentVolume": _volume_warnings,
    "PersistentVolumeClaim": _claim_warnings,
    "RuntimeClass": _runtime_class_warnings,
    "Service": _service_warnings,
    "ServiceAccount": _service_account_warnings,
    "StatefulSet": _stateful_set_warnings,
    "StorageClass": _storage_class_warnings,
}


# -- pods and pod templates -------------------------------------------------------------------

DEPRECATED_NODE_LABELS: Mapping[str, str] = {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    )
}
"""Deprecated node labels, and the warning about each."""
DEPRECATED_VOLUMES: Mapping[str, str] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""Deprecated volume sources, and the warning about each."""
_DEPRECATED_ANNOTATIONS: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_BYTE_RESOURCES = ("memory", "ephemeral-storage")


def pod_warnings(spec: v1.PodSpec, meta: ObjectMeta, prefix: str = "") -> Iterator[str]:
    """The warnings about a pod or a pod template; ``prefix`` is the template's path, with a trailing dot."""
    at, notes = f"{prefix}spec.", f"{prefix}metadata.annotations"
    for label in sorted(spec.nodeSelector):
        if label in DEPRECATED_NODE_LABELS:
            yield f"{at}nodeSelector[{label}]: {DEPRECATED_NODE_LABELS[label]}"
    if spec.affinity is not None and spec.affinity.nodeAffinity is not None:
        yield from _node_affinity_warnings(f"{at}affinity.nodeAffinity", spec.affinity.nodeAffinity)
    for i, spread in enumerate(spec.topologySpreadConstraints):
        here = f"{at}topologySpreadConstraints[{i}]"
        if spread.topologyKey in DEPRECATED_NODE_LABELS:
            yield f"{here}.topologyKey: {spread.topologyKey} is {DEPRECATED_NODE_LABELS[spread.topologyKey]}"
        if spread.labelSelector is None:
            yield f"{here}.labelSelector: {_NULL_SELECTOR}"
    for note, text in _DEPRECATED_ANNOTATIONS.items():
        if note in meta.annotations:
            yield f"{notes}[{note}]: {text}"
    for i, volume in enumerate(spec.volumes):
        for name, text in DEPRECATED_VOLUMES.items():
            if getattr(volume, name) is not None:
                yield f"{at}volumes[{i}].{'storageOS' if name == 'storageos' else name}: {text}"
    yield from _duplicates(f"{at}hostAliases", "ip", (alias.ip for alias in spec.hostAliases))
    secrets = [secret.name for secret in spec.imagePullSecrets]
    yield from _duplicates(f"{at}imagePullSecrets", "name", secrets)
    for i, secret in enumerate(secrets):
        if not secret:
            yield f'{at}imagePullSecrets[{i}].name: invalid empty name ""'
    yield from fractional_bytes(f"{at}overhead", spec.overhead, _BYTE_RESOURCES)
    profiled = spec.securityContext is not None and spec.securityContext.seccompProfile is not None
    if _SECCOMP in meta.annotations and not profiled:
        yield f'{notes}[{_SECCOMP}]: non-functional in v1.27+; use the "seccompProfile" field instead'
    containers = [
        *((f"{at}initContainers[{i}]", container) for i, container in enumerate(spec.initContainers)),
        *((f"{at}containers[{i}]", container) for i, container in enumerate(spec.containers)),
    ]
    for here, container in containers:
        sizes = container.resources
        for name in _BYTE_RESOURCES:
            yield from fractional_bytes(f"{here}.resources.limits", sizes.limits, (name,))
            yield from fractional_bytes(f"{here}.resources.requests", sizes.requests, (name,))
        yield from _hidden_variables(f"{here}.env", container.env)
    yield from _overlapping_ports(containers)
    grace = spec.terminationGracePeriodSeconds
    if grace is not None and grace < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}terminationGracePeriodSeconds: {text}"
    if spec.affinity is not None:
        yield from _pod_affinity_warnings(f"{at}affinity.podAffinity", spec.affinity.podAffinity)
        yield from _pod_affinity_warnings(f"{at}affinity.podAntiAffinity", spec.affinity.podAntiAffinity)


def _duplicates(at: str, name: str, values: Iterable[str]) -> Iterator[str]:
    seen: dict[str, None] = {}
    for i, value in enumerate(values):
        if value in seen:
            yield f'{at}[{i}].{name}: duplicate {name} "{value}"'
        seen[value] = None


def fractional_bytes(at: str, quantities: Mapping[str, Amount], names: Iterable[str]) -> Iterator[str]:
    """Warns about quantities of bytes that are not whole numbers."""
    for name in names:
        if name in quantities:
            amount = Quantity.parse(quantities[name])
            if amount.value() * 1000 != amount.milli():
                yield f'{at}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _hidden_variables(at: str, env: tuple[v1.EnvVar, ...]) -> Iterator[str]:
    """Warns about a variable that hides an earlier one of the same name without referring to it."""
    seen: dict[str, None] = {}
    for i, variable in enumerate(env):
        ref = f"$({variable.name})"
        if variable.name in seen and (
            variable.valueFrom is not None or variable.value == ref or ref not in variable.value
        ):
            message = f'hides previous definition of "{variable.name}", which may be dropped when using apply'
            yield f"{at}[{i}]: {message}"
        seen[variable.name] = None


def _overlapping_ports(containers: Iterable[tuple[str, v1.Container]]) -> Iterator[str]:
    listed = [
        (f"{at}.ports[{i}]", port) for at, container in containers for i, port in enumerate(container.ports)
    ]
    known: dict[tuple[int, str], list[tuple[str, v1.ContainerPort]]] = {}
    for at, port in listed:
        others = known.setdefault((port.containerPort, port.protocol), [])
        for other_path, other in others:
            if (port.hostIP, port.hostPort) == (other.hostIP, other.hostPort):
                yield f"{at}: duplicate port definition with {other_path}"
            elif not port.hostPort or not other.hostPort:
                yield f"{at}: overlapping port definition with {other_path}"
            elif port.hostPort == other.hostPort and bool(port.hostIP) != bool(other.hostIP):
                yield f"{at}: dangerously ambiguous port definition with {other_path}"
        others.append((at, port))
    names: dict[str, str] = {}
    for at, port in listed:
        other_path = names.setdefault(port.name, at) if port.name else at
        if other_path != at:
            message = f"services and probes that select ports by name will use {other_path}"
            yield f'{at}: duplicate port name "{port.name}" with {other_path}, {message}'


def _node_affinity_warnings(at: str, affinity: v1.NodeAffinity) -> Iterator[str]:
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution
    if required is not None:
        here = f"{at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for i, term in enumerate(required.nodeSelectorTerms or ()):
            yield from node_selector_term_warnings(f"{here}[{i}]", term)
    for i, preferred in enumerate(affinity.preferredDuringSchedulingIgnoredDuringExecution):
        here = f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{i}].preference"
        yield from node_selector_term_warnings(here, preferred.preference, values=True)


def node_selector_term_warnings(at: str, term: v1.NodeSelectorTerm, *, values: bool = False) -> Iterator[str]:
    """Warns about deprecated node labels in a term, and with ``values`` about invalid label values."""
    for i, wanted in enumerate(term.matchExpressions):
        here = f"{at}.matchExpressions[{i}]"
        if wanted.key in DEPRECATED_NODE_LABELS:
            yield f"{here}.key: {wanted.key} is {DEPRECATED_NODE_LABELS[wanted.key]}"
        for j, value in enumerate(wanted.values if values else ()):
            for detail in value_errors(value):
                yield f"{here}.values[{j}]: {value} is invalid, {detail}"


def _pod_affinity_warnings(at: str, affinity: v1.PodAffinity | v1.PodAntiAffinity | None) -> Iterator[str]:
    if affinity is None:
        return
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(getattr(affinity, required)):
        if term.labelSelector is None:
            yield f"{at}.{required}[{i}].labelSelector: {_NULL_SELECTOR}"
    for i, weighted in enumerate(getattr(affinity, preferred)):
        if weighted.podAffinityTerm.labelSelector is None:
            yield f"{at}.{preferred}[{i}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
