"""Taints by condition and labels: the rows of upstream's TestTaintsNodeByCondition, TestSwap… and TestReconcileNodeLabels."""

from __future__ import annotations

import pytest

from steersman.api.kinds.nodes import Node, Taint
from steersman.controllers.nodelifecycle.taints import (
    needs_no_execute,
    patch_node,
    reconciled_labels,
    reconciled_taints,
    with_no_execute,
    without_no_execute,
)
from tests.harness.node_rounds import LONG_AGO, NOW, condition, keys_of, node

PREFIX = "node.kubernetes.io/"


def taint(text: str, value: str = "") -> Taint:
    key, effect = text.split(":")
    return Taint(key=PREFIX + key if "/" not in key else key, effect=effect, value=value, timeAdded=LONG_AGO)


def tainted(*taints: str, ready: str | None = "True") -> Node:
    return node(ready=ready, taints=tuple(map(taint, taints)))


@pytest.mark.parametrize(
    ("type_", "status", "wanted"),
    [
        ("NetworkUnavailable", "True", ["network-unavailable:NoSchedule"]),
        ("NetworkUnavailable", "False", []),
        ("NetworkUnavailable", "Unknown", []),
        ("MemoryPressure", "True", ["memory-pressure:NoSchedule"]),
        ("MemoryPressure", "False", []),
        ("MemoryPressure", "Unknown", []),
        ("DiskPressure", "True", ["disk-pressure:NoSchedule"]),
        ("DiskPressure", "False", []),
        ("DiskPressure", "Unknown", []),
        ("PIDPressure", "True", ["pid-pressure:NoSchedule"]),
        ("PIDPressure", "False", []),
        ("PIDPressure", "Unknown", []),
        ("Ready", "True", []),
        ("Ready", "False", ["not-ready:NoSchedule"]),
        ("Ready", "Unknown", ["unreachable:NoSchedule"]),
        ("Test", "True", []),
    ],
)
def test_a_condition_asks_for_a_taint(type_: str, status: str, wanted: list[str]) -> None:
    found = node(ready=None, conditions=(condition(type_, status, NOW),))
    taints = reconciled_taints(found, NOW)
    assert keys_of(taints) == wanted
    assert all(each.timeAdded == NOW for each in taints)


def test_several_conditions_ask_for_several_taints() -> None:
    found = node(
        ready="False",
        conditions=(condition("DiskPressure", "True", NOW), condition("PIDPressure", "True", NOW)),
        unschedulable=True,
    )
    assert keys_of(reconciled_taints(found, NOW)) == [
        "not-ready:NoSchedule",
        "disk-pressure:NoSchedule",
        "pid-pressure:NoSchedule",
        "unschedulable:NoSchedule",
    ]


@pytest.mark.parametrize(
    ("ready", "before", "after"),
    [
        ("True", ["not-ready:NoSchedule"], []),
        ("True", ["unreachable:NoSchedule"], []),
        ("True", ["unschedulable:NoSchedule"], []),
        ("True", ["memory-pressure:NoSchedule", "disk-pressure:NoSchedule"], []),
        ("True", ["not-ready:NoExecute"], []),
        ("True", ["unreachable:NoExecute", "unreachable:NoSchedule"], []),
        ("True", ["unreachable:NoExecute", "not-ready:NoExecute"], []),
        ("True", ["out-of-service:NoExecute"], ["out-of-service:NoExecute"]),
        ("True", ["example.com/a:NoSchedule"], ["example.com/a:NoSchedule"]),
        ("True", ["not-ready:PreferNoSchedule"], ["not-ready:PreferNoSchedule"]),
        ("False", ["not-ready:NoSchedule"], ["not-ready:NoSchedule"]),
        ("False", ["unreachable:NoSchedule"], ["not-ready:NoSchedule"]),
        ("Unknown", ["not-ready:NoSchedule"], ["unreachable:NoSchedule"]),
        ("Unknown", ["example.com/a:NoSchedule"], ["example.com/a:NoSchedule", "unreachable:NoSchedule"]),
        ("False", ["not-ready:NoExecute"], ["not-ready:NoExecute", "not-ready:NoSchedule"]),
        ("Unknown", ["unreachable:NoExecute"], ["unreachable:NoExecute", "unreachable:NoSchedule"]),
        ("False", ["unreachable:NoExecute"], ["not-ready:NoSchedule", "not-ready:NoExecute"]),
        ("Unknown", ["not-ready:NoExecute"], ["unreachable:NoSchedule", "unreachable:NoExecute"]),
        (
            "False",
            ["unreachable:NoExecute", "not-ready:NoExecute"],
            ["not-ready:NoExecute", "not-ready:NoSchedule"],
        ),
        (None, ["not-ready:NoSchedule"], []),
        (None, ["unreachable:NoExecute"], ["unreachable:NoExecute"]),
    ],
)
def test_taints_are_added_removed_and_swapped(ready: str | None, before: list[str], after: list[str]) -> None:
    assert keys_of(reconciled_taints(tainted(*before, ready=ready), NOW)) == after


