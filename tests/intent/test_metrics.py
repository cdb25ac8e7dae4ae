"""Parts of a decision that are counted and timed, however they end."""

from __future__ import annotations

import pytest

from steersman.intent.actions import Action
from steersman.intent.metrics import Elapsed, Measure, Metric, Timed
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import walk

LABELS = ("action", "result")
SECONDS = Metric("seconds", "How long", LABELS, buckets=(1.0,))
TOTAL = Metric("total", "How often", LABELS)


async def decide(error: Exception | None = None) -> Verdict:
    labels = {"result": "success", "action": "none"}
    async with Timed(SECONDS, TOTAL, labels, lambda error: {"result": str(error)}) as told:
        told.labels["action"] = "some"
        if error is not None:
            raise error
        return Rest("done")


def test_it_is_counted_with_the_labels_it_has_in_the_end() -> None:
    actions, verdict = walk(decide(), {Elapsed: [1.0, 1.5]})
    labels = ("some", "success")
    assert actions == [Elapsed(), Elapsed(), Measure(SECONDS, 0.5, labels), Measure(TOTAL, 1.0, labels)]
    assert verdict == Rest("done")


def test_what_fails_is_counted_as_it_failed_and_fails() -> None:
    said: list[Action[object]] = []
    with pytest.raises(ValueError, match="odd"):
        walk(decide(ValueError("odd")), recorded=said)
    assert said[-1] == Measure(TOTAL, 1.0, ("some", "odd"))


def test_what_is_broken_off_is_not_counted() -> None:
    async def wait() -> Verdict:
        async with Timed(SECONDS, TOTAL, {"result": "", "action": ""}):
            await Measure(TOTAL)
        return Rest("done")

    decision = wait()
    assert decision.send(None) == Elapsed()
    assert decision.send(0.0) == Measure(TOTAL), "it is half-way"
    decision.close()  # raises where something is said to nobody


def test_both_metrics_must_have_the_same_labels() -> None:
    with pytest.raises(AssertionError):
        Timed(SECONDS, Metric("other", "", ("action",)), {})
