"""One pod on every node that is to have one: what is missing, what is too much."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.pods import is_available, is_ready, is_terminal
from steersman.controllers.daemonset.backoff import NOT_AT_ALL, Failures, remaining
from steersman.controllers.daemonset.limits import allows_surge
from steersman.controllers.daemonset.nodes import Station
from steersman.controllers.daemonset.step import Step
from steersman.controllers.shared.history import REVISION


class Placed(msgspec.Struct, frozen=True):
    """What there is to be done, and when to look again at what is left alone for now."""

    step: Step
    wait: timedelta | None = None


def place(
    daemonset: DaemonSet,
    stations: Iterable[Station],
    hash_: str,
    failures: Failures,
    now: datetime,
    hidden: int = 0,
) -> Placed:
    """What to make and what to delete so that each node has what it should, whichever template it is of.

    As many nodes as there are ``hidden`` pods only seem to lack one.
    """
    surges = allows_surge(daemonset)
    create: list[str] = []
    ended: list[Pod] = []
    delete: list[Pod] = []
    waits: list[timedelta] = []
    for station in stations:
        if not station.there:
            # Nobody else deletes a pod that waits for a place on a node that is gone.
            delete += [pod for pod in station.staying if not pod.spec.nodeName]
            continue
        if not station.fit.stays:
            delete += station.staying
            continue
        if len(station.pods) == 1 == len(station.staying) and not is_terminal(station.pods[0]):
            continue  # as nearly all are
        running: list[Pod] = []
        wait = NOT_AT_ALL
        for pod in station.staying:
            match pod.status.phase:
                case "Failed" if left := remaining(pod, failures, station.node, now):
                    wait = left
                case "Failed" | "Succeeded":
                    ended.append(pod)
                case _:
                    running.append(pod)
        if wait:
            # differs: upstream makes the next pod all the same where it may surge, and pods that fail pile up.
            waits.append(wait)
        elif station.fit.runs and not (running if surges else station.pods):
            create.append(station.node)
        if len(running) > 1:
            delete += _surplus(daemonset, running, hash_, now) if surges else running[1:]
    return Placed(Step(tuple(create[hidden:]), tuple(ended), tuple(delete)), min(waits, default=None))


def _surplus(daemonset: DaemonSet, running: list[Pod], hash_: str, now: datetime) -> list[Pod]:
    """All but the eldest pod of the new template and the eldest of an old one; that one, too, once it does not
    serve any more, or the new one does."""
    new = [pod for pod in running if pod.metadata.labels.get(REVISION) == hash_]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION) != hash_]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], daemonset.spec.minReadySeconds, now)):
        surplus.append(old[0])
    return surplus
