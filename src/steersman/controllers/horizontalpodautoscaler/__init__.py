"""horizontal-pod-autoscaler-controller (a dialogue): sets the replicas of a scale target from its metrics.

Every sync period a round reads the target's scale and the metrics. Each metric proposes a number of replicas
(`proposals`, `replica_calculator`), the largest is the recommendation. The stabilization window and the scaling
policies limit it (`desired_replicas`, `behavior`); then the scale is updated and the status is written once.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from msgspec.structs import replace

from steersman.api.errors import ApiError
from steersman.api.kinds import PODS
from steersman.api.kinds.autoscaling import (
    HORIZONTALPODAUTOSCALERS,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
)
from steersman.api.meta import truncate_to_seconds
from steersman.controllers.horizontalpodautoscaler import monitor
from steersman.controllers.horizontalpodautoscaler.behavior import longest_policy_period
from steersman.controllers.horizontalpodautoscaler.config import FLAGS, SYNC_PERIOD, WORKERS, Config
from steersman.controllers.horizontalpodautoscaler.desired_replicas import (
    ABOVE_MAX,
    BELOW_MIN,
    compute_desired,
    has_object_or_external_metric,
    min_replicas,
)
from steersman.controllers.horizontalpodautoscaler.observe import Memory, Observation, observe
from steersman.controllers.horizontalpodautoscaler.scale_client import (
    InvalidReference,
    Scale,
    UnknownKind,
    read_scale,
    update_scale,
)
from steersman.controllers.horizontalpodautoscaler.status import (
    Desired,
    Result,
    has_condition,
    with_condition,
    without_condition,
    write_status,
)
from steersman.intent.actions import Emit
from steersman.intent.controller import Controller, Settings, Watch
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Verdict, Wake


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
    # observedGeneration is no longer there once the scale has been read, as upstream leaves it.
    status = replace(status, currentReplicas=current, observedGeneration=None)
    minimum = min_replicas(autoscaler)
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
        computed = await compute_desired(seen, scale, status, now, config)
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
            and not min_replicas(autoscaler)
            and has_object_or_external_metric(autoscaler)
        )
        reason, verb = ("ScaledToZero", "scaled") if to_zero else ("NotScaledToZero", "did not scale")
        message = f"the HPA controller {verb} the workload to zero"
        status = with_condition(status, now, "ScaledToZero", to_zero, reason, message)
    else:
        status = without_condition(status, "ScaledToZero")
    status = replace(status, desiredReplicas=replicas, lastScaleTime=truncate_to_seconds(now))
    because = f"scaled from {current} to {replicas} replicas: {desired.reason}"
    return Result(status, because, monitor.scale_action(current, replicas), desired.error)


def _scales_from_zero(
    autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus, config: Config
) -> bool:
    """Whether a target with 0 replicas is scaled: only where this controller scaled it to zero."""
    scaled_to_zero = config.scale_to_zero and has_condition(status, "ScaledToZero")
    return scaled_to_zero and (bool(min_replicas(autoscaler)) or has_object_or_external_metric(autoscaler))


# -- declaration ----------------------------------------------------------------------------------


def configure(settings: Settings) -> Controller[Observation]:
    config = Config.of(settings)
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
