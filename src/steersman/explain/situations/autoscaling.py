"""HorizontalPodAutoscalers: no metrics, no requests, at a bound, within the tolerance, in a stabilization window."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Finding, Weight
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief

HPA = "horizontal-pod-autoscaler-controller"
SCALED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds of targets that are read, so that a missing one is known."""
_UNSCALABLE = {
    "DaemonSet": "delete the autoscaler: the nodes decide how many pods a DaemonSet has",
    "Job": "delete the autoscaler, and set spec.parallelism of the Job",
    "CronJob": "delete the autoscaler, and set spec.jobTemplate.spec.parallelism of the CronJob",
}
"""By kinds of targets that have no replicas to set: the way out."""
_NO_SCALE = "name a target with replicas in spec.scaleTargetRef; a custom resource needs subresources.scale in its definition"
WINDOW = 300
"""The default stabilization window of scaling down, in seconds."""


@situation("HorizontalPodAutoscaler")
def no_metrics(case: Case) -> Iterator[Finding]:
    """Scaling is not active: metrics or requests are missing."""
    condition = case.condition("ScalingActive")
    if condition.get("status") != "False":
        return
    message = str(condition.get("message", ""))
    weight = Weight.BLOCKED
    if condition.get("reason") == "ScalingDisabled":
        cause, remedy = (
            "its target is scaled to 0, which turns autoscaling off",
            "scale the target to 1 or more",
        )
    elif condition.get("reason") == "AmbiguousSelector":
        cause = f"several autoscalers scale the same pods, so none of them acts: {brief(message)}"
        remedy, weight = "delete all but one of them, or give their targets different labels", Weight.ROOT
    elif condition.get("reason") == "InvalidSelector":
        cause = f"the selector of its target cannot be used: {brief(message)}"
        remedy, weight = "correct the selector in status.selector of the target's scale", Weight.ROOT
    elif "missing request for" in message:
        cause = f"containers have no request to compare the usage with: {brief(message)}"
        remedy = "set resources.requests in the pod template of the target"
    elif "could not find the requested resource" in message or "no metrics returned" in message:
        cause = f"there are no metrics: {brief(message)}"
        remedy = _metrics_server(message)
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
        weight=weight,
    )


def _metrics_server(message: str) -> str:
    """How to get the metrics that an autoscaler asks for: each API of metrics has a server of its own."""
    for api in ("custom", "external"):
        if f"{api} metrics API" in message or f"{api}.metrics.k8s.io" in message:
            return f"install an adapter that serves {api}.metrics.k8s.io, or see why it does not answer: kubectl get apiservices"
    return "install metrics-server, or see why it does not answer: kubectl top pods"


@situation("HorizontalPodAutoscaler")
def no_target(case: Case) -> Iterator[Finding]:
    """The object to scale does not exist, or cannot be scaled."""
    condition = case.condition("AbleToScale")
    target = case.spec.get("scaleTargetRef") or {}
    kind, name = str(target.get("kind")), str(target.get("name"))
    absent = kind in SCALED and case.snapshot.known(kind)
    absent = absent and case.snapshot.get(kind, case.ref.namespace, name) is None
    failed = condition.get("status") == "False" and condition.get("reason") == "FailedGetScale"
    if not case.status.get("conditions") and not absent:
        yield Finding(
            code="not-looked-yet",
            subject=case.ref,
            cause="its controller has not looked at it yet",
            controller=HPA,
            next="it looks every 15 s",
            weight=Weight.WAITS,
        )
    elif absent or failed:
        message = str(condition.get("message", ""))
        cause = f"its target {kind} {name} cannot be read: {brief(message)}"
        remedy = "correct spec.scaleTargetRef, or create the target"
        if absent:
            cause = f"its target {kind} {name} does not exist"
        elif "could not find the requested resource" in message:
            # That is how API servers refuse a subresource they do not have; an object that is missing is named.
            cause = f"its target {kind} {name} cannot be scaled: the kind {kind} has no scale subresource"
            remedy = _UNSCALABLE.get(kind, _NO_SCALE)
        elif "no matches for kind" in message:
            cause = f"the API server does not know the kind of its target {kind} {name}: {brief(message)}"
            remedy = (
                "correct apiVersion and kind of spec.scaleTargetRef, or install the definition of the kind"
            )
        yield Finding(
            code="no-target",
            subject=case.ref,
            cause=cause,
            controller=HPA,
            next="it looks again every 15 s",
            remedy=remedy,
            # What is wrong with another object of that name does not matter.
            weight=Weight.ROOT,
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
