"""The CertificateSigningRequest strategy: records the requesting user, and keeps the spec as it was created."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from steersman.server.registry.strategy import WriteContext


def prepare_for_create(obj: CertificateSigningRequest, context: WriteContext) -> CertificateSigningRequest:
    """Fills in the requesting user, which only the server can vouch for, and clears the status."""
    user = context.user
    spec = replace(obj.spec, username=user.name, uid=user.uid, groups=user.groups, extra=user.extra)
    return replace(obj, spec=spec, status=CertificateSigningRequestStatus())


def prepare_for_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest, context: WriteContext
) -> CertificateSigningRequest:
    """Updates the metadata only."""
    return replace(new, spec=old.spec, status=old.status)


def prepare_for_status_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest, context: WriteContext
) -> CertificateSigningRequest:
    """Updates the status; existing Approved and Denied conditions stay as they are."""
    conditions = new.status.conditions
    for type_ in ("Approved", "Denied"):
        was = [each for each in old.status.conditions if each.type == type_]
        if len(was) == sum(each.type == type_ for each in conditions):
            kept = iter(was)
            conditions = tuple(next(kept) if each.type == type_ else each for each in conditions)
    new = replace(new, spec=old.spec, status=replace(new.status, conditions=conditions))
    return replace(new, status=replace(new.status, conditions=_with_times(new, old, context)))


def prepare_for_approval(
    new: CertificateSigningRequest, old: CertificateSigningRequest, context: WriteContext
) -> CertificateSigningRequest:
    """Updates the conditions only (the ``approval`` subresource)."""
    return replace(new, spec=old.spec, status=replace(old.status, conditions=_with_times(new, old, context)))


def _with_times(
    new: CertificateSigningRequest, old: CertificateSigningRequest, context: WriteContext
) -> tuple[CertificateSigningRequestCondition, ...]:
    """The conditions with their times set where a writer omits them."""
    since = {(each.type, each.status): each.lastTransitionTime for each in old.status.conditions}
    return tuple(
        replace(
            each,
            lastUpdateTime=each.lastUpdateTime or context.now,
            lastTransitionTime=each.lastTransitionTime or since.get((each.type, each.status)) or context.now,
        )
        for each in new.status.conditions
    )
