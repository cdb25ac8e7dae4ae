"""The types of resource/v1beta2. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import Time
from steersman.api.generated.merge import Merge
from steersman.api.kinds import Struct


class DeviceTaint(Struct, frozen=True):
    effect: str = msgspec.field(default_factory=str)
    key: str = msgspec.field(default_factory=str)
    timeAdded: Time | None = None
    value: str = ""


class DeviceTaintRuleSpec(Struct, frozen=True):
    deviceSelector: DeviceTaintSelector | None = None
    taint: DeviceTaint = msgspec.field(default_factory=DeviceTaint)


class DeviceTaintRuleStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()


class DeviceTaintRule(meta_v1.Object, frozen=True):
    spec: DeviceTaintRuleSpec = msgspec.field(default_factory=DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = msgspec.field(default_factory=DeviceTaintRuleStatus)


class DeviceTaintSelector(Struct, frozen=True):
    device: str | None = None
    driver: str | None = None
    pool: str | None = None
