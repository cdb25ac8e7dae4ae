"""APIServices: those of this server are available from the beginning."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.apiregistration_v1 import APIService, APIServiceCondition, APIServiceStatus
from steersman.server.registry.strategy import WriteContext


def created(obj: APIService, context: WriteContext) -> APIService:
    if obj.spec.service is not None:
        return replace(obj, status=APIServiceStatus())
    here = APIServiceCondition(
        type="Available",
        status="True",
        reason="Local",
        message="Local APIServices are always available",
        lastTransitionTime=context.now,
    )
    return replace(obj, status=APIServiceStatus(conditions=(here,)))
