"""The types of apiregistration/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import AnyCondition, Time
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class APIServiceSpec(Struct, frozen=True):
    caBundle: Annotated[str, ATOMIC] = ""
    group: str = ""
    groupPriorityMinimum: int = msgspec.field(default_factory=int)
    insecureSkipTLSVerify: bool = False
    service: ServiceReference | None = None
    version: str = ""
    versionPriority: int = msgspec.field(default_factory=int)


class APIServiceStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[APIServiceCondition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()


class APIService(meta_v1.Object, frozen=True):
    spec: APIServiceSpec = msgspec.field(default_factory=APIServiceSpec)
    status: APIServiceStatus = msgspec.field(default_factory=APIServiceStatus)


class APIServiceCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class ServiceReference(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    port: int | None = None
