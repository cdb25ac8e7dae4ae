"""certificatesigningrequest-approving-controller (a dialogue): approves client certificates of kubelets.

A request of a node for its own certificate, or of a bootstrap token for a node's, is approved when a
SubjectAccessReview allows it. All other requests are left to other approvers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from steersman.api.kinds import Condition, Object, Struct
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS, CertificateSigningRequest
from steersman.api.pem import InvalidCertificateRequest, parse_csr
from steersman.api.scheme import Kind, register
from steersman.controllers.certificates.requests import (
    KUBELET_CLIENT,
    MIN_BACKOFF,
    RULES,
    RequestedCertificate,
    read,
)
from steersman.intent.actions import Address, CreateReview, Update
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict


class SubjectAccessReviewStatus(Struct, frozen=True):
    allowed: bool = False


class SubjectAccessReview(Object, frozen=True):
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


SUBJECTACCESSREVIEWS = register(
    Kind(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        False,
        SubjectAccessReview,
    )
)


def recognizers(
    request: CertificateSigningRequest, requested: RequestedCertificate
) -> tuple[tuple[str, str], ...]:
    """The subresources whose ``create`` permission approves the request, each with its approval message.

    They are tried in order; a request that breaks the rules of the kubelet client signer has none.
    """
    spec = request.spec
    if RULES[KUBELET_CLIENT](requested, spec.usages):
        return ()
    node = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")
    own = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
    return (own, node) if spec.username == requested.common_name else (node,)


def access_review(request: CertificateSigningRequest, subresource: str) -> dict[str, Any]:
    """A SubjectAccessReview: may the requester create this subresource of certificatesigningrequests?"""
    spec = request.spec
    attributes = {
        "group": CERTIFICATESIGNINGREQUESTS.group,
        "resource": CERTIFICATESIGNINGREQUESTS.plural,
        "verb": "create",
        "subresource": subresource,
        "version": "*",
    }
    return {
        "apiVersion": SUBJECTACCESSREVIEWS.api_version,
        "kind": SUBJECTACCESSREVIEWS.name,
        "metadata": {},
        "spec": {
            "user": spec.username,
            "uid": spec.uid,
            "groups": list(spec.groups),
            "extra": {key: list(values) for key, values in spec.extra.items()},
            "resourceAttributes": attributes,
        },
    }


def approval(request: CertificateSigningRequest, conditions: tuple[Condition, ...]) -> dict[str, Any]:
    """The body of an update of the approval subresource: the metadata, which would be wiped otherwise, and the
    conditions."""
    # The embedded server shares its objects, with managedFields in a form of its own.
    metadata = msgspec.to_builtins(request.metadata, enc_hook=list)
    metadata.pop("managedFields", None)
    return {
        "apiVersion": CERTIFICATESIGNINGREQUESTS.api_version,
        "kind": CERTIFICATESIGNINGREQUESTS.name,
        "metadata": metadata,
        "status": {"conditions": [msgspec.to_builtins(one) for one in conditions]},
    }


async def decide(request: CertificateSigningRequest, now: datetime) -> Verdict:
    status = request.status
    if status.certificate:
        return Rest("certificate already issued")
    if any(one.type in ("Approved", "Denied") for one in status.conditions):
        return Rest("already approved or denied")
    if request.spec.signerName != KUBELET_CLIENT:
        # differs: upstream parses requests of all signers first, and retries those that it cannot parse.
        return Rest("not a kubelet client certificate: left to other approvers")
    try:
        recognized = recognizers(request, read(parse_csr(request.spec.request)))
    except InvalidCertificateRequest as error:
        raise InvalidSpec(str(error)) from None
    if not recognized:
        return Rest("not a kubelet client certificate: left to other approvers")
    for subresource, message in recognized:
        review = await CreateReview(SUBJECTACCESSREVIEWS, "", access_review(request, subresource))
        if review.status.allowed:
            approved = Condition(type="Approved", status="True", reason="AutoApproved", message=message)
            conditions = (*status.conditions, approved)
            await Update(
                Address(CERTIFICATESIGNINGREQUESTS.untyped, "", request.metadata.name),
                approval(request, conditions),
                subresource="approval",
            )
            return Rest("approved")
    tried = " ".join(subresource for subresource, _ in recognized)
    # An error, so that it is tried again with back-off: the permission may be granted later.
    raise InvalidSpec(f"recognized as [{tried}] but subject access review was not approved")


controller = Controller(
    name="certificatesigningrequest-approving-controller",
    aliases=("csrapproving",),
    service_account="certificate-controller",
    watches=(Watch(CERTIFICATESIGNINGREQUESTS),),
    workers=5,
    decide=decide,
    min_backoff=MIN_BACKOFF,
)