@pytest.mark.parametrize(
    ("ready", "before", "after"),
    [
        ("Unknown", ["unreachable:NoExecute", "unreachable:NoSchedule"], ["unreachable:NoSchedule"]),
        ("False", ["unreachable:NoExecute"], ["not-ready:NoSchedule"]),
        (None, ["not-ready:NoExecute"], []),
        ("True", ["out-of-service:NoExecute"], ["out-of-service:NoExecute"]),
    ],
)
def test_a_node_begins_without_no_execute_taints(
    ready: str | None, before: list[str], after: list[str]
) -> None:
    assert keys_of(reconciled_taints(tainted(*before, ready=ready), NOW, is_new=True)) == after


def test_a_taint_that_stays_keeps_its_value_and_time() -> None:
    found = node(ready="False", taints=(taint("not-ready:NoSchedule", "why"),))
    assert reconciled_taints(found, NOW) == found.spec.taints


@pytest.mark.parametrize(
    ("ready", "before", "needed"),
    [
        ("True", [], False),
        ("False", [], True),
        ("Unknown", [], True),
        (None, [], False),
        ("False", ["not-ready:NoExecute"], False),
        ("Unknown", ["unreachable:NoExecute"], False),
        ("Unknown", ["not-ready:NoExecute"], False),
        ("Unknown", ["unreachable:NoSchedule"], True),
        ("Unknown", ["out-of-service:NoExecute"], True),
    ],
)
def test_a_node_that_is_not_ready_waits_for_a_no_execute_taint(
    ready: str | None, before: list[str], needed: bool
) -> None:
    assert needs_no_execute(tainted(*before, ready=ready)) is needed


@pytest.mark.parametrize(
    ("ready", "before", "added", "removed"),
    [
        ("Unknown", [], ["unreachable:NoExecute"], []),
        ("False", [], ["not-ready:NoExecute"], []),
        (
            "False",
            ["unreachable:NoSchedule", "unreachable:NoExecute"],
            ["unreachable:NoSchedule", "not-ready:NoExecute"],
            ["unreachable:NoSchedule"],
        ),
        (
            "Unknown",
            ["not-ready:NoExecute", "out-of-service:NoExecute"],
            ["out-of-service:NoExecute", "unreachable:NoExecute"],
            ["out-of-service:NoExecute"],
        ),
    ],
)
def test_not_ready_and_unreachable_exclude_each_other(
    ready: str, before: list[str], added: list[str], removed: list[str]
) -> None:
    found = tainted(*before, ready=ready)
    assert keys_of(with_no_execute(found, NOW)) == added
    assert keys_of(without_no_execute(found)) == removed


# -- labels ---------------------------------------------------------------------------------------

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
OLD_OS, OLD_ARCH = f"beta.{OS}", f"beta.{ARCH}"


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        ({}, {}),
        ({"topology.kubernetes.io/zone": "zone1"}, {}),
        ({OS: "linux", ARCH: "amd64"}, {OLD_OS: "linux", OLD_ARCH: "amd64"}),
        (
            {OLD_OS: "windows", OLD_ARCH: "arm", OS: "linux", ARCH: "amd64"},
            {OLD_OS: "linux", OLD_ARCH: "amd64"},
        ),
        ({OLD_OS: "linux", OLD_ARCH: "amd64", OS: "linux", ARCH: "amd64"}, {}),
        ({OLD_OS: "linux", OLD_ARCH: "amd64"}, {}),
        ({OS: "linux", OLD_ARCH: "arm"}, {OLD_OS: "linux"}),
        ({OS: "", OLD_OS: "linux"}, {OLD_OS: ""}),
    ],
)
def test_deprecated_labels_get_the_value_of_their_successor(
    labels: dict[str, str], written: dict[str, str]
) -> None:
    assert reconciled_labels(labels) == written


# -- patches --------------------------------------------------------------------------------------


def test_a_node_that_has_all_it_should_is_not_patched() -> None:
    found = tainted("example.com/a:NoSchedule")
    assert patch_node(found, found.spec.taints) is None
    assert patch_node(found, found.spec.taints, {}) is None


def test_a_patch_of_taints_requires_the_taints_that_were_read() -> None:
    found = node(taints=(taint("example.com/a:NoSchedule", "v"),))
    patch = patch_node(found, (*found.spec.taints, taint("not-ready:NoExecute")), {OLD_OS: "linux"})
    assert patch is not None
    assert patch.body == {
        "metadata": {"uid": "node0", "resourceVersion": "1", "labels": {OLD_OS: "linux"}},
        "spec": {
            "taints": [
                {
                    "key": "example.com/a",
                    "effect": "NoSchedule",
                    "value": "v",
                    "timeAdded": "2012-01-01T00:00:00Z",
                },
                {
                    "key": "node.kubernetes.io/not-ready",
                    "effect": "NoExecute",
                    "timeAdded": "2012-01-01T00:00:00Z",
                },
            ]
        },
    }
    assert patch_node(found, found.spec.taints, {OLD_OS: "linux"}) is not None
    empty = patch_node(found, ())
    assert empty is not None
    assert empty.body["spec"] == {"taints": []}
