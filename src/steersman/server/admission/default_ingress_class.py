"""DefaultIngressClass: an Ingress that names no class is given the default one."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.admission.storage import newest
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes

CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT = "ingressclass.kubernetes.io/is-default-class"
BY_ANNOTATION = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    """Names the newest class marked as default in new ingresses that name none, in either way."""

    name: ClassVar[str] = "DefaultIngressClass"
    mutates: ClassVar[tuple[str, ...]] = ("ingresses.networking.k8s.io",)
    reads: ClassVar[tuple[str, ...]] = (CLASSES,)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        ingress = request.obj
        if request.operation != "CREATE" or ingress.spec.ingressClassName is not None:
            return ingress
        if BY_ANNOTATION in ingress.metadata.annotations:
            return ingress
        marked = [each for each in look.all(CLASSES) if each.metadata.annotations.get(DEFAULT) == "true"]
        chosen = newest(marked)
        return put(ingress, spec=put(ingress.spec, ingressClassName=chosen)) if chosen else ingress
