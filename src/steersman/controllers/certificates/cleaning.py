"""certificatesigningrequest-cleaner and podcertificaterequest-cleaner (decisions): requests are forgotten in time.

differs: upstream looks around once an hour (every five minutes for pods'); here each request goes when
its own time has come.
"""

from __future__ import annotations

import base64
import binascii
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
from steersman.intent.actions import Delete
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake

SETTLED = timedelta(hours=1)
"""How long an issued, denied or failed request is remembered."""
PENDING = timedelta(hours=24)
"""How long one that waits for somebody is."""
POD = timedelta(minutes=15)


def deadlines(request: CertificateSigningRequest) -> Iterator[datetime]:
    """Every reason to forget a request, by when it holds."""
    status = request.status
    created = request.metadata.creationTimestamp
    if not status.conditions and created is not None:
        yield created + PENDING
    for condition in status.conditions:
        since = condition.lastUpdateTime
        if condition.type in ("Denied", "Failed") and since is not None:
            yield since + SETTLED
        if condition.type == "Approved":
            if since is not None:
                yield since + (SETTLED if status.certificate else PENDING)
            if (end := _expiry(status.certificate)) is not None:
                yield end


def _expiry(certificate: str) -> datetime | None:
    """When an issued certificate ends; None where that cannot be told."""
    if not certificate:
        return None
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(
            base64.b64decode(certificate, validate=True)
        ).not_valid_after_utc
    except (ValueError, binascii.Error):
        return None


async def _forget(request: Object, due: datetime | None, now: datetime) -> Verdict:
    if due is None:
        return Rest("nobody knows since when")
    if now < due:
        return Wake(due - now, "is remembered until then")
    try:
        await Delete(request)
    except (NotFound, Conflict):
        return Rest("already gone")
    return Rest("its time has passed")


async def decide(request: CertificateSigningRequest, now: datetime) -> Verdict:
    return await _forget(request, min(deadlines(request), default=None), now)


async def decide_pod(request: PodCertificateRequest, now: datetime) -> Verdict:
    created = request.metadata.creationTimestamp
    return await _forget(request, None if created is None else created + POD, now)


controller = Controller(
    name="certificatesigningrequest-cleaner-controller",
    aliases=("csrcleaner",),
    service_account="certificate-controller",
    watches=(Watch(CERTIFICATESIGNINGREQUESTS),),
    workers=1,
    decide=decide,
)
pods = Controller(
    name="podcertificaterequest-cleaner-controller",
    service_account="podcertificaterequestcleaner",
    watches=(Watch(PODCERTIFICATEREQUESTS),),
    workers=1,
    decide=decide_pod,
    feature_gates=("PodCertificateRequest",),
    required_kinds=(PODCERTIFICATEREQUESTS,),
)
