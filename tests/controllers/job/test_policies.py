"""Pod failure policy and success policy."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.kinds import (
    Condition,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Job,
    JobSpec,
    ObjectMeta,
    OnExitCodes,
    OnPodCondition,
    Pod,
    PodFailurePolicy,
    PodFailurePolicyRule,
    PodStatus,
    SuccessPolicy,
    SuccessPolicyRule,
)
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.policies import FailureMatch, match_failure_policy, match_success_policy


def failed(*codes: int | None, init: int | None = None, conditions: tuple[Condition, ...] = ()) -> Pod:
    def status(name: str, code: int | None) -> ContainerStatus:
        ended = None if code is None else ContainerStateTerminated(exitCode=code)
        return ContainerStatus(name=name, state=ContainerState(terminated=ended))

    return Pod(
        metadata=ObjectMeta(name="p", namespace="d"),
        status=PodStatus(
            phase="Failed",
            conditions=conditions,
            containerStatuses=tuple(status(f"c{n}", code) for n, code in enumerate(codes)),
            initContainerStatuses=() if init is None else (status("i0", init),),
        ),
    )


def job(*rules: PodFailurePolicyRule) -> Job:
    return Job(spec=JobSpec(podFailurePolicy=PodFailurePolicy(rules=rules)))


def exits(action: str, operator: str, *values: int, container: str | None = None) -> PodFailurePolicyRule:
    codes = OnExitCodes(containerName=container, operator=operator, values=values)
    return PodFailurePolicyRule(action=action, onExitCodes=codes)


def shows(action: str, type_: str, status: str = "True") -> PodFailurePolicyRule:
    return PodFailurePolicyRule(action=action, onPodConditions=(OnPodCondition(type=type_, status=status),))


DISRUPTED = Condition(type="DisruptionTarget", status="True")
FAIL_42 = "Container c0 for pod d/p failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rules", "pod", "action", "message"),
    [
        ((), failed(1), "", ""),
        ((exits("FailJob", "In", 1, 42),), failed(42), "FailJob", FAIL_42),
        ((exits("FailJob", "In", 1, 42),), failed(2), "", ""),
        ((exits("Ignore", "NotIn", 1, 42),), failed(2), "Ignore", ""),
        ((exits("Ignore", "NotIn", 1, 42),), failed(42), "", ""),
        ((exits("Ignore", "NotIn", 1),), failed(0, None), "", ""),
        ((exits("FailIndex", "In", 7, container="c1"),), failed(7, 7), "FailIndex", ""),
        ((exits("FailIndex", "In", 7, container="c1"),), failed(7, 1), "", ""),
        ((exits("Count", "In", 7),), failed(0, init=7), "Count", ""),
        ((shows("Ignore", "DisruptionTarget"),), failed(137, conditions=(DISRUPTED,)), "Ignore", ""),
        ((shows("Ignore", "DisruptionTarget", "False"),), failed(137, conditions=(DISRUPTED,)), "", ""),
        (
            (shows("Count", "Other"), shows("FailJob", "DisruptionTarget")),
            failed(1, conditions=(DISRUPTED,)),
            "FailJob",
            "Pod d/p has condition DisruptionTarget matching FailJob rule at index 1",
        ),
        ((exits("Ignore", "In", 3), exits("FailJob", "In", 3)), failed(3), "Ignore", ""),
        ((exits("Dance", "In", 3), exits("Ignore", "In", 3)), failed(3), "Ignore", ""),
    ],
)
def test_the_first_rule_about_a_failure_decides(
    rules: tuple[PodFailurePolicyRule, ...], pod: Pod, action: str, message: str
) -> None:
    assert match_failure_policy(job(*rules), pod) == FailureMatch(action, message)


def test_without_a_policy_every_failure_counts() -> None:
    assert match_failure_policy(Job(), failed(1)).counts
    assert not match_failure_policy(job(exits("Ignore", "In", 1)), failed(1)).counts


@pytest.mark.parametrize(
    ("rules", "done", "said"),
    [
        ([{"succeededCount": 2}], (0,), ""),
        ([{"succeededCount": 2}], (0, 7), "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2-3"}], (0, 2), ""),
        ([{"succeededIndexes": "0,2-3"}], (0, 1, 2, 3), "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2-3", "succeededCount": 2}], (0, 3), "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2-3", "succeededCount": 2}], (1, 3), ""),
        ([{"succeededIndexes": "nonsense", "succeededCount": 1}], (1, 3), ""),
        ([{"succeededIndexes": "9"}, {"succeededIndexes": "1"}], (1,), "Matched rules at index 1"),
        ([{"succeededCount": 0}], (), ""),
    ],
)
def test_when_enough_has_succeeded(rules: list[dict[str, Any]], done: tuple[int, ...], said: str) -> None:
    policy = SuccessPolicy(rules=tuple(SuccessPolicyRule(**rule) for rule in rules))
    assert match_success_policy(Job(spec=JobSpec(successPolicy=policy)), 10, Indexes.of(done)) == said
