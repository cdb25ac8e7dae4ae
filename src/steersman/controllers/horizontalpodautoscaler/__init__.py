"""horizontal-pod-autoscaler-controller (a dialogue): sets the replicas of a scale target from its metrics.

Every sync period a round reads the target's scale and the metrics. Each metric proposes a number of replicas
(`proposals`, `replica_calculator`), the largest is the recommendation. The stabilization window and the scaling
policies (`behavior`) limit it; then the scale is updated and the status is written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.autoscaling import (
    HORIZONTALPODAUTOSCALERS,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    HPAScalingRules,
)
from steersman.api.label_selectors import Selector, parse_selector
from steersman.api.meta import truncate_to_seconds
from steersman.api.quantity import Quantity
from steersman.api.scheme import Key
from steersman.controllers.horizontalpodautoscaler import monitor
from steersman.controllers.horizontalpodautoscaler.behavior import (
    History,
    longest_policy_period,
    normalize,
    normalize_with_behavior,
)
from steersman.controllers.horizontalpodautoscaler.proposals import InvalidMetric, Proposal, Target, propose
from steersman.controllers.horizontalpodautoscaler.replica_calculator import ReplicaCalculator, Tolerance
from steersman.controllers.horizontalpodautoscaler.scale_client import (
    InvalidReference,
    Scale,
    UnknownKind,
    read_scale,
    update_scale,
)
from steersman.controllers.horizontalpodautoscaler.status import (
    has_condition,
    with_condition,
    without_condition,
    write_status,
)
from steersman.intent.actions import Discover, Emit
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Verdict, Wake

WORKERS = Flag("concurrent-horizontal-pod-autoscaler-syncs", 5)
SYNC_PERIOD = Flag(
    "horizontal-pod-autoscaler-sync-period", 15.0, "The period for syncing the number of pods of autoscalers."
)
DOWNSCALE_STABILIZATION = Flag(
    "horizontal-pod-autoscaler-downscale-stabilization",
    300.0,
    "The window in which the highest recommendation is applied, so that replicas do not go down too soon.",
)
CPU_INITIALIZATION_PERIOD = Flag(
    "horizontal-pod-autoscaler-cpu-initialization-period",
    300.0,
    "The period after a pod's start in which its CPU samples may be skipped.",
)
INITIAL_READINESS_DELAY = Flag(
    "horizontal-pod-autoscaler-initial-readiness-delay",
    30.0,
    "The period after a pod's start in which a change of readiness counts as the first.",
)
TOLERANCE = Flag(
    "horizontal-pod-autoscaler-tolerance",
    0.1,
    "The change of the ratio of usage to target that is too small to scale for.",
)
FLAGS: tuple[Flag[Any], ...] = (
    SYNC_PERIOD,
    DOWNSCALE_STABILIZATION,
    CPU_INITIALIZATION_PERIOD,
    INITIAL_READINESS_DELAY,
    TOLERANCE,
)
DISCOVERY_TTL = timedelta(seconds=30)

ABOVE_MAX = "Current number of replicas above Spec.MaxReplicas"
BELOW_MIN = "Current number of replicas below Spec.MinReplicas"


class Config(msgspec.Struct, frozen=True):
    """The controller's flags and feature gates."""

    sync_period: timedelta = timedelta(seconds=SYNC_PERIOD.default)
    downscale_stabilization: timedelta = timedelta(seconds=DOWNSCALE_STABILIZATION.default)
    cpu_initialization_period: timedelta = timedelta(seconds=CPU_INITIALIZATION_PERIOD.default)
    initial_readiness_delay: timedelta = timedelta(seconds=INITIAL_READINESS_DELAY.default)
    tolerance: float = TOLERANCE.default
    pod_level_resources: bool = True
    scale_to_zero: bool = False
    configurable_tolerance: bool = True


