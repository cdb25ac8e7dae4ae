"""Deletions: whether an object goes now, later, or once its finalizers are done. Pure functions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.registry.object_meta import FOREGROUND, ORPHAN
from steersman.server.registry.strategy import Strategy


class DeletionOptions(NamedTuple):
    """The options of a deletion: preconditions, propagation policy, grace period in seconds."""

    uid: str = ""
    version: str = ""
    propagation: str | None = None
    grace: int | None = None


class Plan(NamedTuple):
    """What a deletion comes to."""

    write: ObjectMeta | None
    """The metadata to store first, so that everybody sees that it is going."""
    remove: bool
    """Whether it goes right away."""


def plan(obj: Any, strategy: Strategy, options: DeletionOptions, now: datetime) -> Plan:
    """What to do with an object somebody wants deleted."""
    meta: ObjectMeta = obj.metadata
    asked = options.grace
    if asked is not None and asked < 0:
        asked = 1
    graceful, marked = False, meta
    if strategy.grace is not None:
        if meta.deletionTimestamp is None:
            graceful, marked = True, _marked(meta, strategy.grace(obj, asked), now)
        elif meta.deletionGracePeriodSeconds:
            if asked is None or asked >= meta.deletionGracePeriodSeconds:
                return Plan(None, False)  # it is going already, and as soon as it was asked to
            graceful, marked = True, _hurried(meta, asked, now)
    finalizers = _finalizers(meta.finalizers, strategy, options.propagation)
    if graceful:
        marked = replace(marked, finalizers=finalizers)
        return Plan(marked, not finalizers and not marked.deletionGracePeriodSeconds)
    if finalizers:
        return Plan(_deleting(replace(meta, finalizers=finalizers), now), False)
    return Plan(None, True)


def _marked(meta: ObjectMeta, period: int, now: datetime) -> ObjectMeta:
    """Asked to stop within some seconds."""
    return replace(
        meta,
        deletionTimestamp=now + timedelta(seconds=period),
        deletionGracePeriodSeconds=period,
        generation=meta.generation + 1 if meta.generation else 0,
    )


def _hurried(meta: ObjectMeta, period: int, now: datetime) -> ObjectMeta:
    """Asked to stop sooner than it was asked before."""
    assert meta.deletionTimestamp is not None
    assert meta.deletionGracePeriodSeconds is not None
    due = meta.deletionTimestamp + timedelta(seconds=period - meta.deletionGracePeriodSeconds)
    if due < now:
        # The time it had is over. One second is the least that still leaves the last word to the kubelet.
        due, period = now, 1 if period else 0
    return replace(meta, deletionTimestamp=due, deletionGracePeriodSeconds=period)


def _deleting(meta: ObjectMeta, now: datetime) -> ObjectMeta:
    """Waiting for finalizers only."""
    first = meta.deletionTimestamp is None
    due = meta.deletionTimestamp
    return replace(
        meta,
        deletionTimestamp=now if due is None or due > now else due,
        deletionGracePeriodSeconds=0,
        generation=meta.generation + 1 if first and meta.generation else meta.generation,
    )


def _finalizers(finalizers: tuple[str, ...], strategy: Strategy, propagation: str | None) -> tuple[str, ...]:
    """The finalizers a deletion leaves, with the garbage collector's as the policy demands."""
    orphan, foreground = _policy(finalizers, strategy, propagation)
    wanted = tuple(name for name in finalizers if name not in (ORPHAN, FOREGROUND))
    if orphan:
        wanted = (*wanted, ORPHAN)
    if foreground:
        wanted = (*wanted, FOREGROUND)
    return finalizers if frozenset(wanted) == frozenset(finalizers) else wanted


def _policy(finalizers: tuple[str, ...], strategy: Strategy, propagation: str | None) -> tuple[bool, bool]:
    """Whether to orphan the dependents, and whether to wait for them. The request says, or the object, or its kind."""
    if strategy.dependents == "unsupported":
        return False, False
    if propagation is not None:
        return propagation == "Orphan", propagation == "Foreground"
    for name in finalizers:
        if name == ORPHAN:
            return True, False
        if name == FOREGROUND:
            return False, True
    return strategy.dependents == "orphan", False


def ended(new: Any, old: Any, strategy: Strategy) -> bool:
    """Whether an update took away the last thing a deletion was waiting for."""
    was: ObjectMeta = old.metadata
    return (
        was.deletionTimestamp is not None
        and not new.metadata.finalizers
        and not was.deletionGracePeriodSeconds
        and strategy.ends(new)
    )
