"""TaintNodesByCondition and DefaultTolerationSeconds: the taints of new nodes, and how long pods tolerate them."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.api.generated.core_v1 import PodSpec, Taint, Toleration
from steersman.server.admission.plugin import Listers, Plugin, PodDraft, PodPlugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


class TaintNodesByCondition(Plugin, frozen=True):
    """Taints new nodes as not ready; the node lifecycle controller removes the taint."""

    name: ClassVar[str] = "TaintNodesByCondition"
    mutates: ClassVar[tuple[str, ...]] = ("nodes",)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        node = request.obj
        taints = node.spec.taints
        if request.operation != "CREATE":
            return node
        if any(taint.key == NOT_READY.key and taint.effect == NOT_READY.effect for taint in taints):
            return node
        return put(node, spec=put(node.spec, taints=(*taints, NOT_READY)))


DEFAULT_TOLERATIONS = tuple(
    Toleration(key=key, operator="Exists", effect="NoExecute", tolerationSeconds=300)
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class DefaultTolerationSeconds(PodPlugin, frozen=True):
    """Adds the default tolerations, of 300 seconds, to pods that do not tolerate those taints."""

    name: ClassVar[str] = "DefaultTolerationSeconds"
    mutates: ClassVar[tuple[str, ...]] = ("pods",)

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        return PodDraft(with_default_tolerations(draft.spec), draft.notes)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        return put(request.obj, spec=with_default_tolerations(request.obj.spec))


def with_default_tolerations(spec: PodSpec) -> PodSpec:
    """The spec with the default tolerations it lacks."""
    keys = [given.key for given in spec.tolerations if given.effect in ("NoExecute", "")]
    missing = tuple(each for each in DEFAULT_TOLERATIONS if each.key not in keys and "" not in keys)
    return put(spec, tolerations=(*spec.tolerations, *missing)) if missing else spec
