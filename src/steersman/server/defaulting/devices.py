"""Claims of devices: how many of each are meant."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import resource_v1 as v1
from steersman.server.defaulting.missing_fields import each, put


def claim(obj: v1.ResourceClaim) -> v1.ResourceClaim:
    return put(obj, spec=_claimed(obj.spec))


def template(obj: v1.ResourceClaimTemplate) -> v1.ResourceClaimTemplate:
    return put(obj, spec=put(obj.spec, spec=_claimed(obj.spec.spec)))


def _claimed(spec: v1.ResourceClaimSpec) -> v1.ResourceClaimSpec:
    devices = spec.devices
    if devices is None or not devices.requests:
        return spec
    return put(spec, devices=put(devices, requests=each(devices.requests, _request)))


def _request(request: v1.DeviceRequest) -> v1.DeviceRequest:
    if request.exactly is not None:
        request = put(request, exactly=_counted(request.exactly))
    return put(request, firstAvailable=each(request.firstAvailable, _counted))


def _counted(request: Any) -> Any:
    """One, where nobody says otherwise."""
    if not request.allocationMode:
        request = put(request, allocationMode="ExactCount")
    return put(request, count=1) if request.allocationMode == "ExactCount" and not request.count else request
