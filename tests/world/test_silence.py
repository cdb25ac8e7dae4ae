"""A controller that listens for the heartbeats of nodes: months of them cost nothing, silence is heard to the second."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from steersman.api.generated import load
from steersman.api.kinds import LEASES, Lease, Object
from steersman.api.scheme import Key, Kind
from steersman.client.capabilities import REMOTE
from steersman.controllers import CONTROLLERS
from steersman.intent.actions import Patch
from steersman.intent.controller import Caches, Controller, Watch
from steersman.intent.verdict import Rest, Verdict, Wake, heartbeat_of
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.kubelet import Kubelets
from steersman.sim.world import World
from steersman.testing.cluster import Cluster

NODES: Kind[Any] = load("", "v1", "Node")
SECRETS: Kind[Any] = load("", "v1", "Secret")
GRACE = timedelta(seconds=50)
LOST = "example.com/lost"


async def decide(lease: Lease, now: datetime) -> Verdict:
    assert lease.spec.renewTime is not None
    due = lease.spec.renewTime + GRACE
    if now < due:
        return Wake(due - now, "heard of it", renewed_by=heartbeat_of(LEASES, lease.key))
    if LOST in lease.metadata.annotations:
        return Rest("known to be lost")
    await Patch(lease, {"metadata": {"annotations": {LOST: now.isoformat()}}})
    return Rest("lost")


listener: Controller[Lease] = Controller(
    name="listener", watches=(Watch(LEASES),), decide=decide, workers=2, service_account="listener"
)


class Unsteady(LocalApi):
    """An API through which every heartbeat is tried."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.capabilities = REMOTE


class Plane:
    """Nodes, and a controller that listens for them."""

    def __init__(
        self,
        api: type[LocalApi] = LocalApi,
        controllers: Iterable[Controller[Any]] = (listener,),
        shuffle: bool = False,
    ) -> None:
        self.world = World(seed=3, shuffle=shuffle)
        self.kubelets = Kubelets(api(self.world.server, User("kubelets")), self.world, ("n1", "n2", "n3"))
        self.fleet = ControllerGroup(controllers, api(self.world.server, User("manager")), self.world)
        self.world.spawn(self.kubelets.run(), name="kubelets")
        self.world.spawn(self.fleet.run(), name="manager")

    def lost(self) -> dict[str, str]:
        found: list[Any] = list(self.world.run(self.world.api().list(LEASES)).items)
        return {each.metadata.name: each.metadata.annotations.get(LOST, "") for each in found}

    def renewed(self) -> dict[str, Any]:
        found: list[Any] = list(self.world.run(self.world.api().list(LEASES)).items)
        return {each.metadata.name: each.spec.renewTime for each in found}

    def rounds(self, name: str) -> int:
        return len(self.fleet.trace.rounds("listener", Key("kube-node-lease", name)))


def test_a_month_of_heartbeats_that_somebody_listens_for_takes_a_few_rounds() -> None:
    plane = Plane(controllers=(*CONTROLLERS, listener))
    plane.world.run(plane.world.settle())
    before, rounds = plane.world.server.store.revision, plane.rounds("n1")
    plane.world.run(plane.world.advance(30 * 86400))
    assert set(plane.lost().values()) == {""}
    assert plane.rounds("n1") - rounds < 200
    assert plane.world.server.store.revision - before < 1000
    plane.world.close()


@pytest.mark.parametrize("after", [0.5, 7.0, 9.999, 10.0, 86_407.0])
def test_a_node_that_falls_silent_is_found_lost_to_the_second(after: float) -> None:
    plane = Plane()
    plane.world.run(plane.world.advance(after))
    plane.kubelets.fail("n2")
    last = plane.renewed()["n2"]
    begun = plane.world.now()
    assert (begun - last).total_seconds() <= 10
    plane.world.run(plane.world.advance(1000))
    lost = plane.lost()
    assert (lost["n1"], lost["n3"]) == ("", "")
    assert datetime.fromisoformat(lost["n2"]) == last + GRACE
    plane.world.close()


def test_kubelets_that_die_without_a_word_are_missed_as_well() -> None:
    plane = Plane()
    plane.world.run(plane.world.advance(3600))
    (task,) = [task for task in plane.world._tasks if task.get_name() == "kubelets"]
    task.cancel()
    last = plane.renewed()
    plane.world.run(plane.world.advance(3600))
    assert {name: datetime.fromisoformat(at) for name, at in plane.lost().items()} == {
        name: at + GRACE for name, at in last.items()
    }
    plane.world.close()


def test_settling_ends_with_what_silence_leads_to() -> None:
    plane = Plane()
    plane.world.run(plane.world.advance(100))
    plane.kubelets.fail("n1")
    plane.world.run(plane.world.settle(60))
    assert plane.lost()["n1"]
    plane.world.close()


