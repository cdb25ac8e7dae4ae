"""Heartbeats of nodes: the rows of upstream's TestMonitorNodeHealthUpdateStatus, …WithLease and TestTryUpdateNodeHealth."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from steersman.api.kinds import Lease
from steersman.api.kinds.nodes import Node
from steersman.controllers.nodelifecycle.health import (
    Health,
    Timing,
    deadline,
    observe_heartbeats,
    ready_status,
    unknown_conditions,
)
from steersman.intent.verdict import Wake
from tests.harness.node_rounds import LONG_AGO, NOW, Rounds, condition, lease, node, pod

HOUR = timedelta(hours=1)
NEVER = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.", LONG_AGO)
STOPPED = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", NOW)
ALL_NEVER = dict.fromkeys(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), NEVER)
Conditions = dict[str, tuple[str, str, str, datetime | None]]


def conditions_of(found: Node) -> Conditions:
    return {
        each.type: (each.status, each.reason, each.message, each.lastHeartbeatTime)
        for each in found.status.conditions
    }


DISK = (condition("DiskPressure", "False", NOW),)
DISK_LATER = (condition("DiskPressure", "False", NOW + HOUR),)


@pytest.mark.parametrize(
    ("first", "renewed", "later", "renewed_later", "written", "pods_updated"),
    [
        pytest.param(node(ready=None), None, None, None, ALL_NEVER, False, id="old, never a status"),
        pytest.param(node(ready=None, created=NOW), None, None, None, None, False, id="new, no status yet"),
        pytest.param(
            node(), None, node(), None, {**ALL_NEVER, "Ready": STOPPED}, True, id="status of an hour ago"
        ),
        pytest.param(node(), None, None, None, None, False, id="status posted just now"),
        pytest.param(
            node(ready=None, created=NOW), NOW, None, None, None, False, id="new, no status, renewed lease"
        ),
        pytest.param(
            node(ready=None),
            NOW,
            node(ready=None),
            NOW + HOUR,
            None,
            False,
            id="old, no status, renewed lease",
        ),
        pytest.param(
            node(ready=None), NOW, node(ready=None), NOW, ALL_NEVER, False, id="old, no status, old lease"
        ),
        pytest.param(
            node(conditions=DISK),
            NOW,
            node(conditions=DISK),
            NOW + HOUR,
            None,
            False,
            id="old status, renewed lease",
        ),
        pytest.param(
            node(conditions=DISK),
            NOW,
            node(heartbeat=NOW + HOUR, conditions=DISK_LATER),
            NOW,
            None,
            False,
            id="new status, old lease",
        ),
        pytest.param(
            node(), NOW, node(), NOW, {**ALL_NEVER, "Ready": STOPPED}, True, id="old status and old lease"
        ),
        pytest.param(
            node(conditions=DISK),
            NOW,
            node(conditions=DISK),
            NOW,
            {**ALL_NEVER, "Ready": STOPPED, "DiskPressure": STOPPED},
            True,
            id="every condition the kubelet posted is Unknown",
        ),
        pytest.param(
            node(conditions=(condition("NetworkUnavailable", "False", NOW),)),
            None,
            node(conditions=(condition("NetworkUnavailable", "False", NOW),)),
            None,
            {**ALL_NEVER, "Ready": STOPPED, "NetworkUnavailable": ("False", "", "", NOW)},
            True,
            id="NetworkUnavailable is not the kubelet's",
        ),
        pytest.param(
            node(ready="False"),
            None,
            node(ready="False"),
            None,
            {**ALL_NEVER, "Ready": STOPPED},
            False,
            id="a node that was not ready before",
        ),
    ],
)
def test_conditions_are_unknown_when_neither_lease_nor_status_is_renewed(
    first: Node,
    renewed: datetime | None,
    later: Node | None,
    renewed_later: datetime | None,
    written: Conditions | None,
    pods_updated: bool,
) -> None:
    rounds = Rounds(first, pod(), *([lease(renewed)] if renewed else ()))
    rounds.health()
    if later is not None:
        rounds.later(3600)
        rounds.put(later, *([lease(renewed_later)] if renewed_later else ()))
        rounds.health()
    status = [patch for patch in rounds.patches("status") if isinstance(patch.target, Node)]
    assert len(status) == (written is not None)
    if written is not None:
        assert conditions_of(rounds.node()) == written
        assert {
            each.lastTransitionTime for each in rounds.node().status.conditions if each.status == "Unknown"
        } == {rounds.now}
    assert rounds.pod_updates == pods_updated


def test_a_write_for_a_silent_node_requires_what_was_read() -> None:
    rounds = Rounds(node())
    rounds.health()
    rounds.later(60)
    rounds.health()
    (patch,) = rounds.patches("status")
    assert patch.body["metadata"] == {"uid": "node0", "resourceVersion": "1"}


def test_conditions_that_are_unknown_already_keep_their_reason_and_time() -> None:
    before = condition("MemoryPressure", "Unknown", LONG_AGO, reason="Other", message="other")
    found = unknown_conditions(node(conditions=(before,)), NOW)
    assert [each["type"] for each in found] == ["Ready", "DiskPressure", "PIDPressure"]


@pytest.mark.parametrize("old", [False, True], ids=["within grace", "after grace"])
@pytest.mark.parametrize(
    ("status", "silent"),
    [("True", "Unknown"), ("False", "Unknown"), ("Unknown", "Unknown"), (None, "Unknown")],
)
def test_the_status_after_the_grace_period_is_unknown_whatever_it_was(
    status: str | None, silent: str, old: bool
) -> None:
    created = NOW - timedelta(days=365) if old else NOW
    rounds = Rounds(node(ready=status, created=created, heartbeat=created))
    rounds.health()
    if old:
        rounds.later(60)
        rounds.health()
    assert ready_status(rounds.node()) == (silent if old else status or "")


# -- which heartbeats were observed ---------------------------------------------------------------

BEFORE = Health(probed=100.0, has_ready=True, heartbeat=NOW, renewed=NOW)


@pytest.mark.parametrize(
    ("before", "found", "renewed", "probed"),
    [
        pytest.param(None, node(), None, 500.0, id="first seen with a status"),
        pytest.param(
            None, node(ready=None, created=NOW), None, 490.0, id="first seen without: since created"
        ),
        pytest.param(None, node(ready=None, created=NOW), NOW, 500.0, id="first seen with a lease"),
        pytest.param(BEFORE, node(), NOW, 100.0, id="nothing new"),
        pytest.param(BEFORE, node(heartbeat=NOW + HOUR), NOW, 500.0, id="new heartbeat"),
        pytest.param(BEFORE, node(heartbeat=NOW - HOUR), NOW, 500.0, id="another heartbeat, earlier"),
        pytest.param(BEFORE, node(), NOW + HOUR, 500.0, id="renewed lease"),
        pytest.param(BEFORE, node(), NOW - HOUR, 100.0, id="lease went back in time"),
        pytest.param(BEFORE, node(), None, 100.0, id="lease deleted"),
        pytest.param(BEFORE, node(ready=None), NOW, 500.0, id="ready condition removed"),
        pytest.param(Health(100.0, False, None, NOW), node(), NOW, 500.0, id="ready condition appeared"),
        pytest.param(
            Health(100.0, False, None, None), node(ready=None), None, 100.0, id="still without a status"
        ),
        pytest.param(Health(100.0, True, NOW, None), node(), NOW, 500.0, id="lease appeared"),
        pytest.param(BEFORE, node(ready="False"), NOW, 100.0, id="another status without a heartbeat"),
    ],
)
def test_a_heartbeat_counts_from_the_moment_it_is_observed(
    before: Health | None, found: Node, renewed: datetime | None, probed: float
) -> None:
    seen: Lease | None = lease(renewed) if renewed is not None else None
    health = observe_heartbeats(before, found, seen, 500.0, NOW + timedelta(seconds=10))
    assert health.probed == probed


def test_the_latest_renewal_is_remembered_when_the_lease_goes_away() -> None:
    health = observe_heartbeats(BEFORE, node(), None, 500.0, NOW)
    again = observe_heartbeats(health, node(), lease(NOW), 600.0, NOW)
    assert again.probed == 100.0, "the same renewal is no heartbeat"


@pytest.mark.parametrize(
    ("probed", "has_ready", "period", "grace", "due"),
    [
        (1000.0, True, 5.0, 50.0, 1050.0),
        (1000.1, True, 5.0, 50.0, 1055.0),
        (1004.9, True, 5.0, 50.0, 1055.0),
        (1005.0, True, 5.0, 50.0, 1055.0),
        (1000.0, False, 5.0, 50.0, 1060.0),
        (1000.0, True, 5.0, 52.0, 1055.0),
        (1003.0, True, 7.0, 50.0, 1063.0),
        (1003.0, True, 0.5, 2.0, 1005.0),
        (1003.0, True, 0.0, 50.0, 1053.0),
        (940.0, True, 5.0, 50.0, 990.0),
    ],
)
def test_a_node_is_silent_from_the_first_look_after_its_grace_period(
    probed: float, has_ready: bool, period: float, grace: float, due: float
) -> None:
    health = Health(probed, has_ready, None, None)
    assert deadline(health, Timing(grace, 60.0, period), 1000.0) == pytest.approx(due)


def test_flags_set_the_grace_periods() -> None:
    flags: dict[str, Any] = {"node-monitor-grace-period": 4.0, "node-monitor-period": 1.0}
    rounds = Rounds(node(), **flags)
    rounds.health()
    rounds.later(3.9)
    rounds.health()
    assert ready_status(rounds.node()) == "True"
    rounds.later(0.1)
    rounds.health()
    assert ready_status(rounds.node()) == "Unknown"


@pytest.mark.parametrize("began", [0.0, 0.1, 1 / 3, 50.02877, 12345.678901234])
def test_a_node_that_waits_for_its_deadline_is_silent_when_it_has_come(began: float) -> None:
    rounds = Rounds(node())
    rounds.later(began)
    rounds.health()
    rounds.later(1.2345678901)
    rounds.status("node0", "True", NOW)
    for _ in range(2):
        verdict = rounds.health()
        if isinstance(verdict, Wake):
            assert verdict.after, "a wait never takes no time at all"
            rounds.later(verdict.after.total_seconds())
    assert ready_status(rounds.node()) == "Unknown"
