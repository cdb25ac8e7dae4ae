"""Evictions: budgets are asked, spent and, in a dry run, left alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound, ServerError, TooManyRequests
from steersman.api.generated.core_v1 import PodCondition, PodStatus
from steersman.api.generated.policy_v1 import Eviction, PodDisruptionBudgetStatus
from steersman.server.auth.users import ADMIN
from steersman.server.codec.convert import to_struct
from steersman.server.rest.perform import perform
from steersman.server.rest.request import Request

BUDGETS = "poddisruptionbudgets.policy"


def running(ask: Any, name: str = "p", phase: str = "Running", ready: bool = True) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    ask.create("pods", {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": spec})
    conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
    status = PodStatus(phase=phase, conditions=conditions)
    ask.server.rewrite(ask.resource("pods"), "default", name, lambda old: replace(old, status=status))


def budget(ask: Any, name: str = "b", policy: str | None = None, **status: Any) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 1, "unhealthyPodEvictionPolicy": policy}
    ask.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    told = PodDisruptionBudgetStatus(**{"observedGeneration": 1, **status})
    ask.server.rewrite(ask.resource(BUDGETS), "default", name, lambda old: replace(old, status=told))


def evicted(ask: Any, name: str = "p", **options: Any) -> bool:
    """Whether the pod is gone."""
    body = {"metadata": {"name": name}, "deleteOptions": options}
    request = Request(ADMIN, "create", ask.resource("pods"), "default", name, "eviction")
    perform(ask.server, request, to_struct(Eviction, body))
    try:
        ask.get("pods", name)
    except NotFound:
        return True
    return False


def test_a_disruption_is_spent_and_recorded(ask: Any) -> None:
    running(ask)
    budget(ask, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert evicted(ask)
    status = ask.get(BUDGETS, "b").status
    assert status.disruptionsAllowed == 0
    assert list(status.disruptedPods) == ["p"]


def test_a_dry_run_spends_and_deletes_nothing(ask: Any) -> None:
    running(ask)
    budget(ask, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert not evicted(ask, dryRun=["All"])
    assert ask.get(BUDGETS, "b").status.disruptionsAllowed == 1


@pytest.mark.parametrize(
    ("status", "cause", "retry"),
    [
        (
            {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1},
            "The disruption budget b needs 1 healthy pods and has 1 currently",
            None,
        ),
        (
            {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 1},
            "The disruption budget b does not allow evicting pods currently",
            None,
        ),
        (
            {"observedGeneration": 0, "disruptionsAllowed": 1},
            "The disruption budget b is still being processed by the server.",
            10.0,
        ),
    ],
)
def test_a_budget_without_room_refuses_also_dry_runs(
    ask: Any, status: Any, cause: str, retry: float | None
) -> None:
    running(ask)
    budget(ask, **status)
    tries: tuple[dict[str, Any], ...] = ({}, {"dryRun": ["All"]})
    for options in tries:
        with pytest.raises(TooManyRequests) as caught:
            evicted(ask, **options)
        error = caught.value
        assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert [(each.reason, each.message) for each in error.causes] == [("DisruptionBudget", cause)]
        assert error.retry_after == retry


def test_two_budgets_are_one_too_many(ask: Any) -> None:
    running(ask)
    for name in ("a", "b"):
        budget(ask, name, disruptionsAllowed=1)
    with pytest.raises(ServerError, match="more than one PodDisruptionBudget"):
        evicted(ask)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_a_pod_that_does_not_run_is_evicted_freely(ask: Any, phase: str) -> None:
    running(ask, phase=phase)
    budget(ask, disruptionsAllowed=0)
    assert evicted(ask)


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [
        (None, 1, True),
        (None, 0, False),
        ("IfHealthyBudget", 1, True),
        ("IfHealthyBudget", 0, False),
        ("AlwaysAllow", 0, True),
    ],
)
def test_an_unhealthy_pod_goes_where_the_policy_lets_it(
    ask: Any, policy: str | None, healthy: int, goes: bool
) -> None:
    running(ask, ready=False)
    budget(ask, policy=policy, disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=1)
    try:
        assert evicted(ask) is goes
    except ApiError as error:
        assert (error.code, goes) == (429, False)  # noqa: PT017
