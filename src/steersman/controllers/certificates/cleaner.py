"""certificatesigningrequest-cleaner-controller and podcertificaterequest-cleaner-controller (decisions): delete old requests.

differs: upstream polls once an hour (every five minutes for PodCertificateRequests); here each request is
deleted when it expires.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime, timedelta

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import Object
from steersman.api.kinds.certificates import (
    CERTIFICATESIGNINGREQUESTS,
    PODCERTIFICATEREQUESTS,
    CertificateSigningRequest,
    PodCertificateRequest,
)
from steersman.api.pem import blocks, parse_certificate
from steersman.intent.actions import Delete
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

DECIDED_TTL = timedelta(hours=1)
"""How long an issued, denied or failed request is kept."""
PENDING_TTL = timedelta(hours=24)
"""How long a pending request is kept, or one that is approved and not issued."""
POD_REQUEST_TTL = timedelta(minutes=15)


def expiries(request: CertificateSigningRequest) -> Iterator[datetime]:
    """The times at which a request expires, one for each reason; the earliest counts."""
    status = request.status
    created = request.metadata.creationTimestamp
    if not status.conditions and created is not None:
        yield created + PENDING_TTL
    for condition in status.conditions:
        since = condition.lastUpdateTime
        if condition.type in ("Denied", "Failed") and since is not None:
            yield since + DECIDED_TTL
        if condition.type == "Approved":
            if since is not None:
                yield since + (DECIDED_TTL if status.certificate else PENDING_TTL)
            if (end := _certificate_expiry(status.certificate)) is not None:
                yield end


def _certificate_expiry(certificate: str) -> datetime | None:
    """When an issued certificate, the first block, expires; None where it cannot be parsed."""
    if not certificate:
        return None
    try:
        block = next(blocks(b64decode(certificate, validate=True)), None)
        return None if block is None else parse_certificate(block.content).not_valid_after_utc
    except ValueError:
        return None


async def _delete_expired(request: Object, due: datetime | None, now: datetime) -> Verdict:
    if due is None:
        return Rest("no expiry: the request has no time to count from")
    if now < due:
        return Wake(due - now, "not expired")
    try:
        await Delete(request)
    except (NotFound, Conflict):
        return Rest("already gone")
    return Rest("expired: deleted")


async def decide(request: CertificateSigningRequest, now: datetime) -> Verdict:
    return await _delete_expired(request, min(expiries(request), default=None), now)


async def decide_pod_request(request: PodCertificateRequest, now: datetime) -> Verdict:
    created = request.metadata.creationTimestamp
    return await _delete_expired(request, None if created is None else created + POD_REQUEST_TTL, now)


controller = Controller(
    name="certificatesigningrequest-cleaner-controller",
    aliases=("csrcleaner",),
    service_account="certificate-controller",
    watches=(Watch(CERTIFICATESIGNINGREQUESTS),),
    workers=1,
    decide=decide,
)
pod_requests = Controller(
    name="podcertificaterequest-cleaner-controller",
    service_account="podcertificaterequestcleaner",
    watches=(Watch(PODCERTIFICATEREQUESTS),),
    workers=1,
    decide=decide_pod_request,
    feature_gates=("PodCertificateRequest",),
    required_kinds=(PODCERTIFICATEREQUESTS,),
)
