"""deployment-controller (a decision): rolls a Deployment's pod template out, from old ReplicaSets to a new one.

A round goes one of five ways: a Deployment that is being deleted only has its status updated; a paused or rescaled
one is scaled; one with a rollback request is rolled back; all others are rolled out, by RollingUpdate or Recreate.
Each way is a pure function from the present ReplicaSets to the target ones (`plan`). The difference is written
(`sync`), and then the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import (
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    Condition,
    Deployment,
    DeploymentStatus,
    Pod,
    ReplicaSet,
)
from steersman.api.label_selectors import compile_selector
from steersman.api.meta import controller_of
from steersman.api.pods import is_terminal
from steersman.api.scheme import Key
from steersman.controllers.deployment import revision, rollback, status
from steersman.controllers.deployment.plan import Plan, make_plan
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets
from steersman.controllers.deployment.sync import Created, create_replicaset, sync_replicasets
from steersman.controllers.shared.controller_ref import claim, resolve_controller_ref
from steersman.controllers.shared.enqueue_owner import enqueue_owner
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selector_or_nothing, selects
from steersman.intent.actions import Batch, Delete, Emit, Failed, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

COALESCE_WITHIN = 0.3
"""The longest a Deployment waits between two rounds, in seconds: ReplicaSets that change together are one status write."""

# -- observe ----------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """A Deployment and its ReplicaSets at one instant."""

    deployment: Deployment
    owned: tuple[ReplicaSet, ...] = ()
    """The ReplicaSets it controls."""
    orphans: tuple[ReplicaSet, ...] = ()
    """The ReplicaSets without a controller that it selects."""
    running: Mapping[str, int] = field(default_factory=dict)
    """Uid of a ReplicaSet -> its pods that have not ended. Only counted for Recreate."""


def is_recreate(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "Recreate"


def observe(caches: Caches, key: Key) -> Seen | None:
    deployment = caches[DEPLOYMENTS].get(key)
    if deployment is None:
        return None
    cache = caches[REPLICASETS]
    selector = selector_or_nothing(deployment)
    owned = tuple(controlled_by(cache, deployment))
    orphans = tuple(rs for rs in orphans_in(cache, key.namespace) if selector.matches(rs.metadata.labels))
    if not is_recreate(deployment):
        return Seen(deployment, owned, orphans)
    running = {rs.metadata.uid: running_pods(caches, rs) for rs in (*owned, *orphans)}
    return Seen(deployment, owned, orphans, running)


def running_pods(caches: Caches, rs: ReplicaSet) -> int:
    """The pods of a ReplicaSet that may still run. A terminating pod runs until it is deleted."""
    return sum(not is_terminal(pod) for pod in controlled_by(caches[PODS], rs))


# -- decide -----------------------------------------------------------------------------------


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    count_terminating: bool = True
    """Whether ``status.terminatingReplicas`` is set."""


async def decide(seen: Seen, now: datetime, config: Config = Config()) -> Verdict:
    deployment = seen.deployment
    try:
        selector = compile_selector(deployment.spec.selector)
    except ValueError as error:
        return Rest(f"invalid selector: {error}")
    if selector.empty:
        return await _reject_empty_selector(deployment)

    def selected(rs: ReplicaSet) -> bool:
        return selector.matches(rs.metadata.labels)

    sets = ReplicaSets.of(deployment, await claim(deployment, seen.owned, seen.orphans, selected))
    limits = Limits.of(deployment)
    deleted = deployment.metadata.deletionTimestamp is not None
    conditions = deployment.status.conditions if deleted else status.with_paused(deployment, now)
    plan, created = make_plan(sets, limits, seen.running), False
    if plan.create_new:
        result = await create_replicaset(sets, conditions, limits, now)
        if not isinstance(result, Created):
            return result
        sets, conditions, created = result.sets, result.conditions, True
        plan = make_plan(sets, limits, seen.running)
    return await _carry_out(plan, sets, conditions, limits, now, config, created=created)


async def _carry_out(
    plan: Plan,
    before: ReplicaSets,
    conditions: tuple[Condition, ...],
    limits: Limits,
    now: datetime,
    config: Config,
    *,
    created: bool,
) -> Verdict:
    """Writes the plan's target, and the status last and once."""
    deployment = before.deployment
    synced = await sync_replicasets(before, plan.target)
    sets, failure = synced.sets, synced.failure
    if plan.rollback_to is not None and failure is None and not created:
        return await rollback.roll_back(sets, plan.rollback_to)
    if sets.new is not None:
        conditions = status.with_found(deployment, conditions, sets.new.metadata.name, now)
    new = status.new_status(sets, limits, conditions, now, count_terminating=config.count_terminating)
    if plan.rollout:
        new = status.with_progress(sets, new, now)
    changed = Rest(", ".join(synced.changes))
    if synced.changes and failure is None and not created and status.same_counts(new, deployment.status):
        # differs: upstream writes a status for the changed sizes alone, and again when pods follow. The round
        # for the changed ReplicaSets comes in a moment and writes it once.
        return changed
    if failure is None and (plan.cleanup or (plan.rollout and status.is_complete(deployment, new))):
        failure = await _cleanup(revision.beyond_history_limit(sets))
    # A revision that could not be written on the ReplicaSet is not written on the Deployment either.
    annotations = revision.revised_annotations(deployment, sets.new if synced.failure is None else None)
    if new != deployment.status or annotations is not deployment.metadata.annotations:
        await UpdateStatus(
            deployment, new, None if annotations is deployment.metadata.annotations else annotations
        )
    if failure is not None:
        raise failure
    return changed if synced.changes and not created else _verdict(plan, sets, new, limits, now)


