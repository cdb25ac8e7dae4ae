"""Access: who may do what, and who asks for a certificate."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steersman.server.tables.age import human, since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated.certificates_v1 import CertificateSigningRequest
    from steersman.api.generated.rbac_v1 import ClusterRoleBinding, RoleBinding


def binding(binding: RoleBinding | ClusterRoleBinding, now: datetime) -> tuple[Cell, ...]:
    """The cells of a binding of either sort."""
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.subjects:
        inside = f"{subject.namespace}/" if subject.kind == "ServiceAccount" else ""
        named.setdefault(subject.kind, []).append(f"{inside}{subject.name}")
    return (
        binding.metadata.name,
        f"{binding.roleRef.kind}/{binding.roleRef.name}",
        since(binding.metadata.creationTimestamp, now),
        ", ".join(named["User"]),
        ", ".join(named["Group"]),
        ", ".join(named["ServiceAccount"]),
    )


def signing_request(request: CertificateSigningRequest, now: datetime) -> tuple[Cell, ...]:
    seconds = request.spec.expirationSeconds
    return (
        request.metadata.name,
        since(request.metadata.creationTimestamp, now),
        request.spec.signerName or "<none>",
        request.spec.username,
        "<none>" if seconds is None else human(timedelta(seconds=seconds)),
        _condition(request),
    )


def _condition(request: CertificateSigningRequest) -> str:
    # That a condition is there is enough here.
    held = [condition.type for condition in request.status.conditions]
    text = "Denied" if "Denied" in held else "Approved" if "Approved" in held else "Pending"
    if "Failed" in held:
        text += ",Failed"
    return f"{text},Issued" if request.status.certificate else text


_BINDING = columns(NAME, "Role", "Age", wide("Users"), wide("Groups"), wide("ServiceAccounts"))

PRINTERS: Printers = {
    "rolebindings.rbac.authorization.k8s.io": Printer(_BINDING, binding),
    "clusterrolebindings.rbac.authorization.k8s.io": Printer(_BINDING, binding),
    "certificatesigningrequests.certificates.k8s.io": Printer(
        columns(NAME, "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), signing_request
    ),
}
