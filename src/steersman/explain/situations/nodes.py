"""Nodes: not ready, silent, cordoned, or being drained while a disruption budget forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Finding, Weight, selects
from steersman.explain.situations.disruption import SEVERAL
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief, count, duration, some

LIFECYCLE = "node-lifecycle-controller"
GRACE = timedelta(seconds=50)
"""The silence after which a node's conditions become Unknown: the default of --node-monitor-grace-period."""


@situation("Node")
def node_not_ready(case: Case) -> Iterator[Finding]:
    """The kubelet does not answer, or says itself that it is not ready."""
    ready = case.condition("Ready")
    if ready.get("status") == "True":
        return
    beat = case.time(ready.get("lastHeartbeatTime"))
    unknown = case.time(ready.get("lastTransitionTime")) if ready.get("status") == "Unknown" else None
    if beat is not None and unknown is not None:
        # A kubelet renews its Lease every ten seconds, and its status every five minutes: the status may be old by then.
        beat = max(beat, unknown - GRACE)
    since = f" for {duration(case.now - beat)}" if beat is not None else ""
    if ready.get("status") == "Unknown":
        cause = f"its kubelet has not reported{since} ({ready.get('reason')})"
        remedy = "see whether the machine and its kubelet run"
    elif not ready:
        cause, remedy = "its kubelet has never reported", "see whether the machine and its kubelet run"
    else:
        cause = f"its kubelet reports that it is not ready: {brief(str(ready.get('message', '')))}"
        remedy = "see the kubelet's log; a missing network plugin is the usual reason"
    yield Finding(
        code="node-not-ready",
        subject=case.ref,
        cause=cause,
        controller=LIFECYCLE,
        next="its pods are evicted 5 minutes later, unless they tolerate it for longer",
        remedy=remedy,
    )


@situation("Node")
def pressure(case: Case) -> Iterator[Finding]:
    """The kubelet reports pressure, and evicts pods."""
    for type_ in ("DiskPressure", "MemoryPressure", "PIDPressure"):
        if case.condition(type_).get("status") == "True":
            yield Finding(
                code="pressure",
                subject=case.ref,
                cause=f"it has {type_}: {brief(str(case.condition(type_).get('message', '')))}",
                controller="the kubelet",
                next="the kubelet evicts pods, and new ones are kept away by a taint",
            )


@situation("Node")
def drain_blocked(case: Case) -> Iterator[Finding]:
    """A cordoned node whose pods may not be evicted."""
    if not case.spec.get("unschedulable"):
        return
    blocked: dict[str, list[str]] = {}
    several: dict[str, list[str]] = {}
    for pod in case.snapshot.pods_on(case.ref.name):
        if pod["metadata"].get("deletionTimestamp"):
            continue
        budgets = [
            budget
            for budget in case.snapshot.objects("PodDisruptionBudget", pod["metadata"].get("namespace", ""))
            if selects(budget, pod)
        ]
        if len(budgets) > 1:
            names = some(sorted(budget["metadata"]["name"] for budget in budgets))
            several.setdefault(names, []).append(pod["metadata"]["name"])
            continue
        for budget in budgets:
            status = budget.get("status") or {}
            if not status.get("disruptionsAllowed", 0) and status.get("expectedPods"):
                blocked.setdefault(budget["metadata"]["name"], []).append(pod["metadata"]["name"])
    for names, pods in several.items():
        yield Finding(
            code="drain-overlap",
            subject=case.ref,
            cause=f"it is cordoned, but several PodDisruptionBudgets ({names}) select its "
            f"{'pod' if len(pods) == 1 else 'pods'} {some(sorted(pods))}, and {SEVERAL}",
            controller="disruption-controller",
            next="a drain ends with an error",
            remedy="leave each pod to one budget: correct the selectors",
        )
    for name, pods in blocked.items():
        yield Finding(
            code="drain",
            subject=case.ref,
            cause=f"it is cordoned, but PodDisruptionBudget {name} allows no eviction of its {count(len(pods), 'pod')} {some(sorted(pods))}",
            controller="disruption-controller",
            next="a drain tries again every 5 s",
            remedy="get more pods of that budget ready elsewhere, or relax the budget",
        )
    if not blocked and not several:
        yield Finding(
            code="cordoned",
            subject=case.ref,
            cause="it is cordoned, so no new pod is scheduled to it",
            controller="the scheduler",
            remedy=f"kubectl uncordon {case.ref.name}",
            weight=Weight.NOTE,
        )
