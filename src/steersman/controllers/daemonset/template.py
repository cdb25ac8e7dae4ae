"""Daemon pods from the pod template: adds tolerations, and node affinity for one node."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.kinds import NewPod, ObjectMeta, Opaque, Pod, Toleration
from steersman.api.kinds.daemonsets import DAEMONSETS, Affinity, DaemonSet
from steersman.api.meta import owner_reference
from steersman.api.scheduling import NO_EXECUTE, NO_SCHEDULE
from steersman.api.scheme import encode_hook
from steersman.controllers.shared.history import REVISION
from steersman.controllers.shared.pod_control import pods_prefix

POD_TEMPLATE_GENERATION = "pod-template-generation"
"""The label that told pods of different templates apart before there were ControllerRevisions, and still does."""
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""The annotation in which the server counts the templates of a DaemonSet."""

_NODE_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_affinity = msgspec.json.Decoder(Affinity | None).decode


# -- existing pods ----------------------------------------------------------------------------


def generation_of(daemonset: DaemonSet) -> str | None:
    """The template generation of a DaemonSet; None where the server has not set it."""
    text = daemonset.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return str(int(text)) if _INTEGER.fullmatch(text) else None


def is_updated(pod: Pod, hash_: str, generation: str | None) -> bool:
    """Whether a pod is of the present template, by its revision hash or its template generation."""
    labels = pod.metadata.labels
    return labels.get(REVISION) == hash_ or (
        generation is not None and labels.get(POD_TEMPLATE_GENERATION) == generation
    )


def target_node(pod: Pod) -> str:
    """The node a pod is bound to, or that its affinity requires while it is pending; empty where there is none."""
    if pod.spec.nodeName:
        return pod.spec.nodeName
    raw: object = pod.spec.affinity
    affinity: Any = _affinity(raw) if isinstance(raw, msgspec.Raw) else raw
    node = affinity and affinity.nodeAffinity
    required = node and node.requiredDuringSchedulingIgnoredDuringExecution
    for term in required.nodeSelectorTerms if required else ():
        for requirement in term.matchFields:
            if requirement.key == _NODE_NAME and requirement.operator == "In":
                name: str = requirement.values[0] if len(requirement.values) == 1 else ""
                return name
    return ""


# -- tolerations ------------------------------------------------------------------------------

_PREFIX = "node.kubernetes.io/"
TOLERATIONS = (
    Toleration(key=_PREFIX + "not-ready", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=_PREFIX + "unreachable", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=_PREFIX + "disk-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_PREFIX + "memory-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_PREFIX + "pid-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=_PREFIX + "unschedulable", operator="Exists", effect=NO_SCHEDULE),
)
"""The tolerations of every daemon pod: it stays on a node in trouble."""

HOST_NETWORK_TOLERATIONS = (
    Toleration(key=_PREFIX + "network-unavailable", operator="Exists", effect=NO_SCHEDULE),
)
"""The further tolerations of daemon pods with ``hostNetwork``."""


def daemon_tolerations(host_network: bool) -> tuple[Toleration, ...]:
    """The tolerations that every daemon pod gets."""
    return (*TOLERATIONS, *HOST_NETWORK_TOLERATIONS) if host_network else TOLERATIONS


# -- new pods ---------------------------------------------------------------------------------


class PodFactory(msgspec.Struct, frozen=True):
    """Makes the pods of a DaemonSet, which only differ in the node name in their affinity."""

    metadata: ObjectMeta
    before: bytes
    """The JSON of the pod spec up to the node name."""
    after: bytes
    """The JSON of the pod spec after the node name."""

    @staticmethod
    def of(daemonset: DaemonSet, hash_: str) -> PodFactory:
        """The factory for the DaemonSet's present template, whose revision has this hash."""
        template = daemonset.spec.template
        labels = {**template.metadata.labels, REVISION: hash_}
        generation = generation_of(daemonset)
        if generation is not None:
            labels[POD_TEMPLATE_GENERATION] = generation
        metadata = ObjectMeta(
            generateName=pods_prefix(daemonset.metadata.name),
            labels=labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers,
            ownerReferences=(owner_reference(daemonset, DAEMONSETS),),
        )
        spec: Opaque = template.spec
        return PodFactory(metadata, *_split(bytes(spec) if isinstance(spec, msgspec.Raw) else _encode(spec)))

    def pod_for(self, node: str) -> NewPod:
        """A pod that only schedules to this node."""
        return NewPod(
            metadata=self.metadata, spec=msgspec.Raw(b"".join((self.before, _encode(node), self.after)))
        )


@lru_cache(maxsize=64)
def _split(raw: bytes) -> tuple[bytes, bytes]:
    """The JSON of a pod spec, before and after the node name.

    The template's own required node affinity is left out: only nodes that satisfy it get a pod.
    """
    spec: dict[str, Any] = msgspec.json.decode(raw)
    affinity: dict[str, Any] = spec.pop("affinity", None) or {}
    node_affinity: dict[str, Any] = affinity.pop("nodeAffinity", None) or {}
    node_affinity.pop(_REQUIRED, None)
    spec["tolerations"] = _tolerations(spec)
    terms = b'[{"matchFields":[{"key":"metadata.name","operator":"In","values":['
    before = b'{"affinity":{"nodeAffinity":{"%b":{"nodeSelectorTerms":%b' % (_REQUIRED.encode(), terms)
    return before, b"]}]}]}" + _rest(node_affinity) + _rest(affinity) + _rest(spec)


def _rest(document: dict[str, Any]) -> bytes:
    """The remaining fields of an object whose first field is written already, with its closing brace."""
    return b"," + _encode(document)[1:] if document else b"}"


def _tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The template's tolerations and those of every daemon pod, which replace one that only differs in
    ``tolerationSeconds``."""
    tolerations: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    for each in daemon_tolerations(bool(spec.get("hostNetwork"))):
        new = {"key": each.key, "operator": each.operator, "effect": each.effect}
        equal = [index for index, old in enumerate(tolerations) if _without_seconds(old) == new]
        for index in equal:
            tolerations[index] = new
        if not equal:
            tolerations.append(new)
    return tolerations


def _without_seconds(toleration: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}
