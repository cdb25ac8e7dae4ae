"""Priority: names of priority classes become numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.api.generated.scheduling_v1 import PriorityClass
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin, Refused
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes, Settle

CLASSES = "priorityclasses.scheduling.k8s.io"
PREEMPT = "PreemptLowerPriority"


class Priority(PodPlugin):
    """Resolves the class of a new pod; keeps the number of an old one; allows one default class."""

    name: ClassVar[str] = "Priority"
    mutates: ClassVar[tuple[str, ...]] = ("pods",)
    validates: ClassVar[tuple[str, ...]] = (CLASSES,)
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        spec = draft.spec
        name, value, policy = resolve(spec.priorityClassName, look)
        if spec.priority is not None and spec.priority != value:
            raise Refused(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name"
            )
        if policy is not None and spec.preemptionPolicy is not None and spec.preemptionPolicy != policy:
            raise Refused(
                f"the string value of PreemptionPolicy ({spec.preemptionPolicy}) must not be provided in pod "
                f"spec; priority admission controller computed {policy} from the given PriorityClass name"
            )
        policy = policy if policy is not None else spec.preemptionPolicy
        return Draft(put(spec, priorityClassName=name, priority=value, preemptionPolicy=policy), draft.notes)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        new, old = request.obj.spec, request.old.spec
        if new.priority is None:
            new = put(new, priority=old.priority)
        if new.preemptionPolicy is None:
            new = put(new, preemptionPolicy=old.preemptionPolicy)
        return put(request.obj, spec=new)

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        if request.obj.globalDefault:
            known = default_class(look)
            if known is not None and (
                request.operation == "CREATE" or known.metadata.name != request.obj.metadata.name
            ):
                raise Refused(
                    f"PriorityClass {known.metadata.name} is already marked as default. Only one default can exist"
                )
        return None


def resolve(name: str, look: Lookups) -> tuple[str, int, str | None]:
    """The class, the number and the preemption policy of a pod that asks for a class, or for none."""
    if name:
        found = look.get(CLASSES, "", name)
        if found is None:
            raise Refused(f"no PriorityClass with name {name} was found")
    else:
        found = default_class(look)
        if found is None:
            return "", 0, PREEMPT
    return found.metadata.name, found.value, found.preemptionPolicy


def default_class(look: Lookups) -> PriorityClass | None:
    """The class of pods that name none: of several the lowest."""
    marked = [each for each in look.all(CLASSES) if each.globalDefault]
    return min(marked, key=lambda each: each.value) if marked else None
