"""Feature gates: ``--feature-gates``, ``--emulated-version`` and ``--min-compatibility-version``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.api.go_quote import quote
from steersman.api.suggestions import closest
from steersman.intent.gates import (
    CURRENT,
    FEATURES,
    GATES,
    OLDEST,
    Gate,
    Stage,
    Version,
    gates_at,
)
from steersman.manager.flag_types import read_bool, write_bool
from steersman.manager.flags import UsageError

STAGES: Mapping[str, Stage] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""The gates that set all gates of a stage."""
COMPONENT = "kube"
_VERSION = re.compile(r"v?(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?")


class Features(msgspec.Struct, frozen=True):
    """The feature gates of a manager."""

    emulated: Version
    given: Mapping[str, bool]
    """The gates set explicitly."""
    oldest: Version = OLDEST
    """The minimum compatibility version."""

    @property
    def known(self) -> Mapping[str, Gate]:
        """The gates of the emulated version."""
        return gates_at(self.emulated)

    def enabled(self) -> dict[str, bool]:
        """Every gate, and whether it is enabled."""
        found: dict[str, bool] = {}
        for name, gate in self.known.items():
            everything = (
                self.given[word]
                for word, stage in STAGES.items()
                if gate.stage == stage and word in self.given
            )
            default = gate.default if name in STAGES else next(everything, gate.default)
            found[name] = self.given.get(name, default)
        return found

    def table(self) -> Iterator[tuple[str, str, bool]]:
        """Name, stage and value of every gate, as in the metric kubernetes_feature_enabled."""
        on = self.enabled()
        for name, gate in self.known.items():
            yield name, "" if gate.stage == "GA" else gate.stage, on[name]

    def overrides(self) -> dict[str, bool]:
        """The gates whose value differs from the default of the current version."""
        on = self.enabled()
        # A gate that the emulated version does not have is a feature it does not have.
        return {
            name: on.get(name, False) for name, gate in GATES.items() if on.get(name, False) != gate.default
        }

    def warnings(self) -> Iterator[str]:
        """Warnings about GA and deprecated gates that are set, and about alpha features in an emulated version."""
        known = self.known
        for name, value in self.given.items():
            stage = known[name].stage
            if stage in ("GA", "DEPRECATED"):
                called = "GA" if stage == "GA" else "deprecated"
                yield (
                    f"Warning: setting {called} feature gate. It will be removed in a future release. "
                    f"featureGate={quote(name)} value={write_bool(value)}"
                )
        alpha = [name for name, on in self.enabled().items() if on and known[name].stage == "ALPHA"]
        if alpha and self.emulated < CURRENT:
            yield (
                "component has alpha features enabled in emulated version, this is unsupported: "
                f"features=[{' '.join(alpha)}]"
            )


def read_features(values: Mapping[str, Any]) -> Features:
    """The feature gates that the flags set. Raises `UsageError`."""
    emulated = _version(values["emulated-version"]) or CURRENT
    oldest = _version(values["min-compatibility-version"]) or max(OLDEST, (emulated[0], emulated[1] - 1))
    if not OLDEST <= emulated <= CURRENT:
        raise UsageError(
            f"emulation version {_text(emulated)} is not between [{_text(OLDEST)}, {_text(CURRENT)}]"
        )
    if not OLDEST <= oldest <= emulated:
        raise UsageError(
            f"minCompatibilityVersion version {_text(oldest)} is not between [{_text(OLDEST)}, {_text(emulated)}]"
        )
    features = Features(emulated, dict(_given(values["feature-gates"])), oldest)
    wrong = [*_refused(features, oldest)] or [*_lacking(features)]
    if wrong:
        raise UsageError.of(wrong)
    return features


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _version(words: Sequence[str]) -> Version | None:
    """The version given for this component."""
    found: Version | None = None
    for word in words:
        before, _, text = (part.strip() for part in word.rpartition("="))
        component = before or COMPONENT
        match = _VERSION.fullmatch(text)
        if match is None:
            raise UsageError(f"could not parse {quote(text)} as version")
        if int(match["patch"] or 0):
            raise UsageError(f"patch version not allowed, got: {component}={text.removeprefix('v')}")
        if component != COMPONENT:
            raise UsageError(f"component not registered: {component}")
        version = int(match["major"]), int(match["minor"])
        if found is not None:
            versions = f"{component}={_text(found)} and {component}={_text(version)}"
            raise UsageError(f"duplicate version flag, {versions}")
        found = version
    return found


def _given(words: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """The gates that are set: ``A=true``, or ``kube:A=true`` for this component."""
    components = [component for component, _ in words]
    for component in components:
        if component not in ("", COMPONENT):
            raise UsageError(f"component not registered: {component}")
    if "" in components and COMPONENT in components:
        raise UsageError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    for _, word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals:
            raise UsageError(f"missing bool value for {name}")
        try:
            yield name, read_bool(text)
        except ValueError as error:
            raise UsageError(f"invalid value of {name}={text}, err: {error}") from None


def _refused(features: Features, oldest: Version) -> Iterator[str]:
    """Errors for gates that cannot be set to the given value."""
    known = features.known
    for name, value in features.given.items():
        if name not in GATES:
            close = closest(name, GATES)
            hint = f"; did you mean {close}?" if close else ""
            raise UsageError(f"unrecognized feature gate: {name}{hint}")
        gate = known.get(name)
        error = f"cannot set feature gate {name} to {write_bool(value)}, feature is"
        if gate is None:
            versions = f"{_text(features.emulated)}, min compatibility version {_text(oldest)}"
            yield f"{error} PreAlpha at emulated version {versions}"
        elif gate.locked and gate.default != value:
            yield f"{error} locked to {write_bool(gate.default)}"


def _lacking(features: Features) -> Iterator[str]:
    """Errors for enabled gates whose dependencies are disabled."""
    on = features.enabled()
    for feature in FEATURES:
        lacking = [name for name in feature.needs if not on.get(name, False)]
        if lacking and on.get(feature.name, False):
            yield f"{feature.name} is enabled, but depends on features that are disabled: [{' '.join(lacking)}]"
