"""Following a part of a kind, beside the whole of it."""

from __future__ import annotations

from steersman.api.kinds import NAMESPACES
from steersman.runtime.informer import Informers
from steersman.sim.world import World


def test_a_selected_part_of_a_kind_has_a_cache_of_its_own() -> None:
    part = NAMESPACES.where("metadata.name=kube-system")
    with World(seed=1) as world:
        informers = Informers(world.api(), world)
        whole, some = informers[NAMESPACES], informers[part]
        world.spawn(informers.run())
        world.run(informers.wait_synced())
        world.run(world.settle())
        assert [one.metadata.name for one in some.list()] == ["kube-system"]
        assert len(tuple(whole.list())) == 4
