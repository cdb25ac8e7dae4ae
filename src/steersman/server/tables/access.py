"""Printers of RBAC bindings and CertificateSigningRequests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steersman.server.tables.cells import age, human_duration
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated.certificates_v1 import CertificateSigningRequest
    from steersman.api.generated.rbac_v1 import ClusterRoleBinding, RoleBinding


def binding_cells(binding: RoleBinding | ClusterRoleBinding, now: datetime) -> tuple[Cell, ...]:
    """The cells of a RoleBinding or ClusterRoleBinding."""
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.subjects:
        prefix = f"{subject.namespace}/" if subject.kind == "ServiceAccount" else ""
        names.setdefault(subject.kind, []).append(f"{prefix}{subject.name}")
    return (
        binding.metadata.name,
        f"{binding.roleRef.kind}/{binding.roleRef.name}",
        age(binding.metadata.creationTimestamp, now),
        ", ".join(names["User"]),
        ", ".join(names["Group"]),
        ", ".join(names["ServiceAccount"]),
    )


def csr_cells(request: CertificateSigningRequest, now: datetime) -> tuple[Cell, ...]:
    seconds = request.spec.expirationSeconds
    return (
        request.metadata.name,
        age(request.metadata.creationTimestamp, now),
        request.spec.signerName or "<none>",
        request.spec.username,
        "<none>" if seconds is None else human_duration(timedelta(seconds=seconds)),
        _csr_condition(request),
    )


def _csr_condition(request: CertificateSigningRequest) -> str:
    # The presence of a condition counts, not its status.
    types = [condition.type for condition in request.status.conditions]
    text = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        text += ",Failed"
    return f"{text},Issued" if request.status.certificate else text


_BINDING_COLUMNS = columns(NAME, "Role", "Age", wide("Users"), wide("Groups"), wide("ServiceAccounts"))

PRINTERS: Printers = {
    "rolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, binding_cells),
    "clusterrolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, binding_cells),
    "certificatesigningrequests.certificates.k8s.io": Printer(
        columns(NAME, "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), csr_cells
    ),
}
