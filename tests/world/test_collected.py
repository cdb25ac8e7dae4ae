"""Whatever owns whatever: nothing with a living owner is ever deleted, and nothing is left without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from steersman.api.generated import load
from steersman.api.kinds import NAMESPACES
from steersman.client.api import EventType
from steersman.controllers import garbagecollector
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.storage.watch import Commit
from steersman.sim.world import World

CONFIGMAPS = load("", "v1", "ConfigMap")
SPACES = ("default", "other")
COUNT = 6
NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Tie:
    """A wish to be owned: by the object of that number, or by something that is not quite it."""

    owner: int
    flaw: str
    blocks: bool | None


@dataclass
class Family:
    """What should be left: places, and the places of those that own them."""

    owners: dict[str, list[str | None]] = field(default_factory=dict)

    def collect(self) -> None:
        """Let go of all that have owners, none of which is there."""
        while gone := [
            place
            for place, owners in self.owners.items()
            if owners and not any(owner in self.owners for owner in owners)
        ]:
            for place in gone:
                del self.owners[place]
        for place, owners in self.owners.items():
            self.owners[place] = [owner for owner in owners if owner in self.owners]

    def delete(self, place: str, policy: str) -> None:
        if policy == "Orphan":
            for other, owners in self.owners.items():
                self.owners[other] = [owner for owner in owners if owner != place]
        self.owners.pop(place, None)
        self.collect()


ties = st.builds(
    Tie,
    owner=st.integers(0, COUNT - 1),
    flaw=st.sampled_from(["", "", "", "", "uid", "name", "kind"]),
    blocks=st.sampled_from([None, False, True]),
)
plans = st.fixed_dictionaries(
    {
        "spaces": st.lists(st.sampled_from((0, 0, 0, 1)), min_size=COUNT, max_size=COUNT),
        "ties": st.lists(st.lists(ties, max_size=3), min_size=COUNT, max_size=COUNT),
        "deletes": st.lists(
            st.tuples(
                st.integers(0, COUNT - 1), st.sampled_from(["Background", "Foreground", "Orphan", None])
            ),
            min_size=1,
            max_size=4,
        ),
        "seed": st.integers(0, 2**16),
    }
)


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(plan=plans)
def test_nothing_with_a_living_owner_goes_and_nothing_without_one_stays(plan: dict[str, Any]) -> None:
    with World(plan["seed"], shuffle=True) as world:
        api = world.api()
        world.run(api.create(NAMESPACES, "", {"metadata": {"name": "other"}}))
        asked: set[str] = set()
        wrongs: list[str] = []

        def look(commit: Commit) -> None:
            if commit.resource == "configmaps" and commit.event.type is EventType.DELETED:
                obj = commit.obj
                if obj.metadata.uid not in asked and (not obj.metadata.ownerReferences or _solid(world, obj)):
                    wrongs.append(commit.key)

        places = [f"{SPACES[space]}/m{number}" for number, space in enumerate(plan["spaces"])]
        uids: list[str] = []
        for place in places:
            namespace, name = place.split("/")
            made = world.run(api.create(CONFIGMAPS, namespace, {"metadata": {"name": name}}))
            uids.append(made.metadata.uid)
        family = Family()
        for number, place in enumerate(places):
            namespace, name = place.split("/")
            family.owners[place] = []
            references = []
            for tie in plan["ties"][number]:
                owner = places[tie.owner]
                sound = not tie.flaw and owner.split("/")[0] == namespace
                references.append(
                    {
                        "apiVersion": "v1",
                        "kind": "Secret" if tie.flaw == "kind" else "ConfigMap",
                        "name": "nobody" if tie.flaw == "name" else owner.split("/")[1],
                        "uid": NOBODY if tie.flaw == "uid" else uids[tie.owner],
                        "blockOwnerDeletion": tie.blocks,
                    }
                )
                family.owners[place].append(owner if sound else None)
            body = {"metadata": {"ownerReferences": references}}
            world.run(api.patch(CONFIGMAPS, namespace, name, body))
        world.server.store.commit_hooks.append(look)
        fleet = ControllerGroup((garbagecollector.controller,), world.api("manager"), world)
        world.spawn(fleet.run(), name="manager")
        world.run(world.settle())
        family.collect()
        assert left(world) == sorted(family.owners)
        for number, policy in plan["deletes"]:
            place = places[number]
            if place not in family.owners:
                continue
            namespace, name = place.split("/")
            asked.add(uids[number])
            world.run(api.delete(CONFIGMAPS, namespace, name, propagation=policy))
            world.run(world.settle())
            family.delete(place, policy or "Background")
            assert left(world) == sorted(family.owners)
        assert wrongs == []


def _solid(world: World, obj: Any) -> bool:
    """Whether one of an object's owners is there and does not wait for this object to go."""
    table = world.server.store.table("configmaps")
    for reference in obj.metadata.ownerReferences:
        owner = table.get(f"{obj.metadata.namespace}/{reference.name}")
        if reference.kind == "ConfigMap" and owner is not None and owner.metadata.uid == reference.uid:
            meta = owner.metadata
            if meta.deletionTimestamp is None or "foregroundDeletion" not in meta.finalizers:
                return True
    return False


def left(world: World) -> list[str]:
    found = world.run(world.api().list(CONFIGMAPS)).items
    return sorted(f"{obj.metadata.namespace}/{obj.metadata.name}" for obj in found)
