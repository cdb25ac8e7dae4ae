"""CertificateSigningRequests: not approved, denied, failed, or not signed."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.explain.model import Case, Finding
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief


@situation("CertificateSigningRequest")
def no_certificate(case: Case) -> Iterator[Finding]:
    """The request has no certificate: a decision or a signature is missing, or it was refused."""
    if case.status.get("certificate"):
        return
    signer = str(case.spec.get("signerName"))
    refused = next((each for each in ("Denied", "Failed") if case.condition(each)), "")
    if refused:
        said = brief(str(case.condition(refused).get("message") or "without a reason"))
        cause = f"it is denied: {said}" if refused == "Denied" else f"its signer {signer} has failed: {said}"
        controller, remedy = signer, "create a new request: a decision is final"
    elif case.condition("Approved"):
        cause = f"it is approved, but its signer {signer} has issued no certificate"
        controller, remedy = signer, f"see whether the controller that signs for {signer} runs"
    else:
        cause = "it is neither approved nor denied"
        controller = "the approver"
        remedy = f"kubectl certificate approve {case.ref.name}, or deny it"
    yield Finding(code="no-certificate", subject=case.ref, cause=cause, controller=controller, remedy=remedy)
