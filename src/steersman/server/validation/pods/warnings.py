"""What is odd about a pod, or about the template of one, and not refused: told to whoever writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.label_syntax import value_errors
from steersman.api.quantity import Quantity

LABELS: Mapping[str, str] = {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    )
}
"""Labels of nodes that have others in their place."""
VOLUMES: Mapping[str, str] = {
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
"""Sorts of volumes that are no more."""
_NOTES: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_NO_PODS = "a null labelSelector results in matching no pod"
_BYTES = ("memory", "ephemeral-storage")


def remarks(spec: v1.PodSpec, meta: ObjectMeta, where: str = "") -> Iterator[str]:
    """All that is odd; ``where`` is where the pod is, with a dot at its end."""
    at, notes = f"{where}spec.", f"{where}metadata.annotations"
    for label in sorted(spec.nodeSelector):
        if label in LABELS:
            yield f"{at}nodeSelector[{label}]: {LABELS[label]}"
    if spec.affinity is not None and spec.affinity.nodeAffinity is not None:
        yield from _node_affinity(f"{at}affinity.nodeAffinity", spec.affinity.nodeAffinity)
    for i, spread in enumerate(spec.topologySpreadConstraints):
        here = f"{at}topologySpreadConstraints[{i}]"
        if spread.topologyKey in LABELS:
            yield f"{here}.topologyKey: {spread.topologyKey} is {LABELS[spread.topologyKey]}"
        if spread.labelSelector is None:
            yield f"{here}.labelSelector: {_NO_PODS}"
    for note, text in _NOTES.items():
        if note in meta.annotations:
            yield f"{notes}[{note}]: {text}"
    for i, volume in enumerate(spec.volumes):
        for name, text in VOLUMES.items():
            if getattr(volume, name) is not None:
                yield f"{at}volumes[{i}].{'storageOS' if name == 'storageos' else name}: {text}"
    yield from _twice(f"{at}hostAliases", "ip", (alias.ip for alias in spec.hostAliases))
    secrets = [secret.name for secret in spec.imagePullSecrets]
    yield from _twice(f"{at}imagePullSecrets", "name", secrets)
    for i, secret in enumerate(secrets):
        if not secret:
            yield f'{at}imagePullSecrets[{i}].name: invalid empty name ""'
    yield from fractions(f"{at}overhead", spec.overhead, _BYTES)
    profiled = spec.securityContext is not None and spec.securityContext.seccompProfile is not None
    if _SECCOMP in meta.annotations and not profiled:
        yield f'{notes}[{_SECCOMP}]: non-functional in v1.27+; use the "seccompProfile" field instead'
    containers = [
        *((f"{at}initContainers[{i}]", each) for i, each in enumerate(spec.initContainers)),
        *((f"{at}containers[{i}]", each) for i, each in enumerate(spec.containers)),
    ]
    for here, container in containers:
        sizes = container.resources
        for name in _BYTES:
            yield from fractions(f"{here}.resources.limits", sizes.limits, (name,))
            yield from fractions(f"{here}.resources.requests", sizes.requests, (name,))
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


def fractions(at: str, amounts: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Amounts of bytes that are no whole numbers."""
    for name in names:
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


def _node_affinity(at: str, affinity: v1.NodeAffinity) -> Iterator[str]:
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution
    if required is not None:
        here = f"{at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for i, term in enumerate(required.nodeSelectorTerms or ()):
            yield from node_term(f"{here}[{i}]", term)
    for i, preferred in enumerate(affinity.preferredDuringSchedulingIgnoredDuringExecution):
        here = f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{i}].preference"
        yield from node_term(here, preferred.preference, values=True)


def node_term(at: str, term: v1.NodeSelectorTerm, *, values: bool = False) -> Iterator[str]:
    """What selects nodes by labels that have others in their place, or by what is no value."""
    for i, wanted in enumerate(term.matchExpressions):
        here = f"{at}.matchExpressions[{i}]"
        if wanted.key in LABELS:
            yield f"{here}.key: {wanted.key} is {LABELS[wanted.key]}"
        for j, value in enumerate(wanted.values if values else ()):
            for why in value_errors(value):
                yield f"{here}.values[{j}]: {value} is invalid, {why}"


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
