"""RuntimeClass: what it costs to run a pod the way its class does, and where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steersman.api.generated.core_v1 import PodSpec, Toleration
from steersman.api.quantity import Quantity
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin, Refused
from steersman.server.defaulting.missing_fields import put

CLASSES = "runtimeclasses.node.k8s.io"


class RuntimeClass(PodPlugin):
    """Gives a new pod the overhead and the scheduling constraints of its class."""

    name: ClassVar[str] = "RuntimeClass"
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        spec = draft.spec
        if spec.runtimeClassName is None:
            return draft
        found = look.get(CLASSES, "", spec.runtimeClassName)
        if found is None:
            raise Refused(f'pod rejected: RuntimeClass "{spec.runtimeClassName}" not found')
        if found.overhead is not None:
            if spec.overhead and not same(spec.overhead, found.overhead.podFixed):
                raise Refused("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            spec = put(spec, overhead=found.overhead.podFixed)
        if found.scheduling is not None:
            spec = put(
                spec,
                nodeSelector=_selector(spec.nodeSelector, found.scheduling.nodeSelector),
                tolerations=_merged(spec.tolerations, found.scheduling.tolerations),
            )
        return Draft(spec, draft.notes)

    def fault(self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, look: Lookups) -> str:
        found = look.get(CLASSES, "", spec.runtimeClassName) if spec.runtimeClassName is not None else None
        if spec.overhead and (found is None or found.overhead is None):
            return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        return ""


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether amounts are equal, however they are written."""
    return one.keys() == other.keys() and all(
        Quantity.parse(one[name]) == Quantity.parse(other[name]) for name in one
    )


def _selector(given: Mapping[str, str], wanted: Mapping[str, str]) -> Mapping[str, str]:
    for key in sorted(wanted):
        if given.get(key, wanted[key]) != wanted[key]:
            raise Refused(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}"
            )
    return {**given, **wanted} if wanted else given


def _merged(given: tuple[Toleration, ...], more: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return given + tuple(each for each in more if each not in given)
