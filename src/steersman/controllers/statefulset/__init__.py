"""statefulset (a dialogue): pods with names of their own, each with storage that waits for it.

`roster` says who is there, `order` what may be done next, `revisions` of which template, `writes` does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

import msgspec

from steersman.api import pods
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.quota import PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.api.kinds.statefulsets import STATEFULSETS, StatefulSet
from steersman.api.scheme import Key
from steersman.controllers.shared import history
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner, enqueue_revision_owner
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.controllers.statefulset import apply, claims, order
from steersman.controllers.statefulset.identity import (
    claim_names,
    has_storage,
    is_itself,
    is_member,
    ordinal_of,
    ordinals,
    revision_of,
)
from steersman.controllers.statefulset.metrics import METRICS, measure
from steersman.controllers.statefulset.revisions import Revisions, birth, settle
from steersman.controllers.statefulset.roster import Roster, roster
from steersman.controllers.statefulset.status import is_news, new_status
from steersman.intent.actions import Delete, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake


class Seen(msgspec.Struct, frozen=True):
    set: StatefulSet
    owned: tuple[Pod, ...]
    orphans: tuple[Pod, ...]
    """The pods of the namespace that nothing controls and that are named like the set's."""
    revisions: tuple[ControllerRevision, ...]
    lost: tuple[ControllerRevision, ...]
    """The revisions of the namespace that nothing controls."""
    claims: claims.Claims
    """Those of the claims that the set's pods have or are to have that are there."""


def observe(caches: Caches, key: Key) -> Seen | None:
    set_ = caches[STATEFULSETS].get(key)
    if set_ is None:
        return None
    namespace = key.namespace
    owned = tuple(controlled_by(caches[PODS], set_))
    orphans = tuple(pod for pod in orphans_in(caches[PODS], namespace) if is_member(set_, pod))
    return Seen(
        set_,
        owned,
        orphans,
        tuple(controlled_by(caches[CONTROLLERREVISIONS], set_)),
        tuple(orphans_in(caches[CONTROLLERREVISIONS], namespace)),
        _claims(caches, set_, (*owned, *orphans)) if set_.spec.volumeClaimTemplates else {},
    )


def _claims(caches: Caches, set_: StatefulSet, members: tuple[Pod, ...]) -> claims.Claims:
    has = dict.fromkeys(ordinal_of(pod.metadata.name) for pod in members)
    missing = islice((ordinal for ordinal in ordinals(set_) if ordinal not in has), order.BURST)
    found = {}
    for ordinal in (*has, *missing):
        for name in claim_names(set_, ordinal).values():
            there = caches[PERSISTENTVOLUMECLAIMS].get(Key(set_.metadata.namespace, name))
            if there is not None:
                found[name] = there
    return found


# -- decide -----------------------------------------------------------------------------------


class Progress(msgspec.Struct, frozen=True):
    """How far a round came."""

    waits: str | None = None
    dismissed: int = 0
    """Pods asked to go so that they are updated."""
    failure: ApiError | None = None

    @property
    def over(self) -> bool:
        return self.waits is not None or self.failure is not None


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    max_unavailable: bool = False
    """Whether ``rollingUpdate.maxUnavailable`` pods are updated at once."""
    semantic_revisions: bool = True
    """Whether a template that only differs in how it is written keeps its ControllerRevision."""


async def decide(seen: Seen, now: datetime, config: Config = Config()) -> Verdict:
    set_ = seen.set
    try:
        selector = selector_of(set_)
    except ValueError as error:
        return Rest(f"cannot act: the selector is not usable: {error}")
    if set_.spec.replicas is None or set_.spec.replicas < 0:
        raise InvalidSpec(f"spec.replicas is {set_.spec.replicas}")

    def selected(obj: Object) -> bool:
        return selector.matches(obj.metadata.labels)

    # What it no longer selects of its history it forgets, and does not give up.
    known = await claim(set_, filter(selected, seen.revisions), seen.lost, selected)
    owned = await claim(set_, seen.owned, seen.orphans, lambda pod: selected(pod) and is_member(set_, pod))
    past = history.sort_revisions(known)
    revisions = await settle(set_, past, semantic=config.semantic_revisions)
    team = roster(set_, owned, now)
    progress = Progress()
    if set_.metadata.deletionTimestamp is None:
        progress = await _advance(team, revisions, seen.claims, config)
    if config.max_unavailable:
        await measure(team)
    status = new_status(team, revisions, progress.dismissed)
    failure = progress.failure
    try:
        if is_news(set_, status):
            await UpdateStatus(set_, status)
    except ApiError as error:
        failure = failure or error
    failure = failure or await _forget(set_, past, revisions, owned)
    if failure is not None:
        raise failure
    because = progress.waits or f"{status.readyReplicas} of {set_.spec.replicas} ready"
    if set_.spec.minReadySeconds > 0 and status.readyReplicas != status.availableReplicas:
        return Wake(_next_available(team), f"{because}; a ready pod becomes available then")
    return Rest(because)


