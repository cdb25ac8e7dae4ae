"""A candidate of a coordinated election, in a world whose server keeps lease candidates."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steersman.api.meta import format_micro_time
from steersman.api.scheme import Kind
from steersman.runtime.lease_candidate import CANDIDATES, RENEW, Candidate
from steersman.sim.world import World

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "leasecandidates.coordination.k8s.io",
        "annotations": {
            "api-approved.kubernetes.io": "unapproved, to have them where they are off by default"
        },
    },
    "spec": {
        "group": "coordination.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "leasecandidates", "singular": "leasecandidate", "kind": "LeaseCandidate"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
DEFINITIONS: Kind[dict[str, Any]] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)


def candidate(world: World) -> Candidate:
    return Candidate(
        world.api("manager"),
        world,
        name="host-1",
        namespace="kube-system",
        lease="kube-controller-manager",
        binary="1.36.4",
        emulation="1.36.0",
    )


def found(world: World) -> dict[str, Any]:
    return world.run(world.api().get(CANDIDATES, "kube-system", "host-1"))


def ping(world: World, ahead: float = 0.0) -> str:
    """Ask for a sign of life, as the API server does; answers when, by the server's clock."""
    at = format_micro_time(world.now() + timedelta(seconds=ahead))
    world.run(world.api().patch(CANDIDATES, "kube-system", "host-1", {"spec": {"pingTime": at}}))
    return at


@pytest.fixture
def world() -> Any:
    with World(seed=3) as made:
        made.run(made.api().create(DEFINITIONS, "", DEFINITION))
        made.run(made.advance(10))
        with made.background():
            made.spawn(candidate(made).run(), name="candidate")
        made.run(made.advance(1))
        yield made


def test_it_says_which_lease_it_is_for_and_which_versions_it_is(world: World) -> None:
    spec = found(world)["spec"]
    assert spec.pop("renewTime")
    assert spec == {
        "leaseName": "kube-controller-manager",
        "binaryVersion": "1.36.4",
        "emulationVersion": "1.36.0",
        "strategy": "OldestEmulationVersion",
    }


@pytest.mark.parametrize("ahead", [0.0, 5.0])
def test_it_answers_when_it_is_asked_though_its_clock_may_be_behind(world: World, ahead: float) -> None:
    asked = ping(world, ahead)
    world.run(world.advance(0.5))
    spec = found(world)["spec"]
    assert spec["renewTime"] >= asked == spec["pingTime"]
    version = found(world)["metadata"]["resourceVersion"]
    world.run(world.advance(5))
    assert found(world)["metadata"]["resourceVersion"] == version, "once is enough"


def test_it_renews_by_itself_long_before_it_is_forgotten(world: World) -> None:
    before = found(world)["spec"]["renewTime"]
    world.run(world.advance(RENEW + 5))
    assert found(world)["spec"]["renewTime"] > before


def test_it_comes_back_when_it_is_deleted(world: World) -> None:
    world.run(world.api().delete(CANDIDATES, "kube-system", "host-1"))
    world.run(world.advance(0.5))
    assert found(world)["spec"]["leaseName"] == "kube-controller-manager"
