"""The types of authentication/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import Time
from steersman.api.generated.merge import ATOMIC
from steersman.api.kinds import EMPTY, Struct


class BoundObjectReference(Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class UserInfo(Struct, frozen=True):
    extra: Mapping[str, tuple[str, ...] | None] = EMPTY
    groups: Annotated[tuple[str, ...], ATOMIC] = ()
    uid: str = ""
    username: str = ""


class SelfSubjectReviewStatus(Struct, frozen=True):
    userInfo: UserInfo = msgspec.field(default_factory=UserInfo)


class SelfSubjectReview(meta_v1.Object, frozen=True):
    status: SelfSubjectReviewStatus = msgspec.field(default_factory=SelfSubjectReviewStatus)


class TokenRequestSpec(Struct, frozen=True):
    audiences: Annotated[tuple[str, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)
    boundObjectRef: BoundObjectReference | None = msgspec.field(default_factory=NoneType)
    expirationSeconds: int | None = msgspec.field(default_factory=NoneType)


class TokenRequestStatus(Struct, frozen=True):
    expirationTimestamp: Time | None = msgspec.field(default_factory=NoneType)
    token: str = msgspec.field(default_factory=str)


class TokenRequest(meta_v1.Object, frozen=True):
    spec: TokenRequestSpec = msgspec.field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = msgspec.field(default_factory=TokenRequestStatus)


class TokenReviewSpec(Struct, frozen=True):
    audiences: Annotated[tuple[str, ...], ATOMIC] = ()
    token: str = ""


class TokenReviewStatus(Struct, frozen=True):
    audiences: Annotated[tuple[str, ...], ATOMIC] = ()
    authenticated: bool = False
    error: str = ""
    user: UserInfo = msgspec.field(default_factory=UserInfo)


class TokenReview(meta_v1.Object, frozen=True):
    spec: TokenReviewSpec = msgspec.field(default_factory=TokenReviewSpec)
    status: TokenReviewStatus = msgspec.field(default_factory=TokenReviewStatus)
