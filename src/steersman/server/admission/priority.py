"""Priority: resolves the PriorityClass of pods to a priority."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.api.generated.scheduling_v1 import PriorityClass
from steersman.server.admission.plugin import AdmissionDenied, Listers, PodDraft, PodPlugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes, BeforeWrite

CLASSES = "priorityclasses.scheduling.k8s.io"
PREEMPT = "PreemptLowerPriority"


class Priority(PodPlugin, frozen=True):
    """Sets the priority of a new pod from its class, keeps that of an existing one, and allows one default class."""

    name: ClassVar[str] = "Priority"
    mutates: ClassVar[tuple[str, ...]] = ("pods",)
    validates: ClassVar[tuple[str, ...]] = (CLASSES,)
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        spec = draft.spec
        name, value, policy = resolve(spec.priorityClassName, listers)
        if spec.priority is not None and spec.priority != value:
            raise AdmissionDenied(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name"
            )
        if policy is not None and spec.preemptionPolicy is not None and spec.preemptionPolicy != policy:
            raise AdmissionDenied(
                f"the string value of PreemptionPolicy ({spec.preemptionPolicy}) must not be provided in pod "
                f"spec; priority admission controller computed {policy} from the given PriorityClass name"
            )
        policy = policy if policy is not None else spec.preemptionPolicy
        return PodDraft(
            put(spec, priorityClassName=name, priority=value, preemptionPolicy=policy), draft.notes
        )

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        new, old = request.obj.spec, request.old.spec
        if new.priority is None:
            new = put(new, priority=old.priority)
        if new.preemptionPolicy is None:
            new = put(new, preemptionPolicy=old.preemptionPolicy)
        return put(request.obj, spec=new)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        if request.obj.globalDefault:
            known = default_class(listers)
            if known is not None and (
                request.operation == "CREATE" or known.metadata.name != request.obj.metadata.name
            ):
                raise AdmissionDenied(
                    f"PriorityClass {known.metadata.name} is already marked as default. Only one default can exist"
                )
        return None


def resolve(name: str, listers: Listers) -> tuple[str, int, str | None]:
    """The name, value and preemption policy of the class of a pod; ``name`` is empty for the default class."""
    if name:
        found = listers.get(CLASSES, "", name)
        if found is None:
            raise AdmissionDenied(f"no PriorityClass with name {name} was found")
    else:
        found = default_class(listers)
        if found is None:
            return "", 0, PREEMPT
    return found.metadata.name, found.value, found.preemptionPolicy


def default_class(listers: Listers) -> PriorityClass | None:
    """The global default class; of several the one with the lowest value."""
    marked = [each for each in listers.list(CLASSES) if each.globalDefault]
    return min(marked, key=lambda each: each.value) if marked else None
