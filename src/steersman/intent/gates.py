"""The feature gates of kube-controller-manager 1.36: the stage and default of each, by version.

``gates.tsv`` holds, for each gate, the versions in which it changed (from the last change before the oldest
version that can be emulated) and the gates it depends on.
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
    """The stage of a feature gate in one version, and its default."""

    stage: Stage
    default: bool
    locked: bool = False
    """``--feature-gates`` cannot change it."""


class Feature(msgspec.Struct, frozen=True):
    """A feature gate over all versions."""

    name: str
    history: tuple[tuple[Version, Gate], ...]
    """Oldest first."""
    needs: tuple[str, ...]
    """Gates that must be on for this one to be on."""

    def at(self, version: Version) -> Gate | None:
        """The gate in a version; None if that version does not have it."""
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
    """The feature gates of a version."""
    found = {feature.name: feature.at(version) for feature in FEATURES}
    return {name: gate for name, gate in found.items() if gate is not None}


GATES: Mapping[str, Gate] = gates_at(CURRENT)
