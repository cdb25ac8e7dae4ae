"""RuntimeClass: the overhead and scheduling constraints of a pod's RuntimeClass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steersman.api.generated.core_v1 import PodSpec, Toleration
from steersman.api.quantity import Quantity
from steersman.server.admission.plugin import AdmissionDenied, Listers, PodDraft, PodPlugin
from steersman.server.defaulting.missing_fields import put

CLASSES = "runtimeclasses.node.k8s.io"


class RuntimeClass(PodPlugin, frozen=True):
    """Sets the overhead and scheduling constraints of a new pod from its RuntimeClass."""

    name: ClassVar[str] = "RuntimeClass"
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        spec = draft.spec
        if spec.runtimeClassName is None:
            return draft
        found = listers.get(CLASSES, "", spec.runtimeClassName)
        if found is None:
            raise AdmissionDenied(f'pod rejected: RuntimeClass "{spec.runtimeClassName}" not found')
        if found.overhead is not None:
            if spec.overhead and not same_quantities(spec.overhead, found.overhead.podFixed):
                raise AdmissionDenied(
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
                )
            spec = put(spec, overhead=found.overhead.podFixed)
        if found.scheduling is not None:
            spec = put(
                spec,
                nodeSelector=_merge_node_selectors(spec.nodeSelector, found.scheduling.nodeSelector),
                tolerations=_merge_tolerations(spec.tolerations, found.scheduling.tolerations),
            )
        return PodDraft(spec, draft.notes)

    def validate_spec(
        self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, listers: Listers
    ) -> str:
        found = listers.get(CLASSES, "", spec.runtimeClassName) if spec.runtimeClassName is not None else None
        if spec.overhead and (found is None or found.overhead is None):
            return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        return ""


def same_quantities(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two resource lists have equal quantities."""
    return one.keys() == other.keys() and all(
        Quantity.parse(one[name]) == Quantity.parse(other[name]) for name in one
    )


def _merge_node_selectors(given: Mapping[str, str], wanted: Mapping[str, str]) -> Mapping[str, str]:
    for key in sorted(wanted):
        if given.get(key, wanted[key]) != wanted[key]:
            raise AdmissionDenied(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}"
            )
    return {**given, **wanted} if wanted else given


def _merge_tolerations(given: tuple[Toleration, ...], more: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return given + tuple(each for each in more if each not in given)
