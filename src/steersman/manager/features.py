"""``--feature-gates``: which features are on."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from steersman.intent.gates import GATES
from steersman.manager.flags import UsageError
from steersman.manager.values import read_bool

STAGES = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""The gates that stand for all of a stage."""


def read_gates(values: Mapping[str, Any]) -> dict[str, bool]:
    """The gates that the flags set: ``A=true``, or ``kube:A=true`` for a component."""
    gates: dict[str, bool] = {}
    for _, word in values["feature-gates"]:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--feature-gates: missing bool value for {name}")
        if name not in GATES:
            close = get_close_matches(name, GATES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"--feature-gates: unrecognized feature gate: {name}{hint}")
        try:
            gates[name] = read_bool(value)
        except ValueError:
            raise UsageError(f"--feature-gates: invalid value of {name}={value}: not true or false") from None
    for word, stage in STAGES.items():
        everything = gates.pop(word, None)
        if everything is not None:
            of_stage = {
                name: everything for name, gate in GATES.items() if gate.stage == stage and name not in STAGES
            }
            gates = {**of_stage, **gates}
    return gates
