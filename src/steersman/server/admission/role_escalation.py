"""RoleEscalation: denies roles and bindings that grant permissions their author does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steersman.server.admission.plugin import Listers, Plugin
from steersman.server.auth import escalation
from steersman.server.auth.rbac import TABLES, RBACAuthorizer
from steersman.server.server import AdmissionAttributes, BeforeWrite


@dataclass(frozen=True, slots=True)
class RoleEscalation(Plugin):
    """Denies writes to roles and bindings that would escalate privileges."""

    authorizer: RBACAuthorizer

    name: ClassVar[str] = "RoleEscalation"
    validates: ClassVar[tuple[str, ...]] = TABLES

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
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
