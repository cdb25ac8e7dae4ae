"""The deletion conditions of a namespace, row by row: the words and their order are upstream's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.controllers.namespace.conditions import (
    CONTENT,
    DISCOVERY,
    FINALIZERS,
    HEALTHY,
    PARSING,
    REMAINING,
    State,
    content_remaining,
    deletion_failed,
    discovery_failed,
    finalizers_remaining,
    parsing_failed,
    update_conditions,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FAILURE = State("True", "foo", "bar")


def condition(type_: str, status: str) -> dict[str, Any]:
    return {"type": type_, "status": status}


@pytest.mark.parametrize(
    ("before", "states", "order", "failing"),
    [
        ([("unknown", "True")], {}, ["unknown", DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS], []),
        ([(DISCOVERY, "True")], {}, [DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS], []),
        (
            [(PARSING, "True"), (DISCOVERY, "True")],
            {},
            [PARSING, DISCOVERY, CONTENT, REMAINING, FINALIZERS],
            [],
        ),
        (
            [(PARSING, "False"), (DISCOVERY, "True")],
            {PARSING: FAILURE},
            [PARSING, DISCOVERY, CONTENT, REMAINING, FINALIZERS],
            [PARSING],
        ),
        (
            [(DISCOVERY, "True")],
            {PARSING: FAILURE},
            [DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS],
            [PARSING],
        ),
        ([], {}, [DISCOVERY, PARSING, CONTENT, REMAINING, FINALIZERS], []),
    ],
    ids=["of another writer", "success", "another order", "failure over success", "new failure", "none"],
)
def test_conditions_keep_their_order_and_missing_ones_follow(
    before: list[tuple[str, str]], states: dict[str, State], order: list[str], failing: list[str]
) -> None:
    after = update_conditions([condition(*each) for each in before], states, NOW)
    assert [each["type"] for each in after] == order
    for each in after:
        if each["type"] == "unknown":
            assert each == condition("unknown", "True")
            continue
        state = FAILURE if each["type"] in failing else HEALTHY[each["type"]]
        assert (each["status"], each["reason"], each["message"]) == state


APPS = {("daemonsets", "apps.k8s.io"): 5, ("deployments", "apps.k8s.io"): 5}
HELD = {"service-catalog": 6, "kubedb": 5}


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        (
            content_remaining(APPS),
            "SomeResourcesRemain",
            "Some resources are remaining: daemonsets.apps.k8s.io has 5 resource instances, "
            "deployments.apps.k8s.io has 5 resource instances",
        ),
        (
            content_remaining(dict(reversed(APPS.items()))),
            "SomeResourcesRemain",
            "Some resources are remaining: daemonsets.apps.k8s.io has 5 resource instances, "
            "deployments.apps.k8s.io has 5 resource instances",
        ),
        (
            finalizers_remaining(HELD),
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: kubedb in 5 resource instances, "
            "service-catalog in 6 resource instances",
        ),
        (
            deletion_failed(["two", "one"]),
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: one, two",
        ),
        (discovery_failed("test error", 0), "DiscoveryFailed", "test error"),
        (
            discovery_failed("unable", 2),
            "DiscoveryFailed",
            "Discovery failed for some groups, 2 failing: unable",
        ),
        (
            parsing_failed(["foo//whatever"]),
            "GroupVersionParsingFailed",
            "unexpected GroupVersion string: foo//whatever",
        ),
    ],
)
def test_a_failure_has_upstreams_reason_and_message(state: State, reason: str, message: str) -> None:
    assert state == State("True", reason, message)


@pytest.mark.parametrize(
    ("type_", "reason", "message"),
    [
        (DISCOVERY, "ResourcesDiscovered", "All resources successfully discovered"),
        (PARSING, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        (CONTENT, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        (REMAINING, "ContentRemoved", "All content successfully removed"),
        (FINALIZERS, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    ],
)
def test_a_success_has_upstreams_reason_and_message(type_: str, reason: str, message: str) -> None:
    assert HEALTHY[type_] == State("False", reason, message)
