"""The types of certificates/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import AnyCondition, Time
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import EMPTY, Struct


class CertificateSigningRequestSpec(Struct, frozen=True):
    expirationSeconds: int | None = None
    extra: Mapping[str, tuple[str, ...] | None] = EMPTY
    groups: Annotated[tuple[str, ...], ATOMIC] = ()
    request: str = msgspec.field(default_factory=str)
    signerName: str = msgspec.field(default_factory=str)
    uid: str = ""
    usages: Annotated[tuple[str, ...], ATOMIC] = ()
    username: str = ""


class CertificateSigningRequestStatus(Struct, frozen=True):
    certificate: str = ""
    conditions: Annotated[
        tuple[CertificateSigningRequestCondition, ...], Merge(list_type="map", keys=("type",))
    ] = ()


class CertificateSigningRequest(meta_v1.Object, frozen=True):
    spec: CertificateSigningRequestSpec = msgspec.field(default_factory=CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = msgspec.field(default_factory=CertificateSigningRequestStatus)


class CertificateSigningRequestCondition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    lastUpdateTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)
