"""RoleEscalation: refuses roles and bindings that grant more than their author holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.auth import escalation
from steersman.server.auth.rbac import TABLES, RBACAuthorizer
from steersman.server.server import Attributes, Settle


@dataclass(frozen=True, slots=True)
class RoleEscalation(Plugin):
    """Refuses a write to a role or binding that would escalate privileges."""

    authorizer: RBACAuthorizer

    name: ClassVar[str] = "RoleEscalation"
    validates: ClassVar[tuple[str, ...]] = TABLES

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        if request.obj is not None:
            escalation.check(
                self.authorizer,
                request.user,
                request.obj,
                request.old,
                namespace=request.namespace,
                # A create has no name in its path.
                name="" if request.operation == "CREATE" else request.name,
            )
        return None
