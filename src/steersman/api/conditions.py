"""Finds, sets and removes conditions of a status, with upstream's rules for lastTransitionTime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from steersman.api.kinds import Condition

C = TypeVar("C", bound=Condition)


def find_condition(conditions: Iterable[C], type: str) -> C | None:
    """Return the condition of a type, or None."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def is_condition_true(conditions: Iterable[Condition], type: str) -> bool:
    """Report whether the condition of a type exists and is True."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


def set_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with ``new`` appended and any other of its type removed, as SetDeploymentCondition does.

    If status and reason are the same, nothing changes, not even the message. If only the status is the same,
    lastTransitionTime is kept.
    """
    old = find_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, lastTransitionTime=old.lastTransitionTime)
    return (*remove_condition(conditions, new.type), new)


def replace_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with ``new`` in the place of the one of its type, as meta.SetStatusCondition does.

    lastTransitionTime is kept if the status is the same, whatever else has changed.
    """
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = msgspec.structs.replace(new, lastTransitionTime=old.lastTransitionTime)
    return tuple(new if condition.type == new.type else condition for condition in conditions)


def remove_condition(conditions: tuple[Condition, ...], type: str) -> tuple[Condition, ...]:
    """Return the conditions without those of a type."""
    return tuple(condition for condition in conditions if condition.type != type)
