"""Pod failure policy and success policy: the rule that a failed pod, or the succeeded indexes, match."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

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


class FailureMatch(msgspec.Struct, frozen=True):
    """The action of the rule that a failed pod matches."""

    action: str = ""
    """``FailJob``, ``FailIndex``, ``Ignore`` or ``Count``; empty where no rule matches."""
    message: str = ""
    """Why the Job fails; empty unless the action is ``FailJob``."""

    @property
    def counts(self) -> bool:
        """Whether the failure counts against the backoff limit."""
        return self.action != "Ignore"


NO_MATCH = FailureMatch()
_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")


def match_failure_policy(job: Job, pod: Pod) -> FailureMatch:
    """The first rule of the pod failure policy that a failed pod matches; without one, the failure counts."""
    policy = job.spec.podFailurePolicy
    for number, rule in enumerate((policy.rules or ()) if policy is not None else ()):
        cause = _match(rule, pod)
        # A rule with an unknown action is ignored.
        if cause and rule.action in _ACTIONS:
            message = f"{cause} matching {rule.action} rule at index {number}"
            return FailureMatch(rule.action, message if rule.action == "FailJob" else "")
    return NO_MATCH


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """The exit code or condition of the pod that a rule matches, as text; empty where it does not match."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.onExitCodes is not None:
        statuses = (*pod.status.containerStatuses, *pod.status.initContainerStatuses)
        status = _match_exit_codes(statuses, rule.onExitCodes)
        if status is not None and status.state.terminated is not None:
            code = status.state.terminated.exitCode
            return f"Container {status.name} for pod {name} failed with exit code {code}"
    elif rule.onPodConditions:
        condition = _match_conditions(pod.status.conditions, rule.onPodConditions)
        if condition is not None:
            return f"Pod {name} has condition {condition.type}"
    return ""


def _match_exit_codes(
    statuses: Iterable[ContainerStatus], requirement: OnExitCodes
) -> ContainerStatus | None:
    for status in statuses:
        terminated = status.state.terminated
        if terminated is None or terminated.exitCode == 0:
            continue
        if requirement.containerName is not None and requirement.containerName != status.name:
            continue
        listed = terminated.exitCode in (requirement.values or ())
        if requirement.operator == ("In" if listed else "NotIn"):
            return status
    return None


def _match_conditions(
    conditions: Iterable[Condition], patterns: Iterable[OnPodCondition]
) -> Condition | None:
    wanted = [(pattern.type, pattern.status) for pattern in patterns]
    for condition in conditions:
        if (condition.type, condition.status) in wanted:
            return condition
    return None


# -- success policy -------------------------------------------------------------------------------


def match_success_policy(job: Job, completions: int, succeeded: Indexes) -> str:
    """The message for the first rule of the success policy that is met; empty where none is."""
    policy = job.spec.successPolicy
    if policy is None or not succeeded:
        return ""
    for number, rule in enumerate(policy.rules or ()):
        if _is_met(rule, completions, succeeded):
            return f"Matched rules at index {number}"
    return ""


def _is_met(rule: SuccessPolicyRule, completions: int, succeeded: Indexes) -> bool:
    count = rule.succeededCount
    if rule.succeededIndexes is None:
        return count is not None and len(succeeded) >= count
    listed = Indexes.parse(rule.succeededIndexes, completions)
    if not listed:
        return False
    common = listed.intersection_size(succeeded)
    return common == len(listed) or (count is not None and common >= count)
