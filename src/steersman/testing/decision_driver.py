"""Row tests: drive a decision without a cluster, and compare its actions and verdict. See `steersman.runtime.decision_driver`."""

from __future__ import annotations

from steersman.runtime.decision_driver import (
    LONGEST_WALK,
    USUAL,
    Answers,
    StaticCaches,
    WillingServer,
    walk,
)

__all__ = ("LONGEST_WALK", "USUAL", "Answers", "StaticCaches", "WillingServer", "walk")
