"""The types of coordination/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.generated.base import MicroTime
from steersman.api.kinds import Struct


class LeaseSpec(Struct, frozen=True):
    acquireTime: MicroTime | None = None
    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    leaseTransitions: int | None = None
    preferredHolder: str | None = None
    renewTime: MicroTime | None = None
    strategy: str | None = None


class Lease(meta_v1.Object, frozen=True):
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
