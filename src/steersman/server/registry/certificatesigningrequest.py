"""CertificateSigningRequests: what was asked for stays as it was, and who may say what about it."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
)
from steersman.server.registry.strategy import Moment


def updated(
    new: CertificateSigningRequest, old: CertificateSigningRequest, moment: Moment
) -> CertificateSigningRequest:
    """Only the metadata changes."""
    return replace(new, spec=old.spec, status=old.status)


def status_updated(
    new: CertificateSigningRequest, old: CertificateSigningRequest, moment: Moment
) -> CertificateSigningRequest:
    """The status; approvals and denials stay as they are, or as many as are said."""
    conditions = new.status.conditions
    for type_ in ("Approved", "Denied"):
        was = [each for each in old.status.conditions if each.type == type_]
        if len(was) == sum(each.type == type_ for each in conditions):
            kept = iter(was)
            conditions = tuple(next(kept) if each.type == type_ else each for each in conditions)
    new = replace(new, spec=old.spec, status=replace(new.status, conditions=conditions))
    return replace(new, status=replace(new.status, conditions=_dated(new, old, moment)))


def approved(
    new: CertificateSigningRequest, old: CertificateSigningRequest, moment: Moment
) -> CertificateSigningRequest:
    """Only the conditions."""
    return replace(new, spec=old.spec, status=replace(old.status, conditions=_dated(new, old, moment)))


def _dated(
    new: CertificateSigningRequest, old: CertificateSigningRequest, moment: Moment
) -> tuple[CertificateSigningRequestCondition, ...]:
    """Who does not say since when conditions hold means now."""
    since = {(each.type, each.status): each.lastTransitionTime for each in old.status.conditions}
    return tuple(
        replace(
            each,
            lastUpdateTime=each.lastUpdateTime or moment.now,
            lastTransitionTime=each.lastTransitionTime or since.get((each.type, each.status)) or moment.now,
        )
        for each in new.status.conditions
    )