async def _advance(team: Roster, revisions: Revisions, there: claims.Claims, config: Config) -> Progress:
    """Do what may be done now: fill first, then shrink, then update."""
    progress = await _staff(team, revisions, there)
    if not progress.over:
        progress = await _shrink(team, there)
    if progress.over:
        return progress
    leave = order.outdated(team, revisions.update.metadata.name, several=config.max_unavailable)
    failure = await apply.dismiss(team.set, leave.leave)
    # Where one is refused it is not known how many went; the next round counts them.
    return Progress(leave.waits, 0 if failure else len(leave.leave), failure)


async def _staff(team: Roster, revisions: Revisions, there: claims.Claims) -> Progress:
    """See to the pods that are to be there."""
    set_ = team.set

    def off(pod: Pod) -> bool:
        if not is_itself(set_, pod) or not has_storage(set_, pod):
            return True
        # The claims of one that is pending are looked after in any case.
        return pod.status.phase != "Pending" and any(claims.disowned(set_, pod, there))

    turn = order.turn(team, off, lambda ordinal: claims.is_stale(set_, ordinal, there))
    failure: ApiError | None = None
    for pod in turn.mend:
        failure = failure or await apply.mend(set_, pod, there)
    failure = failure or await apply.dismiss(set_, turn.repair)
    if failure is None and turn.furnish:
        places = [ordinal_of(pod.metadata.name) for pod in turn.furnish]
        refused = await apply.furnish(set_, places, there)
        failure = next(filter(None, refused.values()), None)
        for pod in turn.furnish:
            failure = failure or await apply.hand_over(set_, pod, there)
    if failure is None and turn.fill:
        failure = await apply.fill(set_, turn.fill, there, lambda ordinal: birth(set_, ordinal, revisions))
    return Progress(turn.waits, failure=failure)


async def _shrink(team: Roster, there: claims.Claims) -> Progress:
    """Let those go that are past the ordinals of the set, with their claims where these are to go too."""
    for pod in team.condemned:
        if any(claims.disowned(team.set, pod, there)):
            failure = await apply.hand_over(team.set, pod, there)
            if failure is not None:
                return Progress(failure=failure)
    departure = order.departure(team)
    return Progress(departure.waits, failure=await apply.dismiss(team.set, departure.leave))


async def _forget(
    set_: StatefulSet, past: list[ControllerRevision], revisions: Revisions, owned: list[Pod]
) -> ApiError | None:
    """Delete the revisions past the history to keep."""
    live = {*revisions.names, *map(revision_of, owned)}
    for revision in history.beyond_limit(past, live, set_.spec.revisionHistoryLimit):
        try:
            await Delete(revision)
        except NotFound:
            pass
        except ApiError as error:
            return error
    return None


def _next_available(team: Roster) -> timedelta:
    """How long until the next ready pod has been ready for long enough."""
    seconds = team.set.spec.minReadySeconds
    waits = (pods.available_in(pod, seconds, team.now) for pod in team.everybody)
    return min((wait for wait in waits if wait is not None), default=timedelta(seconds=seconds))


# -- when to look -----------------------------------------------------------------------------


def _claim_gone(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterator[Key]:
    """The sets of which a claim that has gone was one: a pod may wait for that.

    differs: upstream looks again when something else happens.
    """
    if change.new is not None:
        return
    metadata = change.obj.metadata
    ordinal = ordinal_of(metadata.name)
    for set_ in caches[STATEFULSETS].list(metadata.namespace):
        if metadata.name in claim_names(set_, ordinal).values():
            yield set_.key


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(
        max_unavailable=settings.enabled("MaxUnavailableStatefulSet"),
        semantic_revisions=settings.enabled("StatefulSetSemanticRevisionComparison"),
    )
    return Controller(
        name="statefulset-controller",
        aliases=("statefulset",),
        watches=(
            Watch(STATEFULSETS),
            Watch(PODS, to=enqueue_owner(STATEFULSETS, selects), indexes=CONTROLLED),
            Watch(CONTROLLERREVISIONS, to=enqueue_revision_owner(STATEFULSETS, selects), indexes=CONTROLLED),
            Watch(PERSISTENTVOLUMECLAIMS, to=_claim_gone),
        ),
        workers=Flag("concurrent-statefulset-syncs", 5),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
