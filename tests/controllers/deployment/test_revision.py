"""Revisions, the revision-history annotation, and the history limit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from steersman.api.kinds import ReplicaSet
from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.controllers.deployment import revision
from steersman.controllers.deployment.replicasets import ReplicaSets
from steersman.controllers.deployment.revision import REVISION, REVISION_HISTORY, ROLLBACK_TO
from steersman.controllers.deployment.scale import DESIRED_REPLICAS, MAX_REPLICAS
from tests.harness.workloads import CREATED, deployment, replicaset


def with_revision(text: str | None, **more: str) -> ReplicaSet:
    annotations = {} if text is None else {REVISION: text}
    return replicaset(deployment(), annotations={**annotations, **more})


@pytest.mark.parametrize(
    ("revisions", "highest", "last"),
    [
        pytest.param([], 0, 0, id="no sets"),
        pytest.param(["1"], 1, 0, id="one"),
        pytest.param(["1", "3", "2"], 3, 2, id="three"),
        pytest.param(["7", None], 7, 0, id="one without"),
        pytest.param(["7", "junk", "4"], 7, 4, id="one that is no number"),
        pytest.param(["7", "7"], 7, 7, id="two alike"),
        pytest.param(["-4"], 0, 0, id="a negative one"),
        pytest.param(["99999999999999999999"], 0, 0, id="one that is too large"),
    ],
)
def test_the_highest_revision_and_the_one_before(
    revisions: list[str | None], highest: int, last: int
) -> None:
    sets = [with_revision(text) for text in revisions]
    assert revision.max_revision(sets) == highest
    assert revision.last_revision(sets) == last


@pytest.mark.parametrize(
    ("had", "given", "becomes"),
    [
        pytest.param({}, 1, {REVISION: "1"}, id="its first"),
        pytest.param({REVISION: "3"}, 3, {REVISION: "3"}, id="the one it has"),
        pytest.param({REVISION: "9"}, 3, {REVISION: "9"}, id="a higher one stays"),
        pytest.param({REVISION: "1"}, 3, {REVISION: "3", REVISION_HISTORY: "1"}, id="it becomes new again"),
        pytest.param(
            {REVISION: "3", REVISION_HISTORY: "1"},
            5,
            {REVISION: "5", REVISION_HISTORY: "1,3"},
            id="and again",
        ),
        pytest.param({REVISION: "junk"}, 5, {REVISION: "junk"}, id="somebody's handiwork stays"),
        pytest.param(
            {REVISION: ""}, 5, {REVISION: "5", REVISION_HISTORY: ""}, id="an empty one counts as none"
        ),
    ],
)
def test_the_new_set_gets_the_next_revision(had: dict[str, str], given: int, becomes: dict[str, str]) -> None:
    rs = replicaset(deployment(), annotations=had)
    assert revision.with_revision(rs, given, {}).metadata.annotations == becomes


@pytest.mark.parametrize(
    ("past", "limit", "becomes"),
    [
        pytest.param("", 10, "7", id="the first entry"),
        pytest.param("1,2", 10, "1,2,7", id="one more"),
        pytest.param("1,2,3", 5, "2,3,7", id="the oldest makes room"),
        pytest.param("100,200", 5, "200,7", id="as many go as must"),
        pytest.param("1,2", 0, "1,2", id="no room at all: it stays"),
    ],
)
def test_the_history_of_a_set_is_bounded(past: str, limit: int, becomes: str) -> None:
    assert revision.append_history(past, "7", limit) == becomes


def test_the_new_set_takes_over_the_deployments_annotations_but_not_what_is_its_own() -> None:
    owner = deployment(
        image="v2",
        min_ready=7,
        annotations={
            "kubernetes.io/change-cause": "kubectl set image",
            LAST_APPLIED: "{}",
            REVISION: "1",
            REVISION_HISTORY: "4",
            DESIRED_REPLICAS: "9",
            MAX_REPLICAS: "9",
            ROLLBACK_TO: "1",
        },
    )
    old = replicaset(owner, "v1", 0, age=5, annotations={REVISION: "1"})
    new = revision.sync_new(
        ReplicaSets.of(owner, [old, replicaset(owner, "v2", annotations={"own": "x"})])
    ).new
    assert new is not None
    assert new.metadata.annotations == {
        "own": "x",
        "kubernetes.io/change-cause": "kubectl set image",
        REVISION: "2",
    }
    assert new.spec.minReadySeconds == 7


def test_what_is_recorded_already_is_not_recorded_again() -> None:
    owner = deployment(annotations={"cause": "x"})
    sets = ReplicaSets.of(owner, [replicaset(owner, annotations={"cause": "x", REVISION: "1"})])
    assert revision.sync_new(sets).new is sets.new


def test_the_deployment_shows_the_revision_of_its_new_set() -> None:
    owner = deployment(annotations={"cause": "x", REVISION: "1"})
    assert revision.revised_annotations(owner, with_revision("2")) == {"cause": "x", REVISION: "2"}
    assert revision.revised_annotations(owner, with_revision("1")) is owner.metadata.annotations
    assert revision.revised_annotations(owner, None) is owner.metadata.annotations


def empty(
    name: str, text: str | None = None, age: int = 0, *, current: int = 0, wanted: int = 0
) -> ReplicaSet:
    annotations = {} if text is None else {REVISION: text}
    return replicaset(
        deployment(), f"image-{name}", wanted, name=name, current=current, age=age, annotations=annotations
    )


@pytest.mark.parametrize(
    ("limit", "sets", "gone"),
    [
        pytest.param(1, [empty("a", "1", 3), empty("b", "2", 2)], ["a"], id="the lower revision"),
        pytest.param(1, [empty("a", "2", 3), empty("b", "1", 2)], ["b"], id="whatever the age"),
        pytest.param(1, [empty("a", "1", 3), empty("b", None, 2)], ["b"], id="first one without any"),
        pytest.param(1, [empty("a", None, 3), empty("b", "2", 2)], ["a"], id="older and without any"),
        pytest.param(
            1,
            [empty("a", "1", 3, wanted=1, current=1), empty("b", "2", 2), empty("c", "3", 1)],
            ["b"],
            id="not one with pods",
        ),
        pytest.param(
            1,
            [empty("a", "1", 3, wanted=1), empty("b", "2", 2, current=1), empty("c", "3", 1)],
            [],
            id="nor in its place one that is to be kept",
        ),
        pytest.param(
            2,
            [empty("a", "3", 4), empty("b", "1", 3), empty("c", "4", 2), empty("d", "2", 1)],
            ["b", "d"],
            id="the two lowest",
        ),
        pytest.param(0, [empty("a", "1"), empty("b", "2")], ["a", "b"], id="all"),
        pytest.param(5, [empty("a", "1"), empty("b", "2")], [], id="within the limit"),
        pytest.param(2**31 - 1, [empty("a", "1")], [], id="no limit"),
        pytest.param(None, [empty("a", "1")], [], id="none said"),
    ],
)
def test_old_sets_past_the_history_go(limit: int | None, sets: list[ReplicaSet], gone: list[str]) -> None:
    owner = deployment(history=limit)
    outdated = revision.beyond_history_limit(ReplicaSets.of(owner, sets))
    assert [rs.metadata.name for rs in outdated] == gone


def test_a_set_that_is_going_already_is_neither_deleted_nor_counted() -> None:
    going = replicaset(deployment(), "v0", 0, name="a", deleted=CREATED + timedelta(seconds=1))
    assert (
        revision.beyond_history_limit(ReplicaSets.of(deployment(history=1), [going, empty("b", "1")])) == []
    )
    assert revision.beyond_history_limit(ReplicaSets.of(deployment(history=0), [going])) == []


def test_a_set_whose_status_is_of_an_earlier_spec_is_kept() -> None:
    rs = empty("a", "1")
    unobserved = replace(rs, metadata=replace(rs.metadata, generation=2))
    assert revision.beyond_history_limit(ReplicaSets.of(deployment(history=0), [unobserved])) == []
