"""Loops that do not act: no manager leads, a controller is off, its rounds fail, its own write is not seen yet, a fight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from steersman.explain.model import Case, Finding, Ref, Weight
from steersman.explain.owners import controller_of_kind
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief, duration, some

SLOW = timedelta(seconds=10)
"""Age of an object from which an unobserved spec is a finding."""
LEASE = "kube-controller-manager"
CREATORS = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
"""Kinds whose controllers create pods."""
STEERED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")


@situation(*STEERED)
def not_observed(case: Case) -> Iterator[Finding]:
    """The controller has not looked at the latest spec: no manager leads, or this controller is off."""
    generation = case.meta.get("generation", 0)
    if case.status.get("observedGeneration", 0) >= generation or replicaset_refused(case):
        return
    created = case.time(case.meta.get("creationTimestamp"))
    if created is None or case.now - created < SLOW or case.meta.get("deletionTimestamp"):
        return
    controller = controller_of_kind(case.ref.kind)
    lease = case.snapshot.get("Lease", "kube-system", LEASE)
    spec: Mapping[str, Any] = (lease or {}).get("spec") or {}
    renewed = case.time(spec.get("renewTime"))
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 15)
    if lease is None or renewed is None or not spec.get("holderIdentity"):
        cause = f"{controller} has not looked at it, and no controller manager holds the lease kube-system/{LEASE}"
        remedy = "start a controller manager; one without leader election has no lease, then see its log"
    elif case.now - renewed > lasts:
        cause = (
            f"{controller} has not looked at it: no controller manager leads, and {spec['holderIdentity']} "
            f"renewed its lease {duration(case.now - renewed)} ago for the last time"
        )
        remedy = "see whether the controller manager runs, and its log"
    else:
        cause = (
            f"{controller} has not looked at it, though {spec['holderIdentity']} leads: "
            "the controller is off, or it is refused"
        )
        remedy = f"see whether --controllers of the manager turns {controller} off, and its log"
    yield Finding(
        code="not-observed",
        subject=case.ref,
        cause=cause,
        controller=controller,
        remedy=remedy,
        weight=Weight.ROOT,
    )


def replicaset_refused(case: Case) -> str:
    """The refusal of a Deployment's new ReplicaSet; empty if there is none. Its controller does not observe the spec until then."""
    progress = case.condition("Progressing")
    return str(progress.get("message", "")) if progress.get("reason") == "ReplicaSetCreateError" else ""


def _rounds(case: Case) -> Iterator[Mapping[str, Any]]:
    """The rounds of the object's own controller that the trace has, latest first."""
    controller = controller_of_kind(case.ref.kind)
    for round_ in reversed((case.snapshot.rounds or {}).get("rounds") or ()):
        if (round_.get("controller"), round_.get("namespace"), round_.get("name")) == (
            controller,
            case.ref.namespace,
            case.ref.name,
        ):
            yield round_


def next_try(case: Case) -> str:
    """When the controller tries again, if the trace tells: `` at 12:00:05 (in 5 s)``."""
    due = case.time(next(_rounds(case), {}).get("next"))
    return f" {at(due, case.now)}" if due is not None and due > case.now else ""


@situation(
    *STEERED, "Job", "CronJob", "HorizontalPodAutoscaler", "PersistentVolumeClaim", "Namespace", "Service"
)
def failing_rounds(case: Case) -> Iterator[Finding]:
    """The last round of the controller failed, and it waits for its back-off. Known from the trace only."""
    last = next(_rounds(case), None)
    ending = (last or {}).get("ending") or {}
    if last is None or "failure" not in ending or ending.get("code") == 409:
        return
    if ending.get("code") == 403 and case.ref.kind in ("Deployment", "CronJob", *CREATORS):
        # The refusal has a finding of its own.
        return
    yield Finding(
        code="failing",
        subject=case.ref,
        cause=f"the last round of {last['controller']} failed: {brief(str(ending['failure']))}",
        controller=str(last["controller"]),
        next=f"it tries again{next_try(case)}",
    )


@situation(*STEERED, "Job")
def own_write_not_seen(case: Case) -> Iterator[Finding]:
    """The controller waits until its cache shows its own last write. Known from the trace only."""
    for key in (case.snapshot.rounds or {}).get("keys") or ():
        behind = key.get("waitsForCacheOf")
        if (
            behind
            and key.get("controller") == controller_of_kind(case.ref.kind)
            and key.get("name") == case.ref.name
        ):
            yield Finding(
                code="stale-cache",
                subject=case.ref,
                cause=f"{key['controller']} waits until its cache of {behind} shows its own last write",
                controller=key["controller"],
                next="it goes on as soon as the watch has caught up, after 5 minutes at the latest",
                weight=Weight.WAITS,
            )


@situation(*STEERED, "HorizontalPodAutoscaler")
def write_fight(case: Case) -> Iterator[Finding]:
    """Two actors keep undoing each other. Known from the trace only."""
    for fight in (case.snapshot.rounds or {}).get("fights") or ():
        if Ref(fight.get("kind", ""), fight.get("namespace", ""), fight.get("name", "")) == case.ref:
            yield Finding(
                code="fight",
                subject=case.ref,
                cause=f"{some(fight['actors'])} keep changing it in turns, {fight['turns']} times in 10 minutes",
                remedy="let only one of them own the field: leave spec.replicas out of manifests that an autoscaler steers",
            )
