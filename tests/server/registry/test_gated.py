"""The kinds that feature gates add: served while their gate is on, and written as kube-apiserver writes them."""

from __future__ import annotations

import json

import pytest

from steersman.api.errors import NotFound
from steersman.api.kinds.podgroups import PODGROUPS
from steersman.server import admission
from steersman.server.registry.resources import Registry
from steersman.sim.world import World
from tests.server.registry import gated

ANSWERS = json.loads(gated.ANSWERS.read_text())


@pytest.mark.parametrize("row", gated.ROWS, ids=lambda row: row.name)
def test_a_request_is_answered_as_kube_apiserver_answers_it(row: gated.Row) -> None:
    with World(seed=1, plugins=admission.default()) as world:
        world.server.registry.enable(gated.GATES)
        assert world.run(gated.answer(world.api(), "default", row)) == ANSWERS[row.name]


def test_a_kind_is_served_while_its_gate_is_on() -> None:
    registry = Registry()
    with pytest.raises(NotFound):
        registry.of(PODGROUPS)
    before = registry.generation
    registry.enable(["GenericWorkload"])
    assert registry.of(PODGROUPS).api_version == "scheduling.k8s.io/v1alpha2"
    assert registry.generation > before
    assert registry.fork().serves("scheduling.k8s.io", "v1alpha2", "podgroups")
    assert not registry.serves("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
