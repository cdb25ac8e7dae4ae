"""TaintNodesByCondition: a new node takes no pods until it is known to be ready."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.api.generated.core_v1 import Taint
from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


class TaintNodesByCondition(Plugin):
    """Taints new nodes; the node lifecycle controller takes the taint away."""

    name: ClassVar[str] = "TaintNodesByCondition"
    mutates: ClassVar[tuple[str, ...]] = ("nodes",)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        node = request.obj
        taints = node.spec.taints
        if request.operation != "CREATE":
            return node
        if any(taint.key == NOT_READY.key and taint.effect == NOT_READY.effect for taint in taints):
            return node
        return put(node, spec=put(node.spec, taints=(*taints, NOT_READY)))