def _verdict(plan: Plan, sets: ReplicaSets, new: DeploymentStatus, limits: Limits, now: datetime) -> Verdict:
    deployment = sets.deployment
    if deployment.metadata.deletionTimestamp is not None:
        return Rest("being deleted: only the status is updated")
    if deployment.spec.paused:
        return Rest(status.describe_paused(new, limits))
    because = status.describe(sets, new, limits, plan.old_pods)
    due = status.deadline_at(deployment, new.conditions)
    if not plan.rollout or due is None or status.is_complete(deployment, new):
        return Rest(because)
    return Wake(max(due - now, timedelta()), f"{because}; progress deadline at {due:%Y-%m-%dT%H:%M:%SZ}")


async def _cleanup(sets: list[ReplicaSet]) -> ApiError | None:
    """Deletes old ReplicaSets; returns the first error."""
    if not sets:
        return None
    outcomes = await Batch(tuple(Delete(rs, exact=True) for rs in sets))
    failed = (outcome.error for outcome in outcomes if isinstance(outcome, Failed))
    return next((error for error in failed if not isinstance(error, NotFound)), None)


async def _reject_empty_selector(deployment: Deployment) -> Verdict:
    """Leaves a Deployment that selects every pod alone, with a warning event."""
    await Emit(
        deployment,
        "Warning",
        "SelectingAll",
        "This deployment is selecting all pods. A non-empty selector is required.",
    )
    generation = deployment.metadata.generation
    if deployment.status.observedGeneration < generation:
        await UpdateStatus(deployment, replace(deployment.status, observedGeneration=generation))
    return Rest("empty selector: it would select all pods")


# -- declaration ------------------------------------------------------------------------------


def enqueue_for_pod(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """Enqueues a Recreate Deployment when the last of its pods has ended or is deleted.

    differs: upstream looks at deleted pods only, and never again when a pod that has ended remains.
    """
    pod, old = change.obj, change.old
    if change.new is not None and (not is_terminal(pod) or (old and is_terminal(old))):
        return ()
    namespace = pod.metadata.namespace
    rs = resolve_controller_ref(caches[REPLICASETS], REPLICASETS, namespace, controller_of(pod))
    if rs is None:
        return ()
    deployment = resolve_controller_ref(caches[DEPLOYMENTS], DEPLOYMENTS, namespace, controller_of(rs))
    if deployment is None or not is_recreate(deployment):
        return ()
    if any(running_pods(caches, sibling) for sibling in controlled_by(caches[REPLICASETS], deployment)):
        return ()
    return (deployment.key,)


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(count_terminating=settings.enabled("DeploymentReplicaSetTerminatingReplicas"))
    return Controller(
        name="deployment-controller",
        aliases=("deployment",),
        service_account="deployment-controller",
        watches=(
            Watch(DEPLOYMENTS),
            Watch(REPLICASETS, to=enqueue_owner(DEPLOYMENTS, selects), indexes=CONTROLLED),
            Watch(PODS, to=enqueue_for_pod, indexes=CONTROLLED),
        ),
        workers=Flag("concurrent-deployment-syncs", 5),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        coalesce_within=COALESCE_WITHIN,
    )


controller = configure(DEFAULTS)