class Memory:
    """The histories and selectors of all autoscalers, and what the server serves."""

    def __init__(self) -> None:
        self.selectors: dict[Key, Selector] = {}
        """The selector of each autoscaler's target, to find pods that two autoscalers scale."""
        self._histories: dict[Key, tuple[str, History]] = {}
        self._discovered: tuple[datetime, DiscoveryResult] | None = None

    def history(self, autoscaler: HorizontalPodAutoscaler) -> History:
        """The recommendations and scale events of an autoscaler."""
        uid, history = self._histories.get(autoscaler.key, ("", History()))
        return history if uid == autoscaler.metadata.uid else History()

    def keep(self, autoscaler: HorizontalPodAutoscaler, history: History) -> None:
        """Keeps the history of an autoscaler for its next round."""
        self._histories[autoscaler.key] = (autoscaler.metadata.uid, history)

    def forget(self, key: Key) -> None:
        """Drops a deleted autoscaler."""
        self.selectors.pop(key, None)
        self._histories.pop(key, None)

    async def discover(self, now: datetime) -> DiscoveryResult:
        """The resources the server serves, read at most 30 seconds ago."""
        if self._discovered is None or now - self._discovered[0] >= DISCOVERY_TTL:
            self._discovered = (now, await Discover())
        return self._discovered[1]


class Observation(msgspec.Struct, frozen=True):
    """An autoscaler, with the pods and the other autoscalers of its namespace."""

    autoscaler: HorizontalPodAutoscaler
    pods: tuple[Pod, ...]
    others: tuple[Key, ...]
    memory: Memory


class Desired(msgspec.Struct, frozen=True):
    """The replicas a target should have, and the status so far."""

    replicas: int
    reason: str
    status: HorizontalPodAutoscalerStatus
    error: str = "none"
    """The label ``error``: ``internal`` where some metrics are invalid and the others decided."""


class Result(msgspec.Struct, frozen=True):
    """The end of a reconciliation: the status to write, and the labels of its metrics."""

    status: HorizontalPodAutoscalerStatus
    because: str
    action: str = "none"
    error: str = "none"
    failed: bool = False


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, Memory)
    autoscaler = caches[HORIZONTALPODAUTOSCALERS].get(key)
    if autoscaler is None:
        memory.forget(key)
        return None
    keys = (one.key for one in caches[HORIZONTALPODAUTOSCALERS].list(key.namespace))
    return Observation(
        autoscaler,
        tuple(caches[PODS].list(key.namespace)),
        tuple(other for other in keys if other != key),
        memory,
    )


async def decide(seen: Observation, now: datetime, config: Config = Config()) -> Verdict:
    autoscaler = seen.autoscaler
    async with monitor.reconciliation() as timed:
        result = await _reconcile(seen, now, config)
        timed.labels.update(action=result.action, error=result.error)
        if not result.failed:
            labels = (autoscaler.metadata.namespace, autoscaler.metadata.name)
            await Measure(monitor.DESIRED_REPLICAS, result.status.desiredReplicas, labels)
        await write_status(autoscaler, result.status)
        return Wake(config.sync_period, result.because)


