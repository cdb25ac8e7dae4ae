"""Controllers whose resources are not served are left out, and start when these appear."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.discovery import DiscoveryResult, FailedGroupVersion
from steersman.api.errors import ServerError
from steersman.api.kinds import LEASES, Lease, ObjectMeta
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.controllers import garbagecollector
from steersman.intent.actions import Patch
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.manager.late_start import PERIOD, served, start_late
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.world import World

SEEN = {"metadata": {"annotations": {"example.com/seen": "yes"}}}


async def mark(obj: Any, now: datetime) -> Verdict:
    if obj.metadata.annotations:
        return Rest("marked")
    await Patch(obj, SEEN)
    return Rest("marked now")


plain: Controller[Any] = Controller(name="plain", watches=(Watch(CONFIGMAPS),), decide=mark, workers=1)
needy: Controller[Any] = Controller(
    name="needy", watches=(Watch(LEASES),), decide=mark, workers=1, required_kinds=(LEASES,)
)


class Partial(LocalApi):
    """Says only so much about what it serves."""

    says = "all"

    async def discover(self) -> DiscoveryResult:
        found = await super().discover()
        if Partial.says == "all":
            return found
        if Partial.says == "nothing":
            raise ServerError("no discovery today")
        rest = tuple(each for each in found.resources if each.group != LEASES.group)
        failed = (FailedGroupVersion(f"{LEASES.group}/v1", "is ill"),) if Partial.says == "some" else ()
        return DiscoveryResult(rest, failed)


WORLDS: list[World] = []


@pytest.fixture(autouse=True)
def worlds_end() -> Iterator[None]:
    yield
    while WORLDS:
        WORLDS.pop().close()


class Plane:
    """A world with a server that says only so much, and a fleet in it."""

    def __init__(self, says: str, *controllers: Controller[Any]) -> None:
        Partial.says = says
        self.world = World(seed=1)
        WORLDS.append(self.world)
        self.api = Partial(self.world.server, User("manager"))
        present, absent = self.world.run(served(controllers, self.api))
        self.absent = [controller.name for controller in absent]
        self.fleet = ControllerGroup(present, self.api, self.world)
        self.joined: list[int] = []
        self.world.spawn(self.fleet.run(), name="manager")
        self.world.spawn(
            start_late(self.fleet, absent, self.api, lambda: self.joined.append(len(self.fleet.runners))),
            name="late start",
        )
        lease = Lease(metadata=ObjectMeta(name="a", namespace="default"))
        self.world.run(self.world.api().create(LEASES, "default", lease))
        config = ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))
        self.world.run(self.world.api().create(CONFIGMAPS, "default", config))

    def after(self, seconds: float) -> Plane:
        self.world.run(self.world.advance(seconds))
        return self

    def seen(self) -> Iterator[str]:
        for kind in (CONFIGMAPS, LEASES):
            found: Any = self.world.run(self.world.api().get(kind, "default", "a"))
            if found.metadata.annotations:
                yield kind.plural


def test_a_controller_whose_resources_are_served_starts_with_the_others() -> None:
    plane = Plane("all", plain, needy).after(1)
    assert plane.absent == []
    assert list(plane.seen()) == ["configmaps", "leases"]


@pytest.mark.parametrize("says", ["less", "some", "nothing"])
def test_one_that_is_left_out_keeps_nobody_waiting_and_starts_when_its_resource_appears(says: str) -> None:
    plane = Plane(says, plain, needy).after(10 * PERIOD)
    assert plane.absent == ["needy"]
    assert list(plane.seen()) == ["configmaps"]
    assert plane.joined == []
    Partial.says = "all"
    assert list(plane.after(PERIOD + 1).seen()) == ["configmaps", "leases"]
    assert plane.joined == [2]


def test_what_the_garbage_collector_follows_can_be_joined_by_type_and_is_followed_on() -> None:
    plane = Plane("all", plain, garbagecollector.controller).after(PERIOD)
    plane.fleet.join(needy)
    plane.after(PERIOD)
    assert list(plane.seen()) == ["configmaps", "leases"]
    # The collector still sees to it that what is owned goes with its owner.
    api = plane.world.api()
    owner: Any = plane.world.run(api.get(CONFIGMAPS, "default", "a"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner.metadata.uid}
    plane.world.run(api.patch(LEASES, "default", "a", {"metadata": {"ownerReferences": [reference]}}))
    plane.after(1)
    plane.world.run(api.delete(CONFIGMAPS, "default", "a"))
    plane.after(PERIOD)
    assert list(plane.world.run(api.list(LEASES, "default")).items) == []


def test_a_controller_the_settings_leave_nothing_to_do_does_not_join() -> None:
    plane = Plane("all", plain).after(1)
    plane.fleet.join(replace(needy, feature_gates=("HPAScaleToZero",)))
    assert [host.controller.name for host in plane.fleet.runners] == ["plain"]
