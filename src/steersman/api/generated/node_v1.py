"""The types of node/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import Quantity
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import EMPTY, Struct


class Overhead(Struct, frozen=True):
    podFixed: Mapping[str, Quantity] = EMPTY


class RuntimeClass(meta_v1.Object, frozen=True):
    handler: str = msgspec.field(default_factory=str)
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None


class Scheduling(Struct, frozen=True):
    nodeSelector: Annotated[Mapping[str, str], Merge(map_type="atomic")] = EMPTY
    tolerations: Annotated[tuple[core_v1.Toleration, ...], ATOMIC] = ()
