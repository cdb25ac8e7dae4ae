"""statefulset-controller (a dialogue): keeps pods with stable names, each with its own PersistentVolumeClaims.

A round finds the revisions of the pod template (`history`), decides by ordinal what may be done next (`order`), writes
pods and claims (`pod_control`), and then the status.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.api.kinds.statefulsets import STATEFULSETS, StatefulSet
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim
from steersman.api.pods import next_available
from steersman.api.scheme import Key
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner, enqueue_revision_owner
from steersman.controllers.shared.history import sort_revisions
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.controllers.statefulset import order, pod_control
from steersman.controllers.statefulset.claims import Claims, has_stale_claim, outdated_claims
from steersman.controllers.statefulset.history import (
    Revisions,
    get_revisions,
    new_versioned_pod,
    truncate_history,
)
from steersman.controllers.statefulset.identity import (
    claim_names,
    has_identity,
    has_storage,
    is_member,
    ordinal_of,
    ordinals,
)
from steersman.controllers.statefulset.order import PodsByOrdinal, group_by_ordinal
from steersman.controllers.statefulset.status import METRICS, is_inconsistent, measure, new_status
from steersman.intent.actions import UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

# -- observe ----------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """A StatefulSet, its pods, claims and history at one instant."""

    set: StatefulSet
    owned: tuple[Pod, ...]
    """The pods it controls."""
    orphans: tuple[Pod, ...]
    """The pods of the namespace without a controller that have a name of the set's pods."""
    revisions: tuple[ControllerRevision, ...]
    """The revisions it controls."""
    orphan_revisions: tuple[ControllerRevision, ...]
    """The revisions of the namespace that have no controller."""
    claims: Claims
    """The existing claims of its pods, and of the pods to create."""


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


def _claims(caches: Caches, set_: StatefulSet, pods: tuple[Pod, ...]) -> Claims:
    present = dict.fromkeys(ordinal_of(pod.metadata.name) for pod in pods)
    missing = islice((ordinal for ordinal in ordinals(set_) if ordinal not in present), order.BURST)
    claims = {}
    for ordinal in (*present, *missing):
        for name in claim_names(set_, ordinal).values():
            existing = caches[PERSISTENTVOLUMECLAIMS].get(Key(set_.metadata.namespace, name))
            if existing is not None:
                claims[name] = existing
    return claims


# -- decide -----------------------------------------------------------------------------------


class Progress(msgspec.Struct, frozen=True):
    """How far a round came."""

    waiting_for: str | None = None
    updating: int = 0
    """The pods deleted so that they are updated."""
    failure: ApiError | None = None

    @property
    def is_over(self) -> bool:
        """Whether the round does nothing further to pods."""
        return self.waiting_for is not None or self.failure is not None


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
        return Rest(f"invalid selector: {error}")
    if set_.spec.replicas is None or set_.spec.replicas < 0:
        raise InvalidSpec(f"spec.replicas is {set_.spec.replicas}")

    def selected(obj: Object) -> bool:
        return selector.matches(obj.metadata.labels)

    # Revisions that are no longer selected are ignored, but not released.
    claimed = await claim(set_, filter(selected, seen.revisions), seen.orphan_revisions, selected)
    owned = await claim(set_, seen.owned, seen.orphans, lambda pod: selected(pod) and is_member(set_, pod))
    known = sort_revisions(claimed)
    revisions = await get_revisions(set_, known, semantic=config.semantic_revisions)
    by_ordinal = group_by_ordinal(set_, owned, now)
    progress = Progress()
    if set_.metadata.deletionTimestamp is None:
        progress = await _sync(by_ordinal, revisions, seen.claims, config)
    if config.max_unavailable:
        await measure(by_ordinal)
    status = new_status(by_ordinal, revisions, progress.updating)
    failure = progress.failure
    try:
        if is_inconsistent(set_, status):
            await UpdateStatus(set_, status)
    except ApiError as error:
        failure = failure or error
    failure = failure or await truncate_history(set_, known, revisions, owned)
    if failure is not None:
        raise failure
    because = progress.waiting_for or f"{status.readyReplicas} of {set_.spec.replicas} replicas ready"
    min_ready_seconds = set_.spec.minReadySeconds
    if min_ready_seconds > 0 and status.readyReplicas != status.availableReplicas:
        wait = next_available(by_ordinal.all, min_ready_seconds, now)
        if wait is None:
            wait = timedelta(seconds=min_ready_seconds)
        return Wake(wait, f"{because}; waiting for minReadySeconds")
    return Rest(because)


