"""Conditions change only for news."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from steersman.api.conditions import (
    find_condition,
    is_condition_true,
    remove_condition,
    replace_condition,
    set_condition,
)
from steersman.api.kinds import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)


def condition(
    type: str, status: str = "True", reason: str = "", message: str = "", at: datetime = THEN
) -> Condition:
    return Condition(
        type=type, status=status, reason=reason, message=message, lastUpdateTime=at, lastTransitionTime=at
    )


AVAILABLE = condition("Available", reason="MinimumReplicasAvailable")
PROGRESSING = condition("Progressing", reason="ReplicaSetUpdated")
BOTH = (AVAILABLE, PROGRESSING)


def test_a_condition_is_found_by_its_type() -> None:
    assert find_condition(BOTH, "Progressing") is PROGRESSING
    assert find_condition(BOTH, "ReplicaFailure") is None


def test_only_a_condition_that_is_there_and_true_is_true() -> None:
    assert is_condition_true(BOTH, "Available")
    assert not is_condition_true(
        (condition("Available", "False"), condition("Failed", "Unknown")), "Available"
    )
    assert not is_condition_true((), "Available")


def test_the_same_status_for_the_same_reason_is_no_news() -> None:
    again = condition("Available", reason="MinimumReplicasAvailable", message="other words", at=NOW)
    assert set_condition(BOTH, again) is BOTH


def test_another_reason_for_the_same_status_is_no_transition() -> None:
    new = condition("Progressing", reason="NewReplicaSetAvailable", at=NOW)
    changed = set_condition(BOTH, new)
    assert changed == (
        AVAILABLE,
        Condition(
            type="Progressing",
            status="True",
            reason="NewReplicaSetAvailable",
            lastUpdateTime=NOW,
            lastTransitionTime=THEN,
        ),
    )


def test_another_status_is_a_transition_and_moves_the_condition_to_the_end() -> None:
    new = condition("Available", "False", "MinimumReplicasUnavailable", at=NOW)
    assert set_condition(BOTH, new) == (PROGRESSING, new)


def test_a_new_condition_goes_to_the_end() -> None:
    new = condition("ReplicaFailure", at=NOW)
    assert set_condition(BOTH, new) == (*BOTH, new)


def test_a_revised_condition_stays_where_it_was_and_keeps_the_time_of_its_status() -> None:
    other = condition("Available", reason="Another", message="words", at=NOW)
    first, last = replace_condition(BOTH, other)
    assert (first.reason, first.message, first.lastUpdateTime) == ("Another", "words", NOW)
    assert first.lastTransitionTime == THEN
    assert last is PROGRESSING
    turned = condition("Available", "False", at=NOW)
    assert replace_condition(BOTH, turned) == (turned, PROGRESSING)
    assert replace_condition((PROGRESSING,), turned) == (PROGRESSING, turned)


def test_a_condition_can_be_dropped() -> None:
    assert remove_condition(BOTH, "Available") == (PROGRESSING,)
    assert remove_condition(BOTH, "ReplicaFailure") == BOTH
