"""The order in which pods are created, deleted and updated. Pods are letters: see `tests.harness.statefulsets`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Pod
from steersman.controllers.statefulset.order import (
    PodsByOrdinal,
    ReplicaStep,
    max_unavailable,
    replica_step,
    rolling_update,
    scale_down,
)
from steersman.intent.verdict import InvalidSpec
from tests.harness.statefulsets import LETTERS, by_ordinal, stateful


def take(state: PodsByOrdinal) -> ReplicaStep:
    return replica_step(state, lambda pod: False, lambda ordinal: False)


def ordinals(pods: tuple[Pod, ...]) -> list[int]:
    return [int(pod.metadata.name.removeprefix("web-")) for pod in pods]


@pytest.mark.parametrize(
    ("letters", "does", "waits"),
    [
        pytest.param("...", {"create": [0]}, True, id="the first comes first"),
        pytest.param("A..", {"create": [1]}, True, id="then the next"),
        pytest.param("N..", {}, True, id="not before the one below is ready"),
        pytest.param("R..", {}, True, id="nor before it is available"),
        pytest.param("P..", {"ensure_claims": [0]}, True, id="a pending one may lack a claim"),
        pytest.param("T..", {}, True, id="nor while it is going"),
        pytest.param("Q..", {"ensure_claims": [0]}, True, id="pending and going at once"),
        pytest.param("AA.", {"create": [2]}, True, id="and so on"),
        pytest.param("A.A", {"create": [1]}, True, id="a gap is filled"),
        pytest.param(".AA", {"create": [0]}, True, id="from below"),
        pytest.param("NA.", {}, True, id="whatever is above"),
        pytest.param("AFA", {"replace": [1]}, True, id="one that failed is replaced"),
        pytest.param("ASA", {"replace": [1]}, True, id="and one that ended well"),
        pytest.param("AXA", {}, True, id="once it is gone"),
        pytest.param("NFA", {}, True, id="and those below serve"),
        pytest.param("AAA", {}, False, id="all are there"),
        pytest.param("AAAA", {}, False, id="more than all"),
    ],
)
def test_an_ordered_set_does_one_thing_at_a_time(letters: str, does: dict[str, Any], waits: bool) -> None:
    taken = take(by_ordinal(stateful(3), letters))
    done = {name: ordinals(getattr(taken, name)) for name in ("replace", "ensure_claims", "update")}
    assert {name: value for name, value in {**done, "create": [*taken.create]}.items() if value} == does
    assert (taken.waiting_for is not None) is waits


@pytest.mark.parametrize(
    ("letters", "does"),
    [
        ("...", {"create": [0, 1, 2]}),
        ("N.P", {"create": [1], "ensure_claims": [2]}),
        ("F.X", {"create": [1], "replace": [0]}),
        ("TQ.", {"create": [2], "ensure_claims": [1]}),
        ("AAA", {}),
    ],
)
def test_a_parallel_set_does_all_at_once_and_waits_for_nobody(letters: str, does: dict[str, Any]) -> None:
    taken = take(by_ordinal(stateful(3, parallel=True), letters))
    done = {name: ordinals(getattr(taken, name)) for name in ("replace", "ensure_claims")}
    assert {name: value for name, value in {**done, "create": [*taken.create]}.items() if value} == does
    assert taken.waiting_for is None


def test_an_ordered_set_mends_what_it_passes() -> None:
    taken = replica_step(by_ordinal(stateful(3), "AAN"), lambda pod: True, lambda ordinal: False)
    assert ordinals(taken.update) == [0, 1]


@pytest.mark.parametrize(("parallel", "fill"), [(False, ()), (True, (2,))])
def test_an_ordinal_whose_claim_is_to_go_is_not_filled(parallel: bool, fill: tuple[int, ...]) -> None:
    state = by_ordinal(stateful(3, parallel=parallel), "A..")
    assert replica_step(state, lambda pod: False, lambda ordinal: ordinal == 1).create == fill


def test_a_set_may_begin_to_count_anywhere() -> None:
    state = by_ordinal(stateful(2, start=5, parallel=True), "..A")
    assert take(state).create == (5, 6)
    assert ordinals(scale_down(state).delete) == [7]


def test_a_set_that_wants_very_many_makes_some_of_them_a_round() -> None:
    assert take(by_ordinal(stateful(2**31 - 1, parallel=True), "A")).create == tuple(range(1, 501))
    assert take(by_ordinal(stateful(2**31 - 1), "A")).create == (1,)


@pytest.mark.parametrize(
    ("letters", "leave", "waits"),
    [
        pytest.param("AAAA", [3], True, id="the highest goes first"),
        pytest.param("AAAT", [], True, id="one at a time"),
        pytest.param("AAAN", [3], True, id="one that does not serve may go"),
        pytest.param("AANN", [], True, id="but not before one below it that does not serve either"),
        pytest.param("AAFA", [3], True, id="one that serves goes whoever else does not"),
        pytest.param("AAF", [2], True, id="one that failed goes like any other"),
        pytest.param("AA", [], False, id="nobody has to go"),
    ],
)
def test_an_ordered_set_shrinks_from_above(letters: str, leave: list[int], waits: bool) -> None:
    # The set wants two; all above are condemned.
    departing = scale_down(by_ordinal(stateful(2), letters))
    assert (ordinals(departing.delete), departing.waiting_for is not None) == (leave, waits)


def test_a_parallel_set_shrinks_at_once() -> None:
    assert ordinals(scale_down(by_ordinal(stateful(1, parallel=True), "NATNF")).delete) == [4, 3, 1]


@pytest.mark.parametrize(
    ("letters", "revisions", "partition", "leave"),
    [
        pytest.param("AAA", "ooo", 0, [2], id="from above"),
        pytest.param("AAA", "oon", 0, [1], id="then the next"),
        pytest.param("AAN", "oon", 0, [], id="when the one above serves"),
        pytest.param("AAR", "oon", 0, [], id="for long enough"),
        pytest.param("AAT", "ooo", 0, [], id="nobody is asked twice"),
        pytest.param("ANA", "oon", 0, [1], id="one that does not serve need not be waited for"),
        pytest.param("AAA", "ono", 0, [2], id="whoever is behind"),
        pytest.param("AAA", "ooo", 2, [2], id="down to the partition"),
        pytest.param("AAA", "oon", 2, [], id="and no further"),
        pytest.param("AAA", "ooo", 9, [], id="which may be past all"),
        pytest.param("AAA", "nnn", 0, [], id="until all are updated"),
    ],
)
def test_pods_are_updated_one_by_one(letters: str, revisions: str, partition: int, leave: list[int]) -> None:
    state = by_ordinal(stateful(3, partition=partition), letters, revisions)
    assert ordinals(rolling_update(state, "new", use_max_unavailable=False).delete) == leave


@pytest.mark.parametrize(
    ("letters", "revisions", "unavailable", "leave"),
    [
        ("AAAA", "oooo", 2, [3, 2]),
        ("AAAA", "oooo", "50%", [3, 2]),
        ("AAAA", "oooo", "10%", [3]),
        ("AAAA", "oooo", None, [3]),
        ("AANA", "ooon", 2, [2]),
        ("AAAT", "oooo", 2, [2]),
        ("AANN", "oonn", 2, []),
        ("AA..", "oonn", 2, []),
        ("AANN", "oonn", 3, [1]),
        ("ANAA", "oooo", 4, [3, 2, 1]),
    ],
)
def test_pods_are_updated_several_at_once_where_so_many_may_miss(
    letters: str, revisions: str, unavailable: int | str | None, leave: list[int]
) -> None:
    state = by_ordinal(stateful(4, unavailable=unavailable), letters, revisions)
    assert ordinals(rolling_update(state, "new", use_max_unavailable=True).delete) == leave


def test_a_set_that_is_updated_by_hand_is_left_alone() -> None:
    assert (
        rolling_update(
            by_ordinal(stateful(3, on_delete=True), "AAA", "ooo"), "new", use_max_unavailable=True
        ).delete
        == ()
    )


def test_a_number_that_is_none_is_nonsense() -> None:
    with pytest.raises(InvalidSpec, match="maxUnavailable"):
        max_unavailable(stateful(unavailable="many"))


# -- whatever there is ------------------------------------------------------------------------

TEAMS = st.builds(
    lambda replicas, letters, revisions, **how: by_ordinal(stateful(replicas, **how), letters, revisions),
    st.integers(0, 6),
    st.text(LETTERS, max_size=8),
    st.text("no", min_size=8, max_size=8),
    parallel=st.booleans(),
    partition=st.integers(0, 7),
    unavailable=st.none() | st.integers(1, 7) | st.sampled_from(["30%", "100%"]),
)


@given(TEAMS)
def test_nobody_is_made_who_is_there_or_is_not_wanted(state: PodsByOrdinal) -> None:
    fill = take(state).create
    assert len({*fill}) == len(fill)
    assert all(ordinal in state.ordinals and ordinal not in state.replicas for ordinal in fill)


@given(TEAMS)
def test_an_ordered_set_makes_one_pod_and_only_when_all_below_serve(state: PodsByOrdinal) -> None:
    if state.set.spec.podManagementPolicy == "Parallel":
        return
    taken = take(state)
    assert len(taken.create) + len(taken.replace) <= 1
    for ordinal in taken.create:
        assert all(
            below in state.replicas and state.is_healthy(state.replicas[below])
            for below in state.ordinals
            if below < ordinal
        )


@given(TEAMS)
def test_nobody_is_asked_to_go_twice_and_those_that_stay_are_not_sent_away(state: PodsByOrdinal) -> None:
    leave = scale_down(state).delete
    assert all(pod in state.condemned and pod.metadata.deletionTimestamp is None for pod in leave)


@given(TEAMS, st.booleans())
def test_an_update_takes_only_old_pods_past_the_partition(state: PodsByOrdinal, several: bool) -> None:
    rolling = state.set.spec.updateStrategy.rollingUpdate
    assert rolling is not None
    for pod in rolling_update(state, "new", use_max_unavailable=several).delete:
        assert pod.metadata.labels["controller-revision-hash"] == "old"
        assert int(pod.metadata.name.removeprefix("web-")) >= (rolling.partition or 0)


@given(TEAMS)
def test_an_update_leaves_as_many_as_must_serve(state: PodsByOrdinal) -> None:
    leave = rolling_update(state, "new", use_max_unavailable=True).delete
    serving = [pod for pod in state.replicas.values() if state.is_healthy(pod)]
    left = sum(pod not in leave for pod in serving)
    assert left >= min(len(serving), len(state.ordinals) - max_unavailable(state.set))
