"""Settings: what may be set about a controller."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.controllers.serviceaccount import controller as plain
from steersman.intent.controller import Controller
from steersman.intent.gates import GATES
from steersman.intent.settings import DEFAULTS, Flag, Settings

PERIOD = Flag("some-period", 5.0)


def test_a_flag_nobody_set_has_its_default() -> None:
    assert DEFAULTS[PERIOD] == 5.0
    assert Settings(flags={"some-period": 7.0})[PERIOD] == 7.0


def test_a_gate_nobody_set_is_as_upstream_has_it() -> None:
    assert DEFAULTS.enabled("StaleControllerConsistencyReplicaSet")
    assert not DEFAULTS.enabled("HPAScaleToZero")
    assert Settings(gates={"HPAScaleToZero": True}).enabled("HPAScaleToZero")


def test_a_gate_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        DEFAULTS.enabled("NoSuchGate")


def test_alpha_gates_are_off() -> None:
    assert not any(gate.default for gate in GATES.values() if gate.stage == "ALPHA")


def test_a_controller_whose_gate_is_off_does_not_run() -> None:
    gated = replace(plain, feature_gates=("HPAScaleToZero",))
    assert gated.configured(DEFAULTS) is None
    on = gated.configured(Settings(gates={"HPAScaleToZero": True}))
    assert on is not None
    # A group of controllers configures what it is given once more, without the gates of a test cluster.
    assert on.configured(DEFAULTS) is on


def test_a_controller_is_made_anew_for_its_settings() -> None:
    def configure(settings: Settings) -> Controller[Any]:
        return replace(plain, coalesce_within=settings[PERIOD])

    declared = replace(plain, flags=(PERIOD,), configure=configure)
    made = declared.configured(Settings(flags={"some-period": 7.0}))
    assert made is not None
    assert made.coalesce_within == 7.0
