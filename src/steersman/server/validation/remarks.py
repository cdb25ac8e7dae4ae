"""What is odd about a pod, or about the template of one, and not refused: told to whoever writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import Quantity

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template"),
    ),
}
_NO_PODS = "a null labelSelector results in matching no pod"
_LABELS: Mapping[str, str] = {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    )
}
_VOLUMES: Mapping[str, str] = {
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
_BYTES = ("memory", "ephemeral-storage")


def remarks(kind: str, obj: Any, old: Any) -> tuple[str, ...]:
    """All that is odd about an object that was written; ``old`` is None for a new one."""
    if kind == "Pod":
        # Pods are seldom written by those who would read it.
        return tuple(_pod(obj.spec, "")) if old is None else ()
    where = _TEMPLATES.get(kind)
    if where is None or (old is not None and old.metadata.generation == obj.metadata.generation):
        return ()
    for part in where:
        obj = getattr(obj, part)
    return () if obj is None else tuple(_pod(obj.spec, ".".join((*where, ""))))


def _pod(spec: v1.PodSpec, at: str) -> Iterator[str]:
    """``at`` is where the pod is, with a dot at its end."""
    at = f"{at}spec."
    for label in sorted(spec.nodeSelector):
        if label in _LABELS:
            yield f"{at}nodeSelector[{label}]: {_LABELS[label]}"
    for i, spread in enumerate(spec.topologySpreadConstraints):
        here = f"{at}topologySpreadConstraints[{i}]"
        if spread.topologyKey in _LABELS:
            yield f"{here}.topologyKey: {spread.topologyKey} is {_LABELS[spread.topologyKey]}"
        if spread.labelSelector is None:
            yield f"{here}.labelSelector: {_NO_PODS}"
    for i, volume in enumerate(spec.volumes):
        for name, text in _VOLUMES.items():
            if getattr(volume, name) is not None:
                yield f"{at}volumes[{i}].{'storageOS' if name == 'storageos' else name}: {text}"
    yield from _twice(f"{at}hostAliases", "ip", (alias.ip for alias in spec.hostAliases))
    secrets = [secret.name for secret in spec.imagePullSecrets]
    yield from _twice(f"{at}imagePullSecrets", "name", secrets)
    for i, secret in enumerate(secrets):
        if not secret:
            yield f'{at}imagePullSecrets[{i}].name: invalid empty name ""'
    yield from _fractions(f"{at}overhead", spec.overhead)
    containers = [
        *((f"{at}initContainers[{i}]", each) for i, each in enumerate(spec.initContainers)),
        *((f"{at}containers[{i}]", each) for i, each in enumerate(spec.containers)),
    ]
    for here, container in containers:
        yield from _fractions(f"{here}.resources.limits", container.resources.limits)
        yield from _fractions(f"{here}.resources.requests", container.resources.requests)
        yield from _hidden(f"{here}.env", container.env)
    yield from _ports(containers)
    grace = spec.terminationGracePeriodSeconds
    if grace is not None and grace < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}terminationGracePeriodSeconds: {text}"
    if spec.affinity is not None:
        yield from _affinity(f"{at}affinity.podAffinity", spec.affinity.podAffinity)
        yield from _affinity(f"{at}affinity.podAntiAffinity", spec.affinity.podAntiAffinity)


def _twice(at: str, name: str, values: Iterable[str]) -> Iterator[str]:
    seen: dict[str, None] = {}
    for i, value in enumerate(values):
        if value in seen:
            yield f'{at}[{i}].{name}: duplicate {name} "{value}"'
        seen[value] = None


def _fractions(at: str, amounts: Mapping[str, Any]) -> Iterator[str]:
    for name in _BYTES:
        if name in amounts:
            amount = Quantity.parse(amounts[name])
            if amount.value() * 1000 != amount.milli():
                yield f'{at}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _hidden(at: str, env: tuple[v1.EnvVar, ...]) -> Iterator[str]:
    """A later value that does not build on an earlier one of the same name."""
    seen: dict[str, None] = {}
    for i, each in enumerate(env):
        ref = f"$({each.name})"
        if each.name in seen and (each.valueFrom is not None or each.value == ref or ref not in each.value):
            says = f'hides previous definition of "{each.name}", which may be dropped when using apply'
            yield f"{at}[{i}]: {says}"
        seen[each.name] = None


def _ports(containers: Iterable[tuple[str, v1.Container]]) -> Iterator[str]:
    listed = [(f"{at}.ports[{i}]", port) for at, each in containers for i, port in enumerate(each.ports)]
    known: dict[tuple[int, str], list[tuple[str, v1.ContainerPort]]] = {}
    for at, port in listed:
        others = known.setdefault((port.containerPort, port.protocol), [])
        for there, other in others:
            if (port.hostIP, port.hostPort) == (other.hostIP, other.hostPort):
                yield f"{at}: duplicate port definition with {there}"
            elif not port.hostPort or not other.hostPort:
                yield f"{at}: overlapping port definition with {there}"
            elif port.hostPort == other.hostPort and bool(port.hostIP) != bool(other.hostIP):
                yield f"{at}: dangerously ambiguous port definition with {there}"
        others.append((at, port))
    names: dict[str, str] = {}
    for at, port in listed:
        there = names.setdefault(port.name, at) if port.name else at
        if there != at:
            says = f"services and probes that select ports by name will use {there}"
            yield f'{at}: duplicate port name "{port.name}" with {there}, {says}'


def _affinity(at: str, affinity: v1.PodAffinity | v1.PodAntiAffinity | None) -> Iterator[str]:
    if affinity is None:
        return
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(getattr(affinity, required)):
        if term.labelSelector is None:
            yield f"{at}.{required}[{i}].labelSelector: {_NO_PODS}"
    for i, weighted in enumerate(getattr(affinity, preferred)):
        if weighted.podAffinityTerm.labelSelector is None:
            yield f"{at}.{preferred}[{i}].podAffinityTerm.labelSelector: {_NO_PODS}"
