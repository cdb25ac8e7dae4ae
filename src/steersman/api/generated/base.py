"""What the generated modules are made of: the scalar types of the API and the bases of its structs."""

# ruff: noqa: N802  # fields keep the names of the wire

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeAlias

from steersman.api.kinds import Struct

IntOrString: TypeAlias = int | str
"""A count or a percentage; a port's number or its name."""

Quantity: TypeAlias = str | int | float
"""An amount such as ``500m`` or ``1Gi``, kept as it was written. Servers write strings."""

Time: TypeAlias = datetime
"""An instant. Servers write whole seconds, always in UTC."""

MicroTime: TypeAlias = datetime
"""An instant with microseconds.

Kubernetes reads six digits of fraction and nothing else here, and msgspec leaves the fraction out
where it is zero: whoever sends one to a real API server must write ``.000000``.
"""

Json: TypeAlias = Any
"""A value whose shape the API leaves open; decoded to plain dicts and lists."""


def zero() -> Quantity:
    """The quantity that was never set, as servers write it."""
    return "0"


def none() -> tuple[Any, ...]:
    """The empty list, written all the same: msgspec leaves it out where the factory is ``tuple``."""
    return ()


class Atomic(Struct, frozen=True):
    """A struct with one owner: server-side apply takes or leaves it whole, never field by field."""


class AnyCondition(Struct, frozen=True):
    """A kind's condition, with all the fields of `steersman.api.kinds.Condition`.

    Each kind's conditions have some of them. The others read as absent here, so that a full struct
    can stand in for the view.
    """

    @property
    def observedGeneration(self) -> int:
        return 0

    @property
    def lastProbeTime(self) -> Time | None:
        return None

    @property
    def lastUpdateTime(self) -> Time | None:
        return None

    @property
    def lastTransitionTime(self) -> Time | None:
        return None

    @property
    def reason(self) -> str:
        return ""

    @property
    def message(self) -> str:
        return ""
