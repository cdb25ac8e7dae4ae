"""Settings of controllers: flags and feature gates.

A controller declares the flags it reads as values (`Flag`), with upstream's names and defaults, and is
configured once, before it runs: `Controller.configured(settings)`. The defaults are those of kube-controller-manager
1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import field

from steersman.intent.gates import GATES

T = TypeVar("T")


class Misconfigured(Exception):
    """Settings are invalid or contradict each other. The message is one line and names the flags."""


class Flag(msgspec.Struct, Generic[T], frozen=True):
    """A command-line flag. Durations are in seconds."""

    name: str
    default: T
    help: str = ""


class Settings(msgspec.Struct, frozen=True):
    """The flags and feature gates that differ from their defaults."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    gates: Mapping[str, bool] = field(default_factory=dict)

    def __getitem__(self, flag: Flag[T]) -> T:
        return cast("T", self.flags.get(flag.name, flag.default))

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on. Raises `KeyError` for an unknown gate, which is a bug."""
        return self.gates.get(gate, GATES[gate].default)


DEFAULTS = Settings()