async def _sync(
    by_ordinal: PodsByOrdinal, revisions: Revisions, existing: Claims, config: Config
) -> Progress:
    """Creates and repairs replicas first, then scales down, then updates; each step when the one before is done."""
    progress = await _sync_replicas(by_ordinal, revisions, existing)
    if not progress.is_over:
        progress = await _scale_down(by_ordinal, existing)
    if progress.is_over:
        return progress
    step = order.rolling_update(
        by_ordinal, revisions.update.metadata.name, use_max_unavailable=config.max_unavailable
    )
    failure = await pod_control.delete_pods(by_ordinal.set, step.delete)
    # After an error the number of deleted pods is unknown; the next round counts them.
    return Progress(step.waiting_for, 0 if failure else len(step.delete), failure)


async def _sync_replicas(by_ordinal: PodsByOrdinal, revisions: Revisions, existing: Claims) -> Progress:
    """Creates missing pods, replaces finished ones, and updates those whose identity or claims do not match."""
    set_ = by_ordinal.set

    def mismatched(pod: Pod) -> bool:
        if not has_identity(set_, pod) or not has_storage(set_, pod):
            return True
        # The claims of a pending pod are updated in any case.
        return pod.status.phase != "Pending" and any(outdated_claims(set_, pod, existing))

    step = order.replica_step(
        by_ordinal, mismatched, lambda ordinal: has_stale_claim(set_, ordinal, existing)
    )
    failure: ApiError | None = None
    for pod in step.update:
        failure = failure or await pod_control.update_pod(set_, pod, existing)
    failure = failure or await pod_control.delete_pods(set_, step.replace)
    if failure is None and step.ensure_claims:
        pending = [ordinal_of(pod.metadata.name) for pod in step.ensure_claims]
        errors = await pod_control.create_claims(set_, pending, existing)
        failure = pod_control.first_error(errors.values())
        for pod in step.ensure_claims:
            failure = failure or await pod_control.update_claim_owners(set_, pod, existing)
    if failure is None and step.create:
        failure = await pod_control.create_pods(
            set_, step.create, existing, lambda ordinal: new_versioned_pod(set_, ordinal, revisions)
        )
    return Progress(step.waiting_for, failure=failure)


async def _scale_down(by_ordinal: PodsByOrdinal, existing: Claims) -> Progress:
    """Deletes pods beyond the set's ordinals, after their claims have the owners of the retention policy."""
    for pod in by_ordinal.condemned:
        if any(outdated_claims(by_ordinal.set, pod, existing)):
            failure = await pod_control.update_claim_owners(by_ordinal.set, pod, existing)
            if failure is not None:
                return Progress(failure=failure)
    step = order.scale_down(by_ordinal)
    return Progress(step.waiting_for, failure=await pod_control.delete_pods(by_ordinal.set, step.delete))


# -- declaration ------------------------------------------------------------------------------


def _enqueue_for_deleted_claim(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterator[Key]:
    """Enqueues the sets that had a deleted claim: a pod may wait for its deletion.

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
            Watch(PERSISTENTVOLUMECLAIMS, to=_enqueue_for_deleted_claim),
        ),
        workers=Flag("concurrent-statefulset-syncs", 5),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
