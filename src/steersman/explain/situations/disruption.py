"""PodDisruptionBudgets: no eviction allowed, no pods, pods that it cannot count, and pods of two budgets."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.explain.model import Case, Finding, Weight, selects
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief, count, some

DISRUPTION = "disruption-controller"
SEVERAL = "a pod with several budgets cannot be evicted"


@situation("PodDisruptionBudget")
def no_disruption_allowed(case: Case) -> Iterator[Finding]:
    """Evictions are refused: drains wait."""
    if case.status.get("disruptionsAllowed", 0) or not case.status.get("expectedPods") or _not_computed(case):
        return
    healthy, desired = case.status.get("currentHealthy", 0), case.status.get("desiredHealthy", 0)
    if desired > case.status["expectedPods"]:
        there = count(case.status["expectedPods"], "pod matches", "pods match")
        cause = (
            f"it demands {desired} healthy pods, but only {there} its selector, so none may ever be evicted"
        )
        remedy = "run more replicas, or lower minAvailable"
        weight = Weight.BLOCKED
    elif healthy < desired:
        cause = f"only {healthy} of the {desired} pods that it demands are healthy, so none may be evicted"
        remedy = "get the other pods ready first"
        weight = Weight.CONSEQUENCE
    else:
        rule = next(
            (
                f"{field} {case.spec[field]}"
                for field in ("minAvailable", "maxUnavailable")
                if field in case.spec
            ),
            "",
        )
        expected = case.status["expectedPods"]
        remedy = "run one more replica than minAvailable, or use maxUnavailable: 1"
        weight = Weight.BLOCKED
        if healthy < expected:
            cause = f"only {healthy} of its {expected} pods are healthy, and it demands {desired} ({rule}), so none of them may be evicted"
            remedy, weight = "get the other pods ready first", Weight.CONSEQUENCE
        else:
            cause = f"it allows no eviction at all: {rule} with {count(expected, 'pod')}"
    yield Finding(
        code="pdb",
        subject=case.ref,
        cause=cause,
        controller=DISRUPTION,
        next="evictions are answered with 429 until more pods are healthy than it demands",
        remedy=remedy,
        weight=weight,
    )


def _not_computed(case: Case) -> str:
    """Why the budget cannot be computed; empty if it can be."""
    condition = case.condition("DisruptionAllowed")
    if condition.get("reason") == "SyncFailed":
        return brief(str(condition.get("message", "")))
    if case.status.get("expectedPods") or not case.status.get("observedGeneration"):
        return ""
    bare = [
        pod["metadata"]["name"]
        for pod in case.snapshot.objects("Pod", case.ref.namespace)
        if selects(case.document, pod) and not pod["metadata"].get("ownerReferences")
    ]
    return f"Pod {some(bare)} {'has' if len(bare) == 1 else 'have'} no controller" if bare else ""


@situation("PodDisruptionBudget")
def budget_not_computed(case: Case) -> Iterator[Finding]:
    """The budget cannot be computed: its pods have no controller that tells how many there should be."""
    if why := _not_computed(case):
        yield Finding(
            code="pdb-sync-failed",
            subject=case.ref,
            cause=f"it cannot be computed, so no pod may be evicted: {why}",
            controller=DISRUPTION,
            next="evictions are answered with 429 until it can be computed",
            remedy="use minAvailable with a number, or give the pods a controller that can be scaled",
        )


@situation("PodDisruptionBudget")
def budget_without_pods(case: Case) -> Iterator[Finding]:
    """The budget selects no pod."""
    if not case.status.get("observedGeneration") or not case.snapshot.known("Pod"):
        return
    if not any(selects(case.document, pod) for pod in case.snapshot.objects("Pod", case.ref.namespace)):
        yield Finding(
            code="pdb-no-pods",
            subject=case.ref,
            cause=f"no pod in namespace {case.ref.namespace} has the labels of its selector, so it protects nothing",
            controller=DISRUPTION,
            next="it protects pods with these labels from then on",
            remedy="correct spec.selector, or the labels in the pod template",
        )


@situation("PodDisruptionBudget")
def budgets_overlap(case: Case) -> Iterator[Finding]:
    """Another budget selects a pod of this one: the eviction API refuses pods with several budgets."""
    pods = [pod for pod in case.snapshot.objects("Pod", case.ref.namespace) if selects(case.document, pod)]
    others = [
        budget["metadata"]["name"]
        for budget in case.snapshot.objects("PodDisruptionBudget", case.ref.namespace)
        if budget["metadata"]["name"] != case.ref.name and any(selects(budget, pod) for pod in pods)
    ]
    if others:
        yield Finding(
            code="pdb-overlap",
            subject=case.ref,
            cause=f"PodDisruptionBudget {some(others)} {'selects' if len(others) == 1 else 'select'} the same pods, and {SEVERAL}",
            controller=DISRUPTION,
            next="evictions of these pods are answered with 500",
            remedy="leave each pod to one budget: correct the selectors",
        )
