"""Desired replicas: the largest proposal of all metrics, limited by stabilization window, policies and bounds."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from msgspec.structs import replace

from steersman.api.kinds import Pod
from steersman.api.kinds.autoscaling import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    HPAScalingRules,
)
from steersman.api.label_selectors import parse_selector
from steersman.api.quantity import Quantity
from steersman.controllers.horizontalpodautoscaler import monitor
from steersman.controllers.horizontalpodautoscaler.behavior import normalize, normalize_with_behavior
from steersman.controllers.horizontalpodautoscaler.config import Config
from steersman.controllers.horizontalpodautoscaler.metrics_client import CustomMetrics
from steersman.controllers.horizontalpodautoscaler.observe import Observation
from steersman.controllers.horizontalpodautoscaler.proposals import InvalidMetric, Proposal, Target, propose
from steersman.controllers.horizontalpodautoscaler.replica_calculator import ReplicaCalculator, Tolerance
from steersman.controllers.horizontalpodautoscaler.scale_client import Scale
from steersman.controllers.horizontalpodautoscaler.status import (
    Desired,
    Result,
    has_condition,
    with_condition,
)
from steersman.intent.actions import Emit

ABOVE_MAX = "Current number of replicas above Spec.MaxReplicas"
BELOW_MIN = "Current number of replicas below Spec.MinReplicas"


async def compute_desired(
    seen: Observation, scale: Scale, status: HorizontalPodAutoscalerStatus, now: datetime, config: Config
) -> Desired | Result:
    """Computes the desired replicas from metrics, stabilization window and scaling policies."""
    autoscaler, current = seen.autoscaler, scale.replicas
    pods = await _select_pods(seen, scale, status, now)
    if isinstance(pods, Result):
        return pods
    calculator = ReplicaCalculator(
        pods=pods,
        replicas=current,
        tolerance=_tolerance(autoscaler, config),
        now=now,
        cpu_initialization_period=config.cpu_initialization_period,
        initial_readiness_delay=config.initial_readiness_delay,
        pod_level_resources=config.pod_level_resources,
    )
    target = Target(
        autoscaler.metadata.namespace,
        scale.selector,
        scale.status_replicas,
        calculator,
        CustomMetrics(seen.memory.custom_metrics, await seen.memory.discover(now), now),
    )
    proposals, invalid = await _propose_all(autoscaler, target)
    metrics = tuple({"type": ""} if proposal is None else proposal.status for proposal in proposals)
    status = replace(status, currentMetrics=metrics)
    recommended, name = 0, ""
    for proposal in proposals:
        if proposal is not None and (not recommended or proposal.replicas > recommended):
            recommended, name = proposal.replicas, proposal.name
    if invalid and (len(invalid) == len(proposals) or recommended < current):
        first, count = invalid[0], f"{len(invalid)} invalid out of {len(proposals)}"
        message = f"the HPA was unable to compute the replica count: {first.cause}"
        status = with_condition(status, now, "ScalingActive", False, first.reason, message)
        why = f"invalid metrics ({count}), first error is: {first}"
        await Emit(autoscaler, "Warning", "FailedComputeMetricsReplicas", why)
        return Result(status, why, error="internal", failed=True)
    message = f"the HPA was able to successfully calculate a replica count from {name}"
    status = with_condition(status, now, "ScalingActive", True, "ValidMetricFound", message)
    return _normalize(seen, current, recommended, name, status, now, config, partly_invalid=bool(invalid))


async def _select_pods(
    seen: Observation, scale: Scale, status: HorizontalPodAutoscalerStatus, now: datetime
) -> tuple[Pod, ...] | Result:
    """The pods of the target. Pods that two autoscalers select are an error."""
    autoscaler = seen.autoscaler

    async def fail(event_reason: str, reason: str, event: str, message: str) -> Result:
        await Emit(autoscaler, "Warning", event_reason, event)
        failed = with_condition(status, now, "ScalingActive", False, reason, message)
        await Emit(autoscaler, "Warning", "FailedComputeMetricsReplicas", event)
        return Result(replace(failed, currentMetrics=None), event, error="internal", failed=True)

    if not scale.selector:
        message = "the HPA target's scale is missing a selector"
        return await fail("SelectorRequired", "InvalidSelector", "selector is required", message)
    try:
        selector = parse_selector(scale.selector)
    except ValueError as error:
        why = f"couldn't convert selector into a corresponding internal selector object: {error}"
        return await fail("InvalidSelector", "InvalidSelector", why, why)
    memory = seen.memory
    memory.keep_selector(autoscaler, selector)
    pods = tuple(pod for pod in seen.pods if selector.matches(pod.metadata.labels))
    overlapping = [
        other.key
        for other in seen.others
        if (one := memory.selector(other)) is not None
        and any(one.matches(pod.metadata.labels) for pod in pods)
    ]
    if overlapping:
        keys = " ".join(map(str, sorted([autoscaler.key, *overlapping])))
        why = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{keys}]"
        return await fail("AmbiguousSelector", "AmbiguousSelector", why, why)
    return pods


async def _propose_all(
    autoscaler: HorizontalPodAutoscaler, target: Target
) -> tuple[tuple[Proposal | None, ...], tuple[InvalidMetric, ...]]:
    """The proposal of each metric, None for an invalid one; and why those are invalid."""
    proposals: list[Proposal | None] = []
    invalid: list[InvalidMetric] = []
    for metric in autoscaler.spec.metrics:
        try:
            async with monitor.computation(metric.type) as timed:
                proposal = await propose(target, metric)
                timed.labels["action"] = monitor.scale_action(
                    autoscaler.status.currentReplicas, proposal.replicas
                )
            proposals.append(proposal)
        except InvalidMetric as error:
            await Emit(autoscaler, "Warning", error.reason, error.cause)
            invalid.append(error)
            proposals.append(None)
    return tuple(proposals), tuple(invalid)


def _normalize(
    seen: Observation,
    current: int,
    recommended: int,
    name: str,
    status: HorizontalPodAutoscalerStatus,
    now: datetime,
    config: Config,
    *,
    partly_invalid: bool,
) -> Desired:
    """Applies the stabilization window, the scaling policies and the bounds to a recommendation."""
    autoscaler, spec = seen.autoscaler, seen.autoscaler.spec
    history, minimum = seen.memory.history(autoscaler), min_replicas(autoscaler)
    reason = ""
    if recommended > current:
        reason = f"{name} above target"
    elif recommended < current:
        reason = "All metrics below target"
    rate_limit = (
        normalize if spec.behavior is None else partial(normalize_with_behavior, behavior=spec.behavior)
    )
    normalized = rate_limit(
        history,
        current=current,
        desired=recommended,
        minimum=minimum,
        maximum=spec.maxReplicas,
        now=now,
        window=config.downscale_stabilization,
    )
    seen.memory.keep(autoscaler, normalized.history)
    status = with_condition(status, now, "AbleToScale", True, *normalized.able_to_scale)
    status = with_condition(status, now, "ScalingLimited", *normalized.scaling_limited)
    replicas = normalized.replicas
    if not current and minimum and has_condition(status, "ScaledToZero") and replicas < minimum:
        replicas, reason = minimum, reason or BELOW_MIN
    return Desired(replicas, reason, status, "internal" if partly_invalid else "none")


def min_replicas(autoscaler: HorizontalPodAutoscaler) -> int:
    return 1 if autoscaler.spec.minReplicas is None else autoscaler.spec.minReplicas


def has_object_or_external_metric(autoscaler: HorizontalPodAutoscaler) -> bool:
    return any(metric.type in ("Object", "External") for metric in autoscaler.spec.metrics)


def _tolerance(autoscaler: HorizontalPodAutoscaler, config: Config) -> Tolerance:
    def of(rules: HPAScalingRules | None) -> float:
        if rules is None or rules.tolerance is None:
            return config.tolerance
        return float(Quantity.parse(rules.tolerance))

    behavior = autoscaler.spec.behavior
    if behavior is None or not config.configurable_tolerance:
        return Tolerance(config.tolerance, config.tolerance)
    return Tolerance(scale_down=of(behavior.scaleDown), scale_up=of(behavior.scaleUp))
