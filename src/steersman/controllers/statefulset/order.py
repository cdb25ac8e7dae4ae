"""Order: what may be done next, and what has to be waited for. Pure.

An ordered set does one thing at a time. It fills its ordinals from below, each when all before it are
available; it shrinks from above, one by one, when all that stay are available; only then does it update.
A parallel set fills and shrinks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from steersman.api import pods
from steersman.api.intstr import scaled
from steersman.api.kinds import Pod
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.statefulset.identity import revision_of
from steersman.controllers.statefulset.roster import Roster
from steersman.intent.verdict import InvalidSpec

BURST = 500
"""The most pods a parallel set makes in one round; the next round makes more."""


def is_ordered(set_: StatefulSet) -> bool:
    return set_.spec.podManagementPolicy != "Parallel"


class Turn(msgspec.Struct, frozen=True):
    """What a round may do to the pods that stay."""

    mend: tuple[Pod, ...] = ()
    """Pods of which something is not as it should be."""
    furnish: tuple[Pod, ...] = ()
    """Pods that wait for their claims, perhaps."""
    repair: tuple[Pod, ...] = ()
    """Pods that have ended. They go, and others take their places."""
    fill: tuple[int, ...] = ()
    """Ordinals nobody has."""
    waits: str | None = None
    """What has to come to pass before anything else is done; None: nothing."""


def turn(roster: Roster, off: Callable[[Pod], bool], blocked: Callable[[int], bool]) -> Turn:
    """What is due among the pods that stay.

    ``off`` says whether a pod is not as it should be, ``blocked`` whether an ordinal cannot be filled yet.
    """
    return _in_turn(roster, off, blocked) if is_ordered(roster.set) else _at_once(roster, off, blocked)


def _in_turn(roster: Roster, off: Callable[[Pod], bool], blocked: Callable[[int], bool]) -> Turn:
    mend: list[Pod] = []
    for ordinal in roster.ordinals:
        pod = roster.members.get(ordinal)
        name = f"{roster.set.metadata.name}-{ordinal}"
        if pod is None:
            if blocked(ordinal):
                return Turn(tuple(mend), waits=f"a claim of {name} is to go before it can come")
            return Turn(tuple(mend), fill=(ordinal,), waits=f"{name} is to come")
        if pods.is_terminal(pod):
            leaving = pod.metadata.deletionTimestamp is not None
            return Turn(
                tuple(mend), repair=() if leaving else (pod,), waits=f"{name} has ended and is to be replaced"
            )
        why = _hindrance(roster, pod)
        if why is not None:
            furnish = (pod,) if pod.status.phase == "Pending" else ()
            return Turn(tuple(mend), furnish, waits=f"{name} {why}")
        if off(pod):
            mend.append(pod)
    return Turn(tuple(mend))


def _at_once(roster: Roster, off: Callable[[Pod], bool], blocked: Callable[[int], bool]) -> Turn:
    ended = [pod for pod in roster.members.values() if pods.is_terminal(pod)]
    others = [pod for pod in roster.members.values() if not pods.is_terminal(pod)]
    missing = (o for o in roster.ordinals if o not in roster.members and not blocked(o))
    return Turn(
        mend=tuple(pod for pod in others if off(pod)),
        furnish=tuple(pod for pod in others if pod.status.phase == "Pending"),
        repair=tuple(pod for pod in ended if pod.metadata.deletionTimestamp is None),
        fill=tuple(islice(missing, BURST)),
    )


def _hindrance(roster: Roster, pod: Pod) -> str | None:
    """Why an ordered set cannot go past a pod; None if it can."""
    if pod.metadata.deletionTimestamp is not None:
        return "is terminating"
    if pod.status.phase != "Running" or not pods.is_ready(pod):
        return "is not running and ready"
    return None if roster.is_available(pod) else "is not available yet"


# -- shrinking --------------------------------------------------------------------------------


class Departure(msgspec.Struct, frozen=True):
    """Who may go, and what has to be waited for otherwise."""

    leave: tuple[Pod, ...] = ()
    waits: str | None = None


def departure(roster: Roster) -> Departure:
    """The pods to delete of those that are condemned."""
    if not is_ordered(roster.set):
        return Departure(tuple(pod for pod in roster.condemned if pod.metadata.deletionTimestamp is None))
    if not roster.condemned:
        return Departure()
    pod, unhealthy = roster.condemned[0], roster.first_unavailable()
    if pod.metadata.deletionTimestamp is not None:
        return Departure(waits=f"{pod.metadata.name} is terminating")
    # A pod that does not serve may go if no other is worse off: it would hold up everybody for ever.
    if _hindrance(roster, pod) is not None and pod is not unhealthy:
        return Departure(waits=f"{(unhealthy or pod).metadata.name} is to be available before others go")
    return Departure((pod,), waits=f"{pod.metadata.name} is to go")


# -- updating ---------------------------------------------------------------------------------


def partition(set_: StatefulSet) -> int:
    """How many of the lowest ordinals stay at the current revision."""
    rolling = set_.spec.updateStrategy.rollingUpdate
    return (rolling.partition or 0) if rolling is not None else 0


def may_miss(set_: StatefulSet) -> int:
    """How many pods may be unavailable while a set is updated: at least one."""
    rolling = set_.spec.updateStrategy.rollingUpdate
    wish = rolling.maxUnavailable if rolling is not None else None
    try:
        return max(scaled(1 if wish is None else wish, set_.spec.replicas or 0, round_up=False), 1)
    except ValueError as error:
        raise InvalidSpec(f"spec.updateStrategy.rollingUpdate.maxUnavailable: {error}") from None


def outdated(roster: Roster, revision: str, *, several: bool) -> Departure:
    """The pods to delete so that they come back as the given revision, from the highest ordinal down.

    ``several`` at once, as many as may be missing; else one, when all above it are available.
    """
    set_ = roster.set
    if set_.spec.updateStrategy.type == "OnDelete":
        return Departure()
    if several:
        room = may_miss(set_) - roster.unavailable
        return Departure(tuple(islice(_old(roster, revision), max(room, 0))))
    for ordinal in _downwards(roster):
        pod = roster.members.get(ordinal)
        if pod is not None and _is_old(pod, revision):
            return Departure((pod,))
        if pod is None or not roster.serves(pod):
            return Departure(waits=f"{set_.metadata.name}-{ordinal} is to be available before others update")
    return Departure()


def _downwards(roster: Roster) -> range:
    """The ordinals that are to be updated, in turn."""
    return roster.ordinals[partition(roster.set) :][::-1]


def _old(roster: Roster, revision: str) -> Iterator[Pod]:
    for ordinal in _downwards(roster):
        pod = roster.members.get(ordinal)
        if pod is not None and _is_old(pod, revision):
            yield pod


def _is_old(pod: Pod, revision: str) -> bool:
    # One that has ended is on its way out already.
    return (
        revision_of(pod) != revision and pod.metadata.deletionTimestamp is None and not pods.is_terminal(pod)
    )
