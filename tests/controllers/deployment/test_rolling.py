"""One step of a RollingUpdate."""

from __future__ import annotations

import pytest

from steersman.controllers.deployment import rolling
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, size
from steersman.controllers.deployment.scale import DESIRED_REPLICAS, MAX_REPLICAS
from tests.harness.workloads import deployment, replicaset


def sizes(sets: ReplicaSets) -> tuple[int, ...]:
    return tuple(map(size, sets))


@pytest.mark.parametrize(
    ("surge", "old", "new", "becomes"),
    [
        pytest.param(0, 10, 0, 0, id="no room without a surge"),
        pytest.param(2, 10, 0, 2, id="as many as the surge allows"),
        pytest.param(2, 5, 0, 7, id="and as many as old ones went"),
        pytest.param(2, 10, 2, 2, id="no room left"),
        pytest.param(2, 2, 11, 10, id="too many: down to what is wanted"),
        pytest.param(5, 2, 8, 10, id="never more than wanted, however much room there is"),
        pytest.param(2, 20, 3, 3, id="too many others: it stays as it is"),
        pytest.param(2, 0, 10, 10, id="done"),
    ],
)
def test_the_new_set_grows_as_far_as_the_surge_allows(surge: int, old: int, new: int, becomes: int) -> None:
    owner = deployment(10, "v2", surge=surge, unavailable=1)
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", old, age=9), replicaset(owner, "v2", new)])
    grown = rolling.reconcile_new(sets, Limits.of(owner))
    assert sizes(grown) == (old, becomes)


@pytest.mark.parametrize(
    ("unavailable", "old", "old_ready", "new", "new_ready", "becomes"),
    [
        pytest.param(2, 10, 10, 0, 0, 8, id="as many as may be missing"),
        pytest.param("1%", 10, 10, 0, 0, 9, id="one, when neither bound leaves any room"),
        pytest.param(2, 10, 8, 0, 0, 8, id="two broken ones"),
        pytest.param(2, 10, 9, 0, 0, 8, id="a broken one and a good one"),
        pytest.param(2, 8, 8, 2, 0, 8, id="new pods that are not available hold the old ones"),
        pytest.param(2, 8, 8, 2, 2, 6, id="new pods that are available free them"),
        pytest.param(2, 8, 8, 5, 0, 8, id="however many new ones crash"),
        pytest.param(2, 8, 1, 2, 0, 8, id="even if the old ones crash too"),
        pytest.param(2, 10, 1, 0, 0, 8, id="broken ones go only as far as pods may be missing"),
        pytest.param(2, 0, 0, 10, 10, 0, id="nothing left to go"),
        pytest.param(2, 3, 3, 10, 10, 0, id="all of them at the end"),
    ],
)
def test_old_sets_shrink_as_far_as_availability_allows(
    unavailable: int | str, old: int, old_ready: int, new: int, new_ready: int, becomes: int
) -> None:
    owner = deployment(10, "v2", surge=0, unavailable=unavailable)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", old, available=old_ready, age=9),
            replicaset(owner, "v2", new, available=new_ready),
        ],
    )
    assert sizes(rolling.reconcile_old(sets, Limits.of(owner))) == (becomes, new)


def test_broken_pods_of_every_old_set_go_before_good_ones_of_the_oldest() -> None:
    owner = deployment(10, "v3", surge=0, unavailable=3)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", 4, age=20),
            replicaset(owner, "v2", 6, available=4, age=10),
            replicaset(owner, "v3", 0),
        ],
    )
    assert sizes(rolling.reconcile_old(sets, Limits.of(owner))) == (3, 4, 0)


def test_a_set_that_is_still_shrinking_does_not_count_the_pods_it_is_about_to_lose() -> None:
    """Two of the ten available pods are on their way out: only two more may go, not four."""
    owner = deployment(10, "v2", surge=0, unavailable=2)
    old = replicaset(owner, "v1", 8, current=10, available=10, age=9)
    sets = ReplicaSets.of(owner, [old, replicaset(owner, "v2", 2)])
    assert sizes(rolling.reconcile_old(sets, Limits.of(owner))) == (6, 2)


def test_a_set_that_is_still_shrinking_never_grows_again_in_the_place_of_another() -> None:
    owner = deployment(10, "v3", surge=0, unavailable=2)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", 6, age=20),
            replicaset(owner, "v2", 2, current=6, available=6, age=10),
            replicaset(owner, "v3", 2),
        ],
    )
    assert sizes(rolling.reconcile_old(sets, Limits.of(owner))) == (4, 2, 2)


def test_a_rollover_frees_room_from_both_old_sets() -> None:
    """The new template was changed amidst a rollout: there are 13 pods, 8 must stay available."""
    owner = deployment(10, "v3", surge=3, unavailable=2)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", 8, age=20),
            replicaset(owner, "v2", 5, available=0, age=10),
            replicaset(owner, "v3", 0),
        ],
    )
    assert sizes(rolling.step(sets, Limits.of(owner))) == (8, 0, 5)


def test_a_resized_set_notes_what_the_whole_deployment_wants() -> None:
    owner = deployment(10, "v2", surge=3, unavailable=0)
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", 10, age=9), replicaset(owner, "v2", 0)])
    new = rolling.step(sets, Limits.of(owner)).new
    assert new is not None
    assert new.metadata.annotations == {DESIRED_REPLICAS: "10", MAX_REPLICAS: "13"}


def test_nothing_changes_when_the_rollout_is_done() -> None:
    owner = deployment(3, "v2")
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", 0, age=9), replicaset(owner, "v2", 3)])
    after = rolling.step(sets, Limits.of(owner))
    assert all(was is now for was, now in zip(sets, after, strict=True))