async def _reconcile(seen: Observation, now: datetime, config: Config) -> Result:
    autoscaler, status = seen.autoscaler, seen.autoscaler.status
    try:
        discovered = await seen.memory.discover(now)
        scale = await read_scale(autoscaler.spec.scaleTargetRef, autoscaler.metadata.namespace, discovered)
    except (ApiError, UnknownKind) as error:
        return await _failed_get_scale(autoscaler, error, now)
    message = "the HPA controller was able to get the target's current scale"
    status = with_condition(status, now, "AbleToScale", True, "SucceededGetScale", message)
    current = scale.replicas
    history = seen.memory.history(autoscaler).with_initial_recommendation(current, now)
    seen.memory.keep(autoscaler, history)
    status = replace(status, currentReplicas=current)
    minimum = _min_replicas(autoscaler)
    if not current and not _scales_from_zero(autoscaler, status, config):
        message = "scaling is disabled since the replica count of the target is zero"
        status = with_condition(status, now, "ScalingActive", False, "ScalingDisabled", message)
        if not config.scale_to_zero:
            status = without_condition(status, "ScaledToZero")
        status = replace(status, desiredReplicas=current, currentMetrics=None)
        return Result(status, "scaling disabled: target has 0 replicas")
    if current > autoscaler.spec.maxReplicas:
        desired = Desired(autoscaler.spec.maxReplicas, ABOVE_MAX, replace(status, currentMetrics=None))
    elif 0 < current < minimum:
        desired = Desired(minimum, BELOW_MIN, replace(status, currentMetrics=None))
    else:
        computed = await _compute_desired(seen, scale, status, now, config)
        if isinstance(computed, Result):
            return computed
        desired = computed
    if desired.replicas == current:
        status = replace(desired.status, desiredReplicas=current)
        return Result(status, f"{current} replicas: no change", error=desired.error)
    return await _rescale(seen, scale, desired, now, config)


async def _failed_get_scale(
    autoscaler: HorizontalPodAutoscaler, error: ApiError | UnknownKind, now: datetime
) -> Result:
    why = error.message if isinstance(error, ApiError) else str(error)
    await Emit(autoscaler, "Warning", "FailedGetScale", why)
    message = f"the HPA controller was unable to get the target's current scale: {why}"
    status = with_condition(autoscaler.status, now, "AbleToScale", False, "FailedGetScale", message)
    label = "spec" if isinstance(error, InvalidReference) else "internal"
    return Result(status, f"failed to get the target's scale: {why}", error=label, failed=True)


async def _rescale(
    seen: Observation, scale: Scale, desired: Desired, now: datetime, config: Config
) -> Result:
    """Updates the target's scale to the desired replicas."""
    autoscaler, status = seen.autoscaler, desired.status
    current, replicas = scale.replicas, desired.replicas
    size = f"New size: {replicas}; reason: {desired.reason}"
    try:
        await update_scale(scale, replicas)
    except ApiError as error:
        await Emit(autoscaler, "Warning", "FailedRescale", f"{size}; error: {error.message}")
        message = f"the HPA controller was unable to update the target scale: {error.message}"
        status = with_condition(status, now, "AbleToScale", False, "FailedUpdateScale", message)
        because = f"failed to update the target's scale: {error.message}"
        return Result(status, because, error="internal", failed=True)
    message = f"the HPA controller was able to update the target scale to {replicas}"
    status = with_condition(status, now, "AbleToScale", True, "SucceededRescale", message)
    await Emit(autoscaler, "Normal", "SuccessfulRescale", size)
    behavior = autoscaler.spec.behavior
    if behavior is not None:
        period = longest_policy_period(behavior.scaleUp if replicas > current else behavior.scaleDown)
        history = seen.memory.history(autoscaler).with_scale_event(current, replicas, now, period)
        seen.memory.keep(autoscaler, history)
    if config.scale_to_zero:
        to_zero = (
            current > 0
            and not replicas
            and not _min_replicas(autoscaler)
            and _has_object_or_external_metric(autoscaler)
        )
        reason, verb = ("ScaledToZero", "scaled") if to_zero else ("NotScaledToZero", "did not scale")
        message = f"the HPA controller {verb} the workload to zero"
        status = with_condition(status, now, "ScaledToZero", to_zero, reason, message)
    else:
        status = without_condition(status, "ScaledToZero")
    status = replace(status, desiredReplicas=replicas, lastScaleTime=truncate_to_seconds(now))
    because = f"scaled from {current} to {replicas} replicas: {desired.reason}"
    return Result(status, because, monitor.scale_action(current, replicas), desired.error)


# -- desired replicas -----------------------------------------------------------------------------


