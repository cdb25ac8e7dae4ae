"""Pods from a DaemonSet's template: whatever is in it goes along, and each is for one node alone."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.kinds import NewPod, ObjectMeta, Pod
from steersman.api.kinds.daemonsets import DAEMONSETS, Affinity, DaemonSet
from steersman.api.label_syntax import MAX_SUBDOMAIN
from steersman.api.meta import owner_reference
from steersman.api.scheme import unusual
from steersman.controllers.daemonset.fit import automatic
from steersman.controllers.shared.history import REVISION

GENERATION = "pod-template-generation"
"""The label that told pods apart before there were revisions, and still does."""
ANNOTATION = "deprecated.daemonset.template.generation"
"""Where the server counts the templates a DaemonSet has had."""

_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")

_encode = msgspec.json.Encoder(enc_hook=unusual).encode
_affinity = msgspec.json.Decoder(Affinity | None).decode


def generation_of(daemonset: DaemonSet) -> str | None:
    """Which of its templates this is, where the server has counted."""
    said = daemonset.metadata.annotations.get(ANNOTATION, "")
    return str(int(said)) if _WHOLE.fullmatch(said) else None


def is_updated(pod: Pod, hash_: str, generation: str | None) -> bool:
    """Whether a pod is of the template there is now: by its revision, or by its number."""
    labels = pod.metadata.labels
    return labels.get(REVISION) == hash_ or (generation is not None and labels.get(GENERATION) == generation)


def target_of(pod: Pod) -> str:
    """The node a pod is on, or is for while it waits for its place; empty where nothing tells."""
    if pod.spec.nodeName:
        return pod.spec.nodeName
    said: Any = pod.spec.affinity
    affinity: Affinity | None = _affinity(said) if isinstance(said, msgspec.Raw) else said
    node = affinity and affinity.nodeAffinity
    required = node and node.requiredDuringSchedulingIgnoredDuringExecution
    for term in required.nodeSelectorTerms if required else ():
        for need in term.matchFields:
            if need.key == _NAME and need.operator == "In":
                return need.values[0] if len(need.values) == 1 else ""
    return ""


class Blueprint(msgspec.Struct, frozen=True):
    """All pods of a DaemonSet are alike, but for the one name of a node in them."""

    metadata: ObjectMeta
    before: bytes
    after: bytes

    @staticmethod
    def of(daemonset: DaemonSet, hash_: str) -> Blueprint:
        template, name = daemonset.spec.template, daemonset.metadata.name
        labels = {**template.metadata.labels, REVISION: hash_}
        generation = generation_of(daemonset)
        if generation is not None:
            labels[GENERATION] = generation
        metadata = ObjectMeta(
            generateName=f"{name}-" if len(name) < MAX_SUBDOMAIN else name,
            labels=labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers,
            ownerReferences=(owner_reference(daemonset, DAEMONSETS),),
        )
        spec: Any = template.spec
        return Blueprint(metadata, *_halves(bytes(spec) if isinstance(spec, msgspec.Raw) else _encode(spec)))

    def pod(self, node: str) -> NewPod:
        """A pod that no scheduler will put anywhere but on this node."""
        return NewPod(
            metadata=self.metadata, spec=msgspec.Raw(b"".join((self.before, _encode(node), self.after)))
        )


@lru_cache(maxsize=64)
def _halves(raw: bytes) -> tuple[bytes, bytes]:
    """The spec of every pod, up to the node's name and from there on.

    What the template requires of nodes' labels is left out: only nodes that have them get a pod.
    """
    spec: dict[str, Any] = msgspec.json.decode(raw)
    affinity: dict[str, Any] = spec.pop("affinity", None) or {}
    preferred: dict[str, Any] = affinity.pop("nodeAffinity", None) or {}
    preferred.pop(_REQUIRED, None)
    spec["tolerations"] = _tolerations(spec)
    need = b'[{"matchFields":[{"key":"metadata.name","operator":"In","values":['
    before = b'{"affinity":{"nodeAffinity":{"%b":{"nodeSelectorTerms":%b' % (_REQUIRED.encode(), need)
    return before, b"]}]}]}" + _rest(preferred) + _rest(affinity) + _rest(spec)


def _rest(document: dict[str, Any]) -> bytes:
    """The fields of a document whose first one is written already, and its end."""
    return b"," + _encode(document)[1:] if document else b"}"


def _tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the template, and what comes with being a pod of a DaemonSet. One that differs from these just in
    how long it lasts gives way."""
    said: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    for each in automatic(bool(spec.get("hostNetwork"))):
        new = {"key": each.key, "operator": each.operator, "effect": each.effect}
        alike = [place for place, old in enumerate(said) if _without_end(old) == new]
        for place in alike:
            said[place] = new
        if not alike:
            said.append(new)
    return said


def _without_end(toleration: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}
