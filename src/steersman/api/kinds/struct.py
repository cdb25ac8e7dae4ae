"""The base of all API structs, apart from the kinds so that modules which these import can use it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

EMPTY: Mapping[str, Any] = MappingProxyType({})
"""The shared empty map, used as default to save memory."""

Opaque: TypeAlias = msgspec.Raw


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all API structs: immutable, untracked by the garbage collector, defaults are not encoded."""