async def _compute_desired(
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
    target = Target(autoscaler.metadata.namespace, scale.selector, scale.status_replicas, calculator)
    proposals, invalid = await _propose_all(seen, target, now)
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
    selectors: Mapping[Key, Selector] = seen.memory.selectors
    seen.memory.selectors[autoscaler.key] = selector
    pods = tuple(pod for pod in seen.pods if selector.matches(pod.metadata.labels))
    overlapping = [
        other
        for other in seen.others
        if (one := selectors.get(other)) is not None and any(one.matches(pod.metadata.labels) for pod in pods)
    ]
    if overlapping:
        keys = " ".join(map(str, sorted([autoscaler.key, *overlapping])))
        why = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{keys}]"
        return await fail("AmbiguousSelector", "AmbiguousSelector", why, why)
    return pods


async def _propose_all(
    seen: Observation, target: Target, now: datetime
) -> tuple[tuple[Proposal | None, ...], tuple[InvalidMetric, ...]]:
    """The proposal of each metric, None for an invalid one; and why those are invalid."""
    autoscaler = seen.autoscaler
    proposals: list[Proposal | None] = []
    invalid: list[InvalidMetric] = []
    for metric in autoscaler.spec.metrics:
        try:
            async with monitor.computation(metric.type) as timed:
                proposal = await propose(target, metric, await seen.memory.discover(now))
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
    history, minimum = seen.memory.history(autoscaler), _min_replicas(autoscaler)
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


def _min_replicas(autoscaler: HorizontalPodAutoscaler) -> int:
    return 1 if autoscaler.spec.minReplicas is None else autoscaler.spec.minReplicas


def _has_object_or_external_metric(autoscaler: HorizontalPodAutoscaler) -> bool:
    return any(metric.type in ("Object", "External") for metric in autoscaler.spec.metrics)


def _scales_from_zero(
    autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus, config: Config
) -> bool:
    """Whether a target with 0 replicas is scaled: only where this controller scaled it to zero."""
    scaled_to_zero = config.scale_to_zero and has_condition(status, "ScaledToZero")
    return scaled_to_zero and (bool(_min_replicas(autoscaler)) or _has_object_or_external_metric(autoscaler))


def _tolerance(autoscaler: HorizontalPodAutoscaler, config: Config) -> Tolerance:
    def of(rules: HPAScalingRules | None) -> float:
        if rules is None or rules.tolerance is None:
            return config.tolerance
        return Quantity.parse(rules.tolerance).nanos / 1e9

    behavior = autoscaler.spec.behavior
    if behavior is None or not config.configurable_tolerance:
        return Tolerance(config.tolerance, config.tolerance)
    return Tolerance(scale_down=of(behavior.scaleDown), scale_up=of(behavior.scaleUp))


# -- declaration ----------------------------------------------------------------------------------


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(
        sync_period=timedelta(seconds=settings[SYNC_PERIOD]),
        downscale_stabilization=timedelta(seconds=settings[DOWNSCALE_STABILIZATION]),
        cpu_initialization_period=timedelta(seconds=settings[CPU_INITIALIZATION_PERIOD]),
        initial_readiness_delay=timedelta(seconds=settings[INITIAL_READINESS_DELAY]),
        tolerance=settings[TOLERANCE],
        pod_level_resources=settings.enabled("PodLevelResources"),
        scale_to_zero=settings.enabled("HPAScaleToZero"),
        configurable_tolerance=settings.enabled("HPAConfigurableTolerance"),
    )
    return Controller(
        name="horizontal-pod-autoscaler-controller",
        aliases=("horizontalpodautoscaling",),
        service_account="horizontal-pod-autoscaler",
        watches=(
            Watch(HORIZONTALPODAUTOSCALERS, delay=settings[SYNC_PERIOD], measures=monitor.count_autoscalers),
            Watch(PODS, to=lambda caches, change: ()),
        ),
        workers=WORKERS,
        flags=FLAGS,
        configure=configure,
        observe=observe,
        decide=partial(decide, config=config),
        memory=Memory,
        metrics=monitor.METRICS,
    )


controller = configure(DEFAULTS)
