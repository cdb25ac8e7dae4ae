"""Which nodes a pod spec admits: their labels and their taints, compared as the scheduler does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.api.kinds import Toleration
from steersman.api.kinds.nodes import NodeSelector, Taint
from steersman.api.scheduling import matches_node_selector_term, tolerates
from steersman.explain.model import Document
from steersman.explain.words import some


def has_selected_labels(pod: Mapping[str, Any], node: Document) -> bool:
    """Whether a node has the labels of the nodeSelector of a pod spec."""
    return (pod.get("nodeSelector") or {}).items() <= _labels(node).items()


def matches_affinity(pod: Mapping[str, Any], node: Document) -> bool:
    """Whether a node matches the required node affinity of a pod spec; every node does where there is none."""
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = msgspec.convert(required, NodeSelector).nodeSelectorTerms
    return any(matches_node_selector_term(each, node["metadata"]["name"], _labels(node)) for each in terms)


def untolerated(pod: Mapping[str, Any], nodes: Iterable[Document]) -> str:
    """The taints of nodes that a pod spec does not tolerate, in words; empty if there are none."""
    tolerations = msgspec.convert(pod.get("tolerations") or (), tuple[Toleration, ...])
    taints = [
        taint
        for node in nodes
        for taint in msgspec.convert((node.get("spec") or {}).get("taints") or (), tuple[Taint, ...])
        if taint.effect != "PreferNoSchedule" and not tolerates(tolerations, taint)
    ]
    names = [f"{each.key}{'=' + each.value if each.value else ''}:{each.effect}" for each in taints]
    return some(list(dict.fromkeys(names)))


def _labels(node: Document) -> Mapping[str, str]:
    found: Mapping[str, str] = node["metadata"].get("labels") or {}
    return found
