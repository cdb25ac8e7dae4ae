"""Graceful deletion: whether an object is removed now, after its grace period, or after its finalizers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.api.generated.meta_v1 import DeleteOptions, NestedDeleteOptions, ObjectMeta
from steersman.server import status_errors
from steersman.server.registry.object_meta import FOREGROUND, ORPHAN
from steersman.server.registry.strategy import Strategy
from steersman.server.status_errors import FieldError


class DeletionOptions(NamedTuple):
    """The DeleteOptions of a request."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None
    grace_period: int | None = None
    """In seconds."""


_POLICIES = ("Foreground", "Background", "Orphan")


def validate_deletion_options(given: DeleteOptions | NestedDeleteOptions) -> None:
    """Raises `Invalid` for the DeleteOptions of a request or an Eviction that are not valid."""
    wrong: list[FieldError] = []
    policy = given.propagationPolicy
    if policy is not None and given.orphanDependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(status_errors.field_invalid("propagationPolicy", policy, why))
    if policy is not None and policy not in _POLICIES:
        wrong.append(status_errors.field_not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    wrong += dry_run_errors(given.dryRun)
    if wrong:
        raise status_errors.invalid("meta.k8s.io", "DeleteOptions", "", wrong)


def deletion_options(given: DeleteOptions | NestedDeleteOptions) -> DeletionOptions:
    """The options of a deletion from valid DeleteOptions."""
    policy = given.propagationPolicy
    if policy is None and given.orphanDependents is not None:
        policy = "Orphan" if given.orphanDependents else "Background"
    preconditions = given.preconditions
    return DeletionOptions(
        # An empty one is a precondition, too, which no object meets.
        uid=None if preconditions is None else preconditions.uid,
        resource_version=None if preconditions is None else preconditions.resourceVersion,
        propagation=policy,
        grace_period=given.gracePeriodSeconds,
    )


def dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    """The errors of a ``dryRun`` option."""
    return (
        [status_errors.field_not_supported("dryRun", list(values), ("All",))]
        if any(value != "All" for value in values)
        else []
    )


class DeletionPlan(msgspec.Struct, frozen=True):
    """The effect of a deletion."""

    write: ObjectMeta | None
    """The metadata to store first, which shows that the object is terminating; None to store nothing."""
    remove: bool
    """Whether the object is removed at once."""


def plan_deletion(obj: Any, strategy: Strategy, options: DeletionOptions, now: datetime) -> DeletionPlan:
    """The effect of a deletion request on an object."""
    meta: ObjectMeta = obj.metadata
    requested = options.grace_period
    if requested is not None and requested < 0:
        requested = 1
    graceful, marked = False, meta
    if strategy.check_graceful_delete is not None:
        if meta.deletionTimestamp is None:
            graceful, marked = (
                True,
                _begin_grace_period(meta, strategy.check_graceful_delete(obj, requested), now),
            )
        elif meta.deletionGracePeriodSeconds:
            if requested is None or requested >= meta.deletionGracePeriodSeconds:
                return DeletionPlan(
                    None, False
                )  # terminating already, with a grace period no longer than this
            graceful, marked = True, _shorten_grace_period(meta, requested, now)
    finalizers = _finalizers(meta.finalizers, strategy, options.propagation)
    if graceful:
        marked = replace(marked, finalizers=finalizers)
        return DeletionPlan(marked, not finalizers and not marked.deletionGracePeriodSeconds)
    if finalizers:
        return DeletionPlan(_mark_deleted(replace(meta, finalizers=finalizers), now), False)
    return DeletionPlan(None, True)


def _begin_grace_period(meta: ObjectMeta, period: int, now: datetime) -> ObjectMeta:
    """Metadata of an object that terminates within a grace period, in seconds."""
    return replace(
        meta,
        deletionTimestamp=now + timedelta(seconds=period),
        deletionGracePeriodSeconds=period,
        generation=meta.generation + 1 if meta.generation else 0,
    )


def _shorten_grace_period(meta: ObjectMeta, period: int, now: datetime) -> ObjectMeta:
    """Metadata of a terminating object with a shorter grace period, in seconds."""
    assert meta.deletionTimestamp is not None
    assert meta.deletionGracePeriodSeconds is not None
    due = meta.deletionTimestamp + timedelta(seconds=period - meta.deletionGracePeriodSeconds)
    if due < now:
        # The grace period is over. One second is the shortest that lets the kubelet remove the pod.
        due, period = now, 1 if period else 0
    return replace(meta, deletionTimestamp=due, deletionGracePeriodSeconds=period)


def _mark_deleted(meta: ObjectMeta, now: datetime) -> ObjectMeta:
    """Metadata of an object that waits for its finalizers only."""
    first = meta.deletionTimestamp is None
    due = meta.deletionTimestamp
    return replace(
        meta,
        deletionTimestamp=now if due is None or due > now else due,
        deletionGracePeriodSeconds=0,
        generation=meta.generation + 1 if first and meta.generation else meta.generation,
    )


def _finalizers(finalizers: tuple[str, ...], strategy: Strategy, propagation: str | None) -> tuple[str, ...]:
    """The finalizers after a deletion request, with the garbage collector's set by the propagation policy."""
    orphan, foreground = _policy(finalizers, strategy, propagation)
    wanted = tuple(name for name in finalizers if name not in (ORPHAN, FOREGROUND))
    if orphan:
        wanted = (*wanted, ORPHAN)
    if foreground:
        wanted = (*wanted, FOREGROUND)
    return finalizers if frozenset(wanted) == frozenset(finalizers) else wanted


def _policy(finalizers: tuple[str, ...], strategy: Strategy, propagation: str | None) -> tuple[bool, bool]:
    """Whether to orphan the dependents and whether to delete them first, by the request, the object or its kind."""
    if strategy.default_propagation == "unsupported":
        return False, False
    if propagation is not None:
        return propagation == "Orphan", propagation == "Foreground"
    for name in finalizers:
        if name == ORPHAN:
            return True, False
        if name == FOREGROUND:
            return False, True
    return strategy.default_propagation == "orphan", False


def deletion_finished(new: Any, old: Any, strategy: Strategy) -> bool:
    """Whether an update of a terminating object removed the last thing its deletion waited for."""
    was: ObjectMeta = old.metadata
    return (
        was.deletionTimestamp is not None
        and not new.metadata.finalizers
        and not was.deletionGracePeriodSeconds
        and strategy.can_finish_deletion(new)
    )
