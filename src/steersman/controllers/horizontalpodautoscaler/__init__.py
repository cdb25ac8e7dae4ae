"""horizontal-pod-autoscaler (a service): as many replicas as metrics ask for, within bounds and not too fast.

Every fifteen seconds each autoscaler reads the scale of its target and its metrics. Every metric proposes a
number; the largest counts. What was recommended and changed lately is remembered while the manager leads.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api.discovery import Discovered
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.api.label_selectors import Selector, parse_selector
from steersman.api.meta import truncate
from steersman.api.quantity import Quantity
from steersman.api.scheme import Key
from steersman.controllers.horizontalpodautoscaler.behavior import History, longest, plain, ruled
from steersman.controllers.horizontalpodautoscaler.proposals import Failure, Given, propose
from steersman.controllers.horizontalpodautoscaler.replica_calculator import Tolerance, Tuning
from steersman.controllers.horizontalpodautoscaler.self_metrics import (
    DESIRED,
    METRICS,
    action,
    computation,
    of_scaler,
    reconciliation,
)
from steersman.controllers.horizontalpodautoscaler.status import Draft
from steersman.controllers.horizontalpodautoscaler.target import Misspelt, Target, Unknown, read_scale
from steersman.intent.actions import Address, Discover, Emit, Update
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch
from steersman.intent.metrics import Measure
from steersman.intent.verdict import Verdict, Wake

WORKERS = Flag("concurrent-horizontal-pod-autoscaler-syncs", 5)
PERIOD = Flag("horizontal-pod-autoscaler-sync-period", 15.0, "How often metrics are looked at.")
WINDOW = Flag(
    "horizontal-pod-autoscaler-downscale-stabilization",
    300.0,
    "For how long a higher recommendation keeps replicas from going down.",
)
INITIALIZATION = Flag(
    "horizontal-pod-autoscaler-cpu-initialization-period",
    300.0,
    "For how long after its start a pod's CPU may be that of starting.",
)
READINESS = Flag(
    "horizontal-pod-autoscaler-initial-readiness-delay",
    30.0,
    "For how long after its start a change of readiness counts as the first.",
)
TOLERANCE = Flag("horizontal-pod-autoscaler-tolerance", 0.1, "How far off the target is near enough.")
FLAGS: tuple[Flag[Any], ...] = (PERIOD, WINDOW, INITIALIZATION, READINESS, TOLERANCE)
DISCOVERED = timedelta(seconds=30)


class Seen(msgspec.Struct, frozen=True):
    scaler: HorizontalPodAutoscaler
    pods: tuple[Pod, ...]
    """Those of its namespace."""
    others: tuple[Key, ...]
    """The other autoscalers of its namespace."""


def observe(caches: Caches, key: Key) -> Seen | None:
    scaler = caches[HORIZONTALPODAUTOSCALERS].get(key)
    if scaler is None:
        return None
    others = (one.key for one in caches[HORIZONTALPODAUTOSCALERS].list(key.namespace))
    return Seen(
        scaler, tuple(caches[PODS].list(key.namespace)), tuple(other for other in others if other != key)
    )


class Memory(msgspec.Struct):
    """What a manager remembers of its autoscalers while it leads."""

    histories: dict[str, History] = field(default_factory=dict)
    selectors: dict[Key, Selector] = field(default_factory=dict)
    served: Discovered | None = None
    learned: datetime | None = None

    async def discovered(self, now: datetime) -> Discovered:
        """What is served, as of at most half a minute ago."""
        if self.served is None or self.learned is None or now - self.learned >= DISCOVERED:
            self.served, self.learned = await Discover(), now
        return self.served


class Unscaled(Exception):
    """This round changes nothing; the message says why."""

    def __init__(self, why: str, misspelt: bool = False) -> None:
        super().__init__(why)
        self.misspelt = misspelt
        """Whoever wrote the autoscaler has to mend it."""


def _autoscaler(settings: Settings) -> Controller[Seen]:
    memory = Memory()
    period = timedelta(seconds=settings[PERIOD])
    window = timedelta(seconds=settings[WINDOW])
    tuning = Tuning(
        timedelta(seconds=settings[INITIALIZATION]),
        timedelta(seconds=settings[READINESS]),
        settings.enabled("PodLevelResources"),
    )
    to_zero = settings.enabled("HPAScaleToZero")
    own_tolerance = settings.enabled("HPAConfigurableTolerance")
    near = settings[TOLERANCE]

    async def decide(seen: Seen, now: datetime) -> Verdict:
        draft = Draft(seen.scaler, truncate(now))
        async with reconciliation() as timed:
            try:
                because = await scale(seen, draft, now, timed.labels)
            except Unscaled as error:
                timed.labels["error"] = "spec" if error.misspelt else "internal"
                await draft.write()
                return Wake(period, str(error))
            await Measure(DESIRED, draft.desired, (seen.scaler.metadata.namespace, seen.scaler.metadata.name))
            await draft.write()
            return Wake(period, because)

    async def scale(seen: Seen, draft: Draft, now: datetime, labels: dict[str, str]) -> str:
        scaler = seen.scaler
        target = await look(scaler, draft, now)
        current = target.replicas
        history = memory.histories.setdefault(scaler.metadata.uid, History())
        history.begin(current, now)
        draft.current = current
        least = 1 if scaler.spec.minReplicas is None else scaler.spec.minReplicas
        most = scaler.spec.maxReplicas
        reason = ""
        if not current and not _wakes(scaler, draft, least, to_zero):
            draft.say(
                "ScalingActive",
                False,
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
            if not to_zero:
                draft.unsay("ScaledToZero")
            draft.desired = current
            draft.metrics = None
            return "its target has no replicas"
        if current > most:
            wanted, reason = most, "Current number of replicas above Spec.MaxReplicas"
            draft.metrics = None
        elif 0 < current < least:
            wanted, reason = least, "Current number of replicas below Spec.MinReplicas"
            draft.metrics = None
        else:
            wanted, reason = await measure(seen, target, draft, history, least, now, labels)
        if wanted == current:
            draft.desired = current
            return f"{current} replicas are right"
        await rescale(scaler, target, wanted, reason, draft)
        labels["action"] = action(current, wanted)
        behavior = scaler.spec.behavior
        if behavior is not None:
            rules = behavior.scaleUp if wanted > current else behavior.scaleDown
            history.changed(current, wanted, now, longest(rules))
        if to_zero:
            zero = current > 0 and not wanted and not least and _outside(scaler)
            said = ("ScaledToZero", "scaled") if zero else ("NotScaledToZero", "did not scale")
            draft.say("ScaledToZero", zero, said[0], f"the HPA controller {said[1]} the workload to zero")
        else:
            draft.unsay("ScaledToZero")
        draft.desired, draft.scaled = wanted, truncate(now)
        return f"from {current} to {wanted}: {reason}"

    async def look(scaler: HorizontalPodAutoscaler, draft: Draft, now: datetime) -> Target:
        reference = scaler.spec.scaleTargetRef
        try:
            served = await memory.discovered(now)
            target = await read_scale(reference, scaler.metadata.namespace, served)
        except (ApiError, Unknown) as error:
            why = error.message if isinstance(error, ApiError) else str(error)
            await Emit(scaler, "Warning", "FailedGetScale", why)
            message = f"the HPA controller was unable to get the target's current scale: {why}"
            draft.say("AbleToScale", False, "FailedGetScale", message)
            misspelt = isinstance(error, Misspelt)
            raise Unscaled(f"cannot read the scale of its target: {why}", misspelt) from None
        draft.say(
            "AbleToScale",
            True,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        return target

    async def chosen(seen: Seen, target: Target, draft: Draft) -> tuple[Pod, ...]:
        """The pods of the target."""
        scaler = seen.scaler
        if not target.selector:
            await fail(
                scaler,
                draft,
                "SelectorRequired",
                "selector is required",
                "the HPA target's scale is missing a selector",
            )
        try:
            selector = parse_selector(target.selector)
        except ValueError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            await fail(scaler, draft, "InvalidSelector", why, why)
        memory.selectors[scaler.key] = selector
        pods = tuple(pod for pod in seen.pods if selector.matches(pod.metadata.labels))
        rivals = [
            other
            for other in seen.others
            if (one := memory.selectors.get(other)) is not None
            and any(one.matches(pod.metadata.labels) for pod in pods)
        ]
        if rivals:
            keys = " ".join(map(str, sorted([scaler.key, *rivals])))
            why = f"pods by selector {target.selector} are controlled by multiple HPAs: [{keys}]"
            await fail(scaler, draft, "AmbiguousSelector", why, why)
        return pods

    async def fail(
        scaler: HorizontalPodAutoscaler, draft: Draft, reason: str, event: str, message: str
    ) -> None:
        await Emit(scaler, "Warning", reason, event)
        short = "InvalidSelector" if reason == "SelectorRequired" else reason
        draft.say("ScalingActive", False, short, message)
        draft.metrics = None
        await Emit(scaler, "Warning", "FailedComputeMetricsReplicas", event)
        raise Unscaled(event)

    async def measure(
        seen: Seen,
        target: Target,
        draft: Draft,
        history: History,
        least: int,
        now: datetime,
        labels: dict[str, str],
    ) -> tuple[int, str]:
        scaler, current = seen.scaler, target.replicas
        pods = await chosen(seen, target, draft)
        given = Given(
            scaler=scaler,
            pods=pods,
            selector=target.selector,
            replicas=current,
            counted=target.counted,
            tolerance=tolerance(scaler),
            tuning=tuning,
            now=now,
        )
        best, name, statuses, failures = 0, "", [], list[Failure]()
        for metric in scaler.spec.metrics:
            try:
                async with computation(metric.type) as timed:
                    served = await memory.discovered(now)
                    proposal = await propose(given, metric, served)
                    timed.labels["action"] = action(scaler.status.currentReplicas, proposal.replicas)
            except Failure as error:
                await Emit(scaler, "Warning", error.reason, error.cause)
                failures.append(error)
                statuses.append({"type": ""})
                continue
            statuses.append(proposal.status)
            if not best or proposal.replicas > best:
                best, name = proposal.replicas, proposal.name
        draft.metrics = tuple(statuses)
        if failures:
            count = f"{len(failures)} invalid out of {len(scaler.spec.metrics)}"
            why = f"invalid metrics ({count}), first error is: {failures[0]}"
            if len(failures) >= len(scaler.spec.metrics) or best < current:
                first = failures[0]
                message = f"the HPA was unable to compute the replica count: {first.cause}"
                draft.say("ScalingActive", False, first.reason, message)
                await Emit(scaler, "Warning", "FailedComputeMetricsReplicas", why)
                raise Unscaled(why)
            labels["error"] = "internal"  # it goes on with the others
        found = f"the HPA was able to successfully calculate a replica count from {name}"
        draft.say("ScalingActive", True, "ValidMetricFound", found)
        reason = ""
        if best > current:
            reason = f"{name} above target"
        elif best < current:
            reason = "All metrics below target"
        behavior, most = scaler.spec.behavior, scaler.spec.maxReplicas
        if behavior is None:
            limited = plain(history, current, best, least, most, now, window)
        else:
            limited = ruled(history, behavior, current, best, least, most, now, window)
        draft.say("AbleToScale", True, *limited.stabilized)
        draft.say("ScalingLimited", *limited.limited)
        wanted = limited.replicas
        if not current and least and draft.says("ScaledToZero") and wanted < least:
            wanted, reason = least, reason or "Current number of replicas below Spec.MinReplicas"
        return wanted, reason

    def tolerance(scaler: HorizontalPodAutoscaler) -> Tolerance:
        behavior = scaler.spec.behavior
        if behavior is None or not own_tolerance:
            return Tolerance(near, near)
        return Tolerance(_share(behavior.scaleDown, near), _share(behavior.scaleUp, near))

    async def rescale(
        scaler: HorizontalPodAutoscaler, target: Target, wanted: int, reason: str, draft: Draft
    ) -> None:
        try:
            await _put(target, wanted)
        except ApiError as error:
            message = f"New size: {wanted}; reason: {reason}; error: {error.message}"
            await Emit(scaler, "Warning", "FailedRescale", message)
            why = f"the HPA controller was unable to update the target scale: {error.message}"
            draft.say("AbleToScale", False, "FailedUpdateScale", why)
            raise Unscaled(f"cannot rescale its target: {error.message}") from None
        message = f"the HPA controller was able to update the target scale to {wanted}"
        draft.say("AbleToScale", True, "SucceededRescale", message)
        await Emit(scaler, "Normal", "SuccessfulRescale", f"New size: {wanted}; reason: {reason}")

    return Controller(
        name="horizontal-pod-autoscaler-controller",
        aliases=("horizontalpodautoscaling",),
        account="horizontal-pod-autoscaler",
        watches=(
            Watch(HORIZONTALPODAUTOSCALERS, after=settings[PERIOD], counts=of_scaler),
            Watch(PODS, to=lambda caches, change: ()),
        ),
        workers=WORKERS,
        observe=observe,
        decide=decide,
        metrics=METRICS,
    )


async def _put(target: Target, wanted: int) -> None:
    """Write the scale; once more with a fresh one where somebody wrote in between."""
    try:
        await _replace(target, wanted)
    except Conflict:
        await _replace(await target.again(), wanted)


async def _replace(target: Target, wanted: int) -> None:
    body = {**target.scale, "spec": {**(target.scale.get("spec") or {}), "replicas": wanted}}
    await Update(Address(target.kind.untyped, target.namespace, target.name), body, "scale")


def _outside(scaler: HorizontalPodAutoscaler) -> bool:
    return any(metric.type in ("Object", "External") for metric in scaler.spec.metrics)


def _wakes(scaler: HorizontalPodAutoscaler, draft: Draft, least: int, to_zero: bool) -> bool:
    """Whether a target without replicas is looked at all the same: where it was this that took them away."""
    scaled = to_zero and draft.says("ScaledToZero")
    return scaled and (bool(least) or _outside(scaler))


def _share(rules: Any, usual: float) -> float:
    if rules is None or rules.tolerance is None:
        return usual
    return Quantity.parse(rules.tolerance).nanos / 1e9


controller = replace(_autoscaler(Settings()), flags=FLAGS, configure=_autoscaler)
