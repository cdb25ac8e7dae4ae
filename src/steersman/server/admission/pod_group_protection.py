"""PodGroupProtection: the finalizer of new PodGroups."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.server.admission.plugin import Listers, Plugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes

FINALIZER = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Plugin, frozen=True):
    """Adds a finalizer to new PodGroups, which podgroup-protection-controller removes when no pod is left in the group."""

    name: ClassVar[str] = "PodGroupProtection"
    mutates: ClassVar[tuple[str, ...]] = ("podgroups.scheduling.k8s.io",)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        obj = request.obj
        if request.operation != "CREATE" or FINALIZER in obj.metadata.finalizers:
            return obj
        return put(obj, metadata=put(obj.metadata, finalizers=(*obj.metadata.finalizers, FINALIZER)))
