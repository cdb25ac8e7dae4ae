"""DefaultTolerationSeconds: pods stay for five minutes on a node that is not ready or out of reach."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.api.generated.core_v1 import PodSpec, Toleration
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes

DEFAULTS = tuple(
    Toleration(key=key, operator="Exists", effect="NoExecute", tolerationSeconds=300)
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class DefaultTolerationSeconds(PodPlugin):
    """Adds the two tolerations to pods that say nothing about those taints."""

    name: ClassVar[str] = "DefaultTolerationSeconds"
    mutates: ClassVar[tuple[str, ...]] = ("pods",)

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        return Draft(tolerant(draft.spec), draft.notes)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        return put(request.obj, spec=tolerant(request.obj.spec))


def tolerant(spec: PodSpec) -> PodSpec:
    said = [given.key for given in spec.tolerations if given.effect in ("NoExecute", "")]
    missing = tuple(each for each in DEFAULTS if each.key not in said and "" not in said)
    return put(spec, tolerations=(*spec.tolerations, *missing)) if missing else spec
