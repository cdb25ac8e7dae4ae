"""The feature gates of kube-controller-manager 1.36: what each is by default, and since when.

``gates.tsv`` holds, for each gate, the versions in which it changed (from the last change before the oldest
version that can be emulated) and the gates it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, cast

import msgspec

Version: TypeAlias = tuple[int, int]
Stage: TypeAlias = Literal["ALPHA", "BETA", "GA", "DEPRECATED"]

CURRENT: Version = (1, 36)
OLDEST: Version = (1, 33)
"""The oldest version that can be emulated."""


class Gate(msgspec.Struct, frozen=True):
    """How far a feature has come, and whether it is on when nobody says anything."""

    stage: Stage
    default: bool
    locked: bool = False
    """Nobody may say otherwise."""


class Feature(msgspec.Struct, frozen=True):
    """A gate over the versions."""

    name: str
    history: tuple[tuple[Version, Gate], ...]
    """Oldest first."""
    needs: tuple[str, ...]
    """Gates without which it cannot be on."""

    def at(self, version: Version) -> Gate | None:
        """What the gate is in a version; None before there was such a gate."""
        found = None
        for since, gate in self.history:
            found = gate if since <= version else found
        return found


def _features() -> Iterator[Feature]:
    rows = (Path(__file__).parent / "gates.tsv").read_text("utf-8").splitlines()[1:]
    for name, history, needs in (row.split("\t") for row in rows):
        yield Feature(name, tuple(map(_change, history.split(", "))), tuple(needs.split()))


def _change(text: str) -> tuple[Version, Gate]:
    version, stage, default, *locked = text.split()
    major, minor = map(int, version.split("."))
    return (major, minor), Gate(cast("Stage", stage), default == "on", bool(locked))


FEATURES: tuple[Feature, ...] = tuple(_features())


def gates_at(version: Version) -> dict[str, Gate]:
    """The gates there are in a version."""
    found = {feature.name: feature.at(version) for feature in FEATURES}
    return {name: gate for name, gate in found.items() if gate is not None}


GATES: Mapping[str, Gate] = gates_at(CURRENT)
