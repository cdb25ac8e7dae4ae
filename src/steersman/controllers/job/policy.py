"""What a Job's policies make of a pod that failed, and of the indexes that succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman.api.kinds import (
    Condition,
    ContainerStatus,
    Job,
    OnExitCodes,
    OnPodCondition,
    Pod,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from steersman.controllers.job.indexes import Indexes


class Ruling(NamedTuple):
    """What is to be done about a failure."""

    action: str = ""
    """``FailJob``, ``FailIndex``, ``Ignore`` or ``Count``; empty where no rule is about it."""
    message: str = ""
    """Why the Job fails, where it does."""

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


COUNTED = Ruling()
_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")


def ruling(job: Job, pod: Pod) -> Ruling:
    """The first rule about how this pod failed decides; without one, it counts."""
    policy = job.spec.podFailurePolicy
    for number, rule in enumerate((policy.rules or ()) if policy is not None else ()):
        why = _why(rule, pod)
        # An action nobody knows is passed over, as if its rule were about something else.
        if why and rule.action in _ACTIONS:
            message = f"{why} matching {rule.action} rule at index {number}"
            return Ruling(rule.action, message if rule.action == "FailJob" else "")
    return COUNTED


def _why(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """What it is about the pod that a rule is about; empty where it is not."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.onExitCodes is not None:
        statuses = (*pod.status.containerStatuses, *pod.status.initContainerStatuses)
        status = _exited(statuses, rule.onExitCodes)
        if status is not None and status.state.terminated is not None:
            code = status.state.terminated.exitCode
            return f"Container {status.name} for pod {where} failed with exit code {code}"
    elif rule.onPodConditions:
        condition = _shown(pod.status.conditions, rule.onPodConditions)
        if condition is not None:
            return f"Pod {where} has condition {condition.type}"
    return ""


def _exited(statuses: Iterable[ContainerStatus], wanted: OnExitCodes) -> ContainerStatus | None:
    for status in statuses:
        ended = status.state.terminated
        if ended is None or ended.exitCode == 0:
            continue
        if wanted.containerName is not None and wanted.containerName != status.name:
            continue
        listed = ended.exitCode in (wanted.values or ())
        if wanted.operator == ("In" if listed else "NotIn"):
            return status
    return None


def _shown(conditions: Iterable[Condition], wanted: Iterable[OnPodCondition]) -> Condition | None:
    patterns = [(one.type, one.status) for one in wanted]
    for condition in conditions:
        if (condition.type, condition.status) in patterns:
            return condition
    return None


# -- success --------------------------------------------------------------------------------------


def success(job: Job, completions: int, done: Indexes) -> str:
    """Which rule of the success policy is met, in upstream's words; empty where none is."""
    policy = job.spec.successPolicy
    if policy is None or not done:
        return ""
    for number, rule in enumerate(policy.rules or ()):
        if _met(rule, completions, done):
            return f"Matched rules at index {number}"
    return ""


def _met(rule: SuccessPolicyRule, completions: int, done: Indexes) -> bool:
    wanted = rule.succeededCount
    if rule.succeededIndexes is None:
        return wanted is not None and len(done) >= wanted
    listed = Indexes.parse(rule.succeededIndexes, completions)
    if not listed:
        return False
    shared = listed.shared(done)
    return shared == len(listed) or (wanted is not None and shared >= wanted)
