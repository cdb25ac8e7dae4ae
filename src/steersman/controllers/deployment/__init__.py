"""deployment (a decision): keep one new ReplicaSet and let the old ones make room for it.

A round goes one of five ways: a Deployment that is being deleted only has its status kept up; a
paused or rescaled one is scaled; one that was asked to is rolled back; all others roll out, by
RollingUpdate or Recreate. Each way is a function from the family of ReplicaSets as it is to the
family as it should be (`plan`). What differs is written, and then the status says how things stand.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import (
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    Condition,
    Deployment,
    DeploymentStatus,
    ReplicaSet,
)
from steersman.api.label_selectors import compile_selector
from steersman.controllers.deployment import new_replicaset, plan, progress, reasons, revision, rollback
from steersman.controllers.deployment.apply import carry_out
from steersman.controllers.deployment.limits import Limits
from steersman.controllers.deployment.observe import Seen, observe, of_pod, of_replicaset
from steersman.controllers.deployment.plan import Plan
from steersman.controllers.deployment.replicasets import Family
from steersman.controllers.deployment.status import counted, same_counts
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.indexes import CONTROLLED
from steersman.intent.actions import Batch, Delete, Emit, Failed, UpdateStatus
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

PACE = 0.3
"""Seconds between two looks at one Deployment, at most: sets that change together are one status write."""


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    count_terminating: bool = True
    """Whether ``status.terminatingReplicas`` is set."""


async def decide(seen: Seen, now: datetime, config: Config = Config()) -> Verdict:
    deployment = seen.deployment
    try:
        selector = compile_selector(deployment.spec.selector)
    except ValueError as error:
        return Rest(f"cannot act: the selector is invalid: {error}")
    if selector.empty:
        return await _refuse(deployment)

    def selected(rs: ReplicaSet) -> bool:
        return selector.matches(rs.metadata.labels)

    family = Family.of(deployment, await claim(deployment, seen.owned, seen.orphans, selected))
    limits = Limits.of(deployment)
    leaving = deployment.metadata.deletionTimestamp is not None
    shown = deployment.status.conditions if leaving else progress.paused(deployment, now)
    course, born = plan.make(family, limits, seen.running), False
    if course.missing:
        created = await new_replicaset.create(family, shown, limits, now)
        if not isinstance(created, new_replicaset.Born):
            return created
        family, shown, born = created.family, created.shown, True
        course = plan.make(family, limits, seen.running)
    return await _follow(course, family, shown, limits, now, born=born, going=config.count_terminating)


async def _follow(
    course: Plan,
    before: Family,
    shown: tuple[Condition, ...],
    limits: Limits,
    now: datetime,
    *,
    born: bool,
    going: bool,
) -> Verdict:
    """Write what is to be written, the status last and once."""
    deployment = before.deployment
    written = await carry_out(before, course.after)
    family, failure = written.family, written.failure
    if course.rollback is not None and failure is None and not born:
        return await rollback.roll_back(family, course.rollback)
    if family.new is not None:
        shown = progress.found(deployment, shown, family.new.metadata.name, now)
    status = counted(family, limits, shown, now, going=going)
    if course.rollout:
        status = progress.estimated(family, status, now)
    changed = Rest(f"changed {', '.join(written.done)}; the next look will count their pods")
    if written.done and failure is None and not born and same_counts(status, deployment.status):
        # differs: upstream writes what the changed sizes alone mean for the status, and again when
        # pods follow. The round that sees the sets changed comes in a moment and writes it once.
        return changed
    if failure is None and (course.tidy or (course.rollout and progress.complete(deployment, status))):
        failure = await _tidy(revision.outdated(family))
    # A revision that could not be written on the ReplicaSet is not the Deployment's either.
    annotations = revision.revised(deployment, family.new if written.failure is None else None)
    if status != deployment.status or annotations is not deployment.metadata.annotations:
        await UpdateStatus(
            deployment, status, None if annotations is deployment.metadata.annotations else annotations
        )
    if failure is not None:
        raise failure
    return changed if written.done and not born else _verdict(course, family, status, limits, now)


def _verdict(
    course: Plan, family: Family, status: DeploymentStatus, limits: Limits, now: datetime
) -> Verdict:
    deployment = family.deployment
    if deployment.metadata.deletionTimestamp is not None:
        return Rest("being deleted: only its status is kept up")
    if deployment.spec.paused:
        return Rest(reasons.halted(status, limits))
    because = reasons.standing(family, status, limits, course.waiting)
    due = progress.expiry(deployment, status.conditions)
    if not course.rollout or due is None or progress.complete(deployment, status):
        return Rest(because)
    return Wake(max(due - now, timedelta()), f"{because}; its deadline is {due:%Y-%m-%dT%H:%M:%SZ}")


async def _tidy(sets: list[ReplicaSet]) -> ApiError | None:
    """Delete old ReplicaSets; answers why it could not."""
    if not sets:
        return None
    outcomes = await Batch(tuple(Delete(rs, exact=True) for rs in sets))
    failed = (outcome.error for outcome in outcomes if isinstance(outcome, Failed))
    return next((error for error in failed if not isinstance(error, NotFound)), None)


async def _refuse(deployment: Deployment) -> Verdict:
    """A Deployment that selects every pod is left alone, and told so."""
    await Emit(
        deployment,
        "Warning",
        "SelectingAll",
        "This deployment is selecting all pods. A non-empty selector is required.",
    )
    generation = deployment.metadata.generation
    if deployment.status.observedGeneration < generation:
        await UpdateStatus(deployment, replace(deployment.status, observedGeneration=generation))
    return Rest("cannot act: it selects all pods, a non-empty selector is required")


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(count_terminating=settings.enabled("DeploymentReplicaSetTerminatingReplicas"))
    return Controller(
        name="deployment-controller",
        aliases=("deployment",),
        account="deployment-controller",
        watches=(
            Watch(DEPLOYMENTS),
            Watch(REPLICASETS, to=of_replicaset, indexes=CONTROLLED),
            Watch(PODS, to=of_pod, indexes=CONTROLLED),
        ),
        workers=Flag("concurrent-deployment-syncs", 5),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        pace=PACE,
    )


controller = configure(DEFAULTS)
