"""Metrics of the attach/detach controller: volumes in use, and the desired and actual state of the world."""

from __future__ import annotations

from typing import Any

from steersman.controllers.attachdetach.metrics import IN_USE, TOTAL
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from tests.harness.attach_detach import RWX, VOLUME, Rounds, claim, driver, node, pod, ready_world, volume

PLUGIN = "kubernetes.io/csi:csi.example.com"


def last(rounds: Rounds) -> dict[tuple[str, ...], float]:
    """The last value of each gauge."""
    gauges = [*rounds.measured(IN_USE), *rounds.measured(TOTAL)]
    return {labels: value for value, labels in gauges}


def test_the_volumes_in_use_are_counted_by_node_and_plugin() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(modes=(RWX,)), claim())
    rounds.put(pod("p1"), pod("p2"), pod("p3", on="n2"))
    found = last(rounds)
    assert (found["n1", PLUGIN], found["n2", PLUGIN]) == (2, 1)
    assert found[PLUGIN, "desired_state_of_world"] == 2
    rounds.delete_pod("p2")
    assert last(rounds)["n1", PLUGIN] == 1
    rounds.delete_pod("p1")
    assert last(rounds)["n1", PLUGIN] == 0


def test_volumes_of_different_drivers_are_counted_apart() -> None:
    source: dict[str, Any] = {"cinder": {"volumeID": "c"}}
    rounds = Rounds(node(), volume(), claim(), volume("c", **source), claim("c"))
    rounds.put(pod("p1"), pod("p2", pv="c"))
    found = last(rounds)
    assert (found["n1", PLUGIN], found["n1", "kubernetes.io/csi:cinder.csi.openstack.org"]) == (1, 1)


def test_a_volume_that_needs_no_attaching_is_in_use_and_not_desired() -> None:
    rounds = Rounds(node(), driver(False), volume(), claim(), pod())
    found = last(rounds)
    assert found["n1", PLUGIN] == 1
    assert (PLUGIN, "desired_state_of_world") not in found


def test_the_actual_state_follows_attachments_and_reports() -> None:
    rounds = ready_world()
    rounds.put(pod("p2"))
    assert rounds.memory.counted_nodes(VOLUME)
    rounds.delete_pod("p1")
    rounds.delete_pod("p2")
    rounds.mount("n1")
    assert last(rounds)[PLUGIN, "desired_state_of_world"] == 0
    rounds.let_go()
    assert last(rounds)[PLUGIN, "actual_state_of_world"] == 0
    assert not rounds.memory.counted_nodes(VOLUME)


def test_an_attach_is_timed_from_the_attachment_to_the_drivers_answer() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.advance(3)
    rounds.answer(error="no")
    rounds.advance(1)
    rounds.answer()
    outcomes = [(labels[1], labels[2], value) for value, labels in rounds.measured(OPERATION_SECONDS)]
    assert outcomes[0] == ("volume_attach", "fail-unknown", 3.0)
    assert outcomes[-1][:2] == ("volume_attach", "success")
