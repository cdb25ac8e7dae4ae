"""certificatesigningrequest-approving (a dialogue): a kubelet that may have a client certificate gets it.

A node that asks for its own certificate, or a bootstrapper that asks for a node's, is approved when a
SubjectAccessReview says that it may. Everything else is left to people.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from steersman.api.kinds import Condition, Object, Struct
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS, CertificateSigningRequest
from steersman.api.scheme import Kind, register
from steersman.controllers.certificates.requests import KUBELET_CLIENT, RULES, Asked, Malformed, read
from steersman.intent.actions import Address, CreateReview, Update
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict


class Answer(Struct, frozen=True):
    allowed: bool = False


class SubjectAccessReview(Object, frozen=True):
    status: Answer = Answer()


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


def recognised(request: CertificateSigningRequest, asked: Asked) -> tuple[tuple[str, str], ...]:
    """The rights that would let the request through, and what is said then; the first that is there counts."""
    spec = request.spec
    if spec.signerName != KUBELET_CLIENT or RULES[KUBELET_CLIENT](asked, spec.usages):
        return ()
    node = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")
    own = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
    return (own, node) if spec.username == asked.common_name else (node,)


def review(request: CertificateSigningRequest, right: str) -> dict[str, Any]:
    """Whether who asked may create certificate requests of a sort."""
    spec = request.spec
    attributes = {
        "group": CERTIFICATESIGNINGREQUESTS.group,
        "resource": CERTIFICATESIGNINGREQUESTS.plural,
        "verb": "create",
        "subresource": right,
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
    """What is put to say so: the metadata as it is, so that it is not wiped, and the conditions."""
    # Who owns which field is the server's to know; in process it comes along, as something that is not plain data.
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
        return Rest("is issued")
    if any(one.type in ("Approved", "Denied") for one in status.conditions):
        return Rest("is decided already")
    try:
        rights = recognised(request, read(request))
    except Malformed as error:
        raise InvalidSpec(str(error)) from None
    if not rights:
        return Rest("is not a kubelet's: somebody else decides")
    for right, message in rights:
        answer = await CreateReview(SUBJECTACCESSREVIEWS, "", review(request, right))
        if answer.status.allowed:
            approved = Condition(type="Approved", status="True", reason="AutoApproved", message=message)
            conditions = (*status.conditions, approved)
            await Update(
                Address(CERTIFICATESIGNINGREQUESTS.untyped, "", request.metadata.name),
                approval(request, conditions),
                subresource="approval",
            )
            return Rest("approved")
    tried = " ".join(right for right, _ in rights)
    # It may be granted later, so it is asked again, less and less often.
    raise InvalidSpec(f"recognized as [{tried}] but subject access review was not approved")


controller = Controller(
    name="certificatesigningrequest-approving-controller",
    aliases=("csrapproving",),
    service_account="certificate-controller",
    watches=(Watch(CERTIFICATESIGNINGREQUESTS),),
    workers=5,
    decide=decide,
)
