"""Conditions: what a status says about itself, kept so that only news changes it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.api.kinds import Condition


def find_condition(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of a type."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def is_condition_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether the condition is there and true."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


def set_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one in place of any other of its type, last.

    The same status for the same reason is no news: nothing changes, not even the message. The same
    status for another reason is no transition: it keeps the time of the last one.
    """
    old = find_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, lastTransitionTime=old.lastTransitionTime)
    return (*remove_condition(conditions, new.type), new)


def replace_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one where the one of its type was, or last.

    It is taken as it is, but for the time: the same status is no transition, whatever else is new.
    """
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = msgspec.structs.replace(new, lastTransitionTime=old.lastTransitionTime)
    return tuple(new if condition.type == new.type else condition for condition in conditions)


def remove_condition(conditions: tuple[Condition, ...], type: str) -> tuple[Condition, ...]:
    """The conditions without those of a type."""
    return tuple(condition for condition in conditions if condition.type != type)
