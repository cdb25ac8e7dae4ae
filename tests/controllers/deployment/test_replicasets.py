"""Which ReplicaSet is the new one, and the limits of a rollout."""

from __future__ import annotations

import pytest

from steersman.api.kinds import ReplicaSet
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, history_limit, progress_deadline
from tests.harness.workloads import deployment, replicaset


def names(sets: tuple[ReplicaSet, ...]) -> list[str]:
    return [rs.metadata.name for rs in sets]


def test_the_new_set_is_the_one_with_the_deployments_template() -> None:
    owner = deployment(image="v2")
    old, new = replicaset(owner, "v1", age=5), replicaset(owner, "v2")
    sets = ReplicaSets.of(owner, [new, old])
    assert sets.new is new
    assert sets.old == (old,)


def test_there_is_no_new_set_while_none_has_the_template() -> None:
    owner = deployment(image="v2")
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1")])
    assert sets.new is None
    assert names(sets.old) == ["web-v1"]


def test_of_two_sets_with_the_template_the_older_one_is_the_new_one() -> None:
    owner = deployment(image="v2")
    younger = replicaset(owner, "v2", name="younger", age=1)
    older = replicaset(owner, "v2", name="older", age=2)
    sets = ReplicaSets.of(owner, [younger, older])
    assert sets.new is older
    assert sets.old == (younger,)


def test_of_two_sets_made_in_the_same_second_the_first_by_name_is_the_older() -> None:
    owner = deployment(image="v2")
    sets = ReplicaSets.of(owner, [replicaset(owner, "v2", name="b"), replicaset(owner, "v2", name="a")])
    assert sets.new is not None
    assert sets.new.metadata.name == "a"


def test_old_sets_come_the_oldest_first_and_the_new_one_last() -> None:
    owner = deployment(image="v3")
    sets = ReplicaSets.of(
        owner,
        [replicaset(owner, "v3", age=7), replicaset(owner, "v2", age=1), replicaset(owner, "v1", age=9)],
    )
    assert names(tuple(sets)) == ["web-v1", "web-v2", "web-v3"]


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "fewest"),
    [
        pytest.param(4, "25%", "25%", 5, 3, id="per cents"),
        pytest.param(3, "25%", "25%", 4, 3, id="a surge is rounded up, what may be missing down"),
        pytest.param(10, 2, 3, 12, 7, id="numbers"),
        pytest.param(2, 0, "1%", 2, 1, id="both come to nothing: one may be missing"),
        pytest.param(1, "0%", "1%", 1, 0, id="so also for a single pod"),
        pytest.param(2, "1%", "25%", 3, 2, id="a surge is enough"),
        pytest.param(1, "1%", "0%", 2, 1, id="even of one per cent"),
        pytest.param(2, 1, 5, 3, 0, id="no more can be missing than are wanted"),
        pytest.param(0, 3, 2, 3, 0, id="nothing wanted, nothing missing"),
        pytest.param(5, "100%", "0%", 10, 5, id="twice as many"),
    ],
)
def test_surge_and_unavailability_are_resolved(
    replicas: int, surge: int | str, unavailable: int | str, most: int, fewest: int
) -> None:
    limits = Limits.of(deployment(replicas, surge=surge, unavailable=unavailable))
    assert (limits.max_total, limits.min_available) == (most, fewest)


def test_recreate_never_surges_and_counts_every_missing_pod() -> None:
    limits = Limits.of(deployment(4, strategy="Recreate"))
    assert (limits.max_total, limits.min_available) == (4, 4)


@pytest.mark.parametrize(("given", "meant"), [(None, None), (2**31 - 1, None), (600, 600), (0, 0)])
def test_the_largest_number_means_for_ever(given: int | None, meant: int | None) -> None:
    spec = deployment(deadline=given, history=given)
    assert progress_deadline(spec) == meant
    assert history_limit(spec) == meant