# -- looking again ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "idle", "after_a_change"),
    [(LocalApi, [300.0, 86_400.0], [86_700.0, 172_800.0]), (Unsteady, None, None)],
)
def test_another_look_at_what_is_as_it_was_is_left_out(
    api: type[LocalApi], idle: list[float] | None, after_a_change: list[float] | None
) -> None:
    looks: list[float] = []

    async def look(secret: Object, now: datetime) -> Verdict:
        looks.append(world.monotonic())
        return Rest("fine")

    watcher: Controller[Object] = Controller(
        name="looker", watches=(Watch(SECRETS),), decide=look, workers=1, resync=300.0
    )
    body = {"metadata": {"name": "s"}}
    with World(seed=3) as world:
        world.spawn(
            ControllerGroup((watcher,), api(world.server, User("manager")), world).run(), name="manager"
        )
        world.run(world.api().create(SECRETS, "default", body))
        world.run(world.loop.idle())
        looks.clear()
        world.run(world.advance(86_400))
        assert looks == (idle or [300.0 * n for n in range(1, 289)])
        world.run(world.api().patch(SECRETS, "default", "s", {"data": {"a": "YQ=="}}))
        world.run(world.loop.idle())
        looks.clear()
        world.run(world.advance(86_400))
        assert looks == (after_a_change or [86_400 + 300.0 * n for n in range(1, 289)])


@pytest.mark.parametrize("shuffle", [False, True])
def test_whoever_looks_again_finds_every_heartbeat_up_to_then(shuffle: bool) -> None:
    """Be it at a look of its own or since another's beat was seen."""
    ages: list[float] = []

    def observe(caches: Caches, key: Key) -> Any:
        return caches[LEASES].get(Key("kube-node-lease", key.name))

    async def look(lease: Lease, now: datetime) -> Verdict:
        assert lease.spec.renewTime is not None
        ages.append((now - lease.spec.renewTime).total_seconds())
        return Rest("fine")

    looker: Controller[Any] = Controller(
        name="looker",
        watches=(Watch(NODES), Watch(LEASES, to=lambda caches, change: ())),
        observe=observe,
        decide=look,
        workers=1,
        resync=77.0,
    )
    plane = Plane(controllers=(looker,), shuffle=shuffle)
    plane.world.run(plane.world.settle())
    ages.clear()
    plane.world.run(plane.world.advance(86_400))
    plane.world.close()
    assert len(ages) > 3
    assert max(ages) <= 10


Deed = tuple[float, str, str]


def played(api: type[LocalApi], deeds: list[Deed]) -> list[Any]:
    plane = Plane(api)
    found: list[Any] = []
    for span, deed, node in deeds:
        plane.world.run(plane.world.advance(span))
        found.append((plane.lost(), plane.renewed()))
        getattr(plane.kubelets, deed)(node)
    plane.world.run(plane.world.advance(200))
    found.append((plane.lost(), plane.renewed()))
    plane.world.close()
    return found


@settings(max_examples=25, deadline=None)
@given(
    some.lists(
        some.tuples(
            some.one_of(some.integers(0, 200).map(float), some.floats(0, 200)),
            some.sampled_from(["fail", "recover"]),
            some.sampled_from(["n1", "n2"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_nodes_are_lost_when_they_would_have_been_had_every_beat_happened(deeds: list[Deed]) -> None:
    assert played(LocalApi, deeds) == played(Unsteady, deeds)


async def decide_on_the_second(lease: Lease, now: datetime) -> Verdict:
    """Wakes at an instant at which other nodes beat."""
    assert lease.spec.renewTime is not None
    left = timedelta(seconds=round((lease.spec.renewTime + GRACE - now).total_seconds()))
    if left > timedelta():
        return Wake(left, "heard of it", renewed_by=heartbeat_of(LEASES, lease.key))
    if LOST not in lease.metadata.annotations:
        await Patch(lease, {"metadata": {"annotations": {LOST: now.isoformat()}}})
    return Rest("lost")


def test_a_silence_that_ends_with_the_beat_of_another_node_is_heard_by_who_waits() -> None:
    on_the_second = replace(listener, decide=decide_on_the_second)
    with Cluster(seed=3, nodes=3, controllers=()) as cluster:
        cluster.run_controller(on_the_second)
        cluster.advance(seconds=100)
        cluster.node("node-1").fail()
        looks: list[datetime] = []

        def lost() -> bool:
            looks.append(cluster.now)
            if len(looks) > 200:
                pytest.fail(f"time stands still at {cluster.now}")  # not "not yet", as other exceptions are
            return LOST in cluster.get("Lease", "node-1", "kube-node-lease").metadata.annotations

        cluster.wait_until(lost, 120)
