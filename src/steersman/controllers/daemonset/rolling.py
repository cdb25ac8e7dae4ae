"""The next step of a rollout: which old pods make room, or which nodes get a new pod beside the old.

What is missing on a node, and what is too much, is `place`'s to mend; here such nodes only count.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.pods import is_available
from steersman.controllers.daemonset.limits import Limits
from steersman.controllers.daemonset.nodes import Station
from steersman.controllers.daemonset.step import Step
from steersman.controllers.daemonset.template import generation_of, is_updated


class Post(msgspec.Struct, frozen=True):
    """A station in the eyes of a rollout. Pods that are on their way out do not count, so that it goes on where
    nodes are down."""

    station: Station
    new: Pod | None
    old: Pod | None
    new_serves: bool
    old_serves: bool
    crowded: bool
    """There are two of one sort."""


def posts(daemonset: DaemonSet, stations: Sequence[Station], hash_: str, now: datetime) -> list[Post]:
    """The nodes that are to have a pod, and those that have one."""
    generation, wait = generation_of(daemonset), daemonset.spec.minReadySeconds
    found = []
    for station in stations:
        if not station.pods and not station.fit.runs:
            continue
        news: list[Pod] = []
        olds: list[Pod] = []
        for pod in station.staying:
            (news if is_updated(pod, hash_, generation) else olds).append(pod)
        new, old = next(iter(news), None), next(iter(olds), None)
        found.append(
            Post(
                station,
                new,
                old,
                new is not None and is_available(new, wait, now),
                old is not None and is_available(old, wait, now),
                len(news) > 1 or len(olds) > 1,
            )
        )
    return found


def roll(daemonset: DaemonSet, stations: Sequence[Station], hash_: str, now: datetime) -> Step:
    """What a RollingUpdate does next. Raises `InvalidSpec` where its limits cannot be told."""
    desired = sum(station.fit.runs for station in stations)
    limits = Limits.of(daemonset, desired)
    generation = generation_of(daemonset)
    if all(is_updated(pod, hash_, generation) for station in stations for pod in station.staying):
        return Step()
    found = posts(daemonset, stations, hash_, now)
    return _surge(found, limits.surge, desired) if limits.surge else _make_room(found, limits.unavailable)


def _make_room(found: Sequence[Post], most: int) -> Step:
    """Old pods that do not serve go at once, others as far as nodes may do without."""
    useless = [post.old for post in found if _only_old(post) and not post.old_serves]
    serving = [post.old for post in found if _only_old(post) and post.old_serves]
    healthy = sum(not post.crowded and post.old is None and post.new_serves for post in found)
    missing = len(found) - healthy - len(serving)
    return Step(
        delete=tuple(pod for pod in (*useless, *serving[: max(most - missing, 0)]) if pod is not None)
    )


def _surge(found: Sequence[Post], most: int, desired: int) -> Step:
    """A new pod comes where the old one does not serve, and beside those that do as far as the surge goes. An old
    one goes when the new one serves.

    differs: a node that is gone is one that should not run the pod. Upstream fails the round until the
    garbage collector of pods has deleted what was on it.
    """
    at_once = [post for post in found if _only_old(post) and not post.old_serves]
    serving = [post for post in found if _only_old(post) and post.old_serves]
    both = [post for post in found if not post.crowded and post.old is not None and post.new is not None]
    surging = sum(post.crowded for post in found) + sum(not post.new_serves for post in both)
    beside = [post.station.node for post in serving if post.station.fit.runs]
    create = [post.station.node for post in at_once if post.station.fit.runs]
    create += beside[: max(most - surging, 0)]

    delete = [post.old for post in at_once if not post.station.fit.runs]
    delete += [post.old for post in both if post.new_serves]
    # Where pods move to other nodes, those that serve stay until as many serve there.
    available = sum(
        not post.crowded and (post.old_serves if post.old is not None else post.new_serves) for post in found
    )
    leaving = [post.old for post in serving if not post.station.fit.runs]
    delete += leaving[: max(available - desired, 0)]
    return Step(tuple(create), delete=tuple(pod for pod in delete if pod is not None))


def _only_old(post: Post) -> bool:
    return not post.crowded and post.old is not None and post.new is None
