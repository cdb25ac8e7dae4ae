"""Which ReplicaSet is the new one."""

from __future__ import annotations

from steersman.api.kinds import ReplicaSet
from steersman.controllers.deployment.replicasets import Family
from tests.harness.workloads import deployment, replicaset


def names(sets: tuple[ReplicaSet, ...]) -> list[str]:
    return [rs.metadata.name for rs in sets]


def test_the_new_set_is_the_one_with_the_deployments_template() -> None:
    owner = deployment(image="v2")
    old, new = replicaset(owner, "v1", age=5), replicaset(owner, "v2")
    family = Family.of(owner, [new, old])
    assert family.new is new
    assert family.olds == (old,)


def test_there_is_no_new_set_while_none_has_the_template() -> None:
    owner = deployment(image="v2")
    family = Family.of(owner, [replicaset(owner, "v1")])
    assert family.new is None
    assert names(family.olds) == ["web-v1"]


def test_of_two_sets_with_the_template_the_older_one_is_the_new_one() -> None:
    owner = deployment(image="v2")
    younger = replicaset(owner, "v2", name="younger", age=1)
    older = replicaset(owner, "v2", name="older", age=2)
    family = Family.of(owner, [younger, older])
    assert family.new is older
    assert family.olds == (younger,)


def test_of_two_sets_made_in_the_same_second_the_first_by_name_is_the_older() -> None:
    owner = deployment(image="v2")
    family = Family.of(owner, [replicaset(owner, "v2", name="b"), replicaset(owner, "v2", name="a")])
    assert family.new is not None
    assert family.new.metadata.name == "a"


def test_old_sets_come_the_oldest_first_and_the_new_one_last() -> None:
    owner = deployment(image="v3")
    family = Family.of(
        owner,
        [replicaset(owner, "v3", age=7), replicaset(owner, "v2", age=1), replicaset(owner, "v1", age=9)],
    )
    assert names(tuple(family)) == ["web-v1", "web-v2", "web-v3"]
