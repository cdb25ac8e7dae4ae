"""The types of scheduling/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

import msgspec

from steersman.api.generated import meta_v1


class PriorityClass(meta_v1.Object, frozen=True):
    description: str = ""
    globalDefault: bool = False
    preemptionPolicy: str | None = None
    value: int = msgspec.field(default_factory=int)
