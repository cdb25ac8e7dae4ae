"""What may be set about a controller from outside: flags and feature gates.

A controller declares the flags it reads as values (`Flag`), with upstream's names and defaults, and is
configured once, before it runs: `Controller.configured(settings)`. Without settings everything is as
kube-controller-manager 1.36 has it by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import field

from steersman.intent.gates import GATES

T = TypeVar("T")


class Misconfigured(Exception):
    """Settings that cannot be, or contradict each other. The message is one line and names the flags."""


class Flag(msgspec.Struct, Generic[T], frozen=True):
    """A value the command line may set. Durations are seconds."""

    name: str
    default: T
    help: str = ""


class Settings(msgspec.Struct, frozen=True):
    """The flags and gates that are not as they are by default."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    gates: Mapping[str, bool] = field(default_factory=dict)

    def __getitem__(self, flag: Flag[T]) -> T:
        return cast("T", self.flags.get(flag.name, flag.default))

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on. A gate nobody knows is a mistake in the program: `KeyError`."""
        return self.gates.get(gate, GATES[gate].default)


DEFAULTS = Settings()
