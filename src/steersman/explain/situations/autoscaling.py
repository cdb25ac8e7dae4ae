"""HorizontalPodAutoscalers: no metrics, no requests, at a bound, within the tolerance, in a stabilization window."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Finding, Weight
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief, count

HPA = "horizontal-pod-autoscaler-controller"
SCALED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds of targets that are read, so that a missing one is known."""
WINDOW = 300
"""The default stabilization window of scaling down, in seconds."""


@situation("HorizontalPodAutoscaler")
def no_metrics(case: Case) -> Iterator[Finding]:
    """Scaling is not active: metrics or requests are missing."""
    condition = case.condition("ScalingActive")
    if condition.get("status") != "False":
        return
    message = str(condition.get("message", ""))
    if condition.get("reason") == "ScalingDisabled":
        cause, remedy = (
            "its target is scaled to 0, which turns autoscaling off",
            "scale the target to 1 or more",
        )
    elif "missing request for" in message:
        cause = f"containers have no request to compare the usage with: {brief(message)}"
        remedy = "set resources.requests in the pod template of the target"
    elif "could not find the requested resource" in message or "no metrics returned" in message:
        cause = f"there are no metrics: {brief(message)}"
        remedy = "install metrics-server, or see why it does not answer: kubectl top pods"
    else:
        cause = f"its metrics cannot be read ({condition.get('reason')}): {brief(message)}"
        remedy = "see whether the metrics API answers: kubectl get apiservices"
    yield Finding(
        code="no-metrics",
        subject=case.ref,
        cause=cause,
        controller=HPA,
        next="it looks again every 15 s, and does not scale meanwhile",
        remedy=remedy,
    )


@situation("HorizontalPodAutoscaler")
def no_target(case: Case) -> Iterator[Finding]:
    """The object to scale does not exist, or cannot be scaled."""
    condition = case.condition("AbleToScale")
    target = case.spec.get("scaleTargetRef") or {}
    if not case.status.get("conditions"):
        kind, name = str(target.get("kind", "")), str(target.get("name", ""))
        absent = kind in SCALED and case.snapshot.known(kind)
        absent = absent and case.snapshot.get(kind, case.ref.namespace, name) is None
        yield Finding(
            code="no-target" if absent else "not-looked-yet",
            subject=case.ref,
            cause=f"its target {kind} {name} does not exist"
            if absent
            else "its controller has not looked at it yet",
            controller=HPA,
            next="it looks every 15 s",
            remedy="correct spec.scaleTargetRef, or create the target" if absent else "",
            weight=Weight.BLOCKED if absent else Weight.WAITS,
        )
    elif condition.get("status") == "False" and condition.get("reason") == "FailedGetScale":
        yield Finding(
            code="no-target",
            subject=case.ref,
            cause=f"its target {target.get('kind')} {target.get('name')} cannot be read: {brief(str(condition.get('message', '')))}",
            controller=HPA,
            next="it looks again every 15 s",
            remedy="correct spec.scaleTargetRef, or create the target",
        )


@situation("HorizontalPodAutoscaler")
def at_a_bound(case: Case) -> Iterator[Finding]:
    """More (or fewer) replicas would be right, and the bounds do not allow them."""
    condition = case.condition("ScalingLimited")
    if condition.get("status") != "True":
        return
    bounds = {
        "TooManyReplicas": ("maxReplicas", "raise spec.maxReplicas"),
        "TooFewReplicas": ("minReplicas", "lower spec.minReplicas"),
    }
    reason = condition.get("reason", "")
    if reason in bounds:
        field, remedy = bounds[reason]
        yield Finding(
            code="bound",
            subject=case.ref,
            cause=f"it is at its {field} of {case.spec.get(field, 1)}, and its metrics ask for {'more' if field == 'maxReplicas' else 'fewer'}",
            controller=HPA,
            remedy=remedy,
            weight=Weight.BLOCKED if field == "maxReplicas" else Weight.NOTE,
        )
    else:
        yield Finding(
            code="rate-limit",
            subject=case.ref,
            cause=f"its behavior limits how fast it scales ({reason})",
            controller=HPA,
            next="it goes on in the next period of the policy",
            weight=Weight.WAITS,
        )


@situation("HorizontalPodAutoscaler")
def stabilized(case: Case) -> Iterator[Finding]:
    """Fewer replicas would be right, and the stabilization window has not passed."""
    condition = case.condition("AbleToScale")
    if condition.get("reason") not in ("ScaleDownStabilized", "ScaleUpStabilized"):
        return
    direction = "scaleDown" if condition["reason"] == "ScaleDownStabilized" else "scaleUp"
    rules = (case.spec.get("behavior") or {}).get(direction) or {}
    seconds = rules.get("stabilizationWindowSeconds", WINDOW if direction == "scaleDown" else 0)
    last = case.time(case.status.get("lastScaleTime"))
    due = f" {at(last + timedelta(seconds=seconds), case.now)} at the latest" if last is not None else ""
    if last is not None and last + timedelta(seconds=seconds) < case.now:
        due = f" when the highest recommendation of the last {seconds} s has fallen"
    yield Finding(
        code="stabilization",
        subject=case.ref,
        cause=f"fewer replicas are needed, but a recommendation of the last {seconds} s asked for more (stabilization window)"
        if direction == "scaleDown"
        else f"more replicas are needed, but the stabilization window of {seconds} s has not passed",
        controller=HPA,
        next=f"it scales{due}",
        remedy=f"shorten spec.behavior.{direction}.stabilizationWindowSeconds if that is too slow",
        weight=Weight.WAITS,
    )


@situation("HorizontalPodAutoscaler")
def within_tolerance(case: Case) -> Iterator[Finding]:
    """The metric differs from its target by less than the tolerance."""
    if case.condition("ScalingActive").get("status") != "True":
        return
    if case.condition("AbleToScale").get("reason") not in ("ReadyForNewScale", "SucceededRescale"):
        return
    current, wanted = case.status.get("currentReplicas", 0), case.status.get("desiredReplicas", 0)
    if current != wanted:
        return
    for spec, status in zip(
        case.spec.get("metrics") or (), case.status.get("currentMetrics") or (), strict=False
    ):
        target = ((spec.get("resource") or {}).get("target") or {}).get("averageUtilization")
        value = ((status.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if target and value is not None and value != target and 0.9 <= value / target <= 1.1:
            yield Finding(
                code="tolerance",
                subject=case.ref,
                cause=f"the utilization of {value}% is within the tolerance of 10% around its target of {target}%",
                controller=HPA,
                next="it looks again every 15 s",
                weight=Weight.NOTE,
            )
            return


@situation("PodDisruptionBudget")
def no_disruption_allowed(case: Case) -> Iterator[Finding]:
    """Evictions are refused: drains wait."""
    if case.status.get("disruptionsAllowed", 0) or not case.status.get("expectedPods"):
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
        cause = f"it allows no eviction at all: {rule} with {case.status['expectedPods']} pods"
        remedy = "run one more replica than minAvailable, or use maxUnavailable: 1"
        weight = Weight.BLOCKED
    yield Finding(
        code="pdb",
        subject=case.ref,
        cause=cause,
        controller="disruption-controller",
        next="evictions are answered with 429 until more pods are healthy than it demands",
        remedy=remedy,
        weight=weight,
    )
