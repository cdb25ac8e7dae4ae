"""In which order pods come, go and are updated. Pods are letters: see `tests.harness.statefulsets`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Pod
from steersman.controllers.statefulset.order import Turn, departure, may_miss, outdated, turn
from steersman.controllers.statefulset.roster import Roster
from steersman.intent.verdict import InvalidSpec
from tests.harness.statefulsets import LETTERS, stateful, team


def take(roster: Roster) -> Turn:
    return turn(roster, lambda pod: False, lambda ordinal: False)


def ordinals(pods: tuple[Pod, ...]) -> list[int]:
    return [int(pod.metadata.name.removeprefix("web-")) for pod in pods]


@pytest.mark.parametrize(
    ("letters", "does", "waits"),
    [
        pytest.param("...", {"fill": [0]}, True, id="the first comes first"),
        pytest.param("A..", {"fill": [1]}, True, id="then the next"),
        pytest.param("N..", {}, True, id="not before the one below is ready"),
        pytest.param("R..", {}, True, id="nor before it is available"),
        pytest.param("P..", {"furnish": [0]}, True, id="a pending one may lack a claim"),
        pytest.param("T..", {}, True, id="nor while it is going"),
        pytest.param("Q..", {"furnish": [0]}, True, id="pending and going at once"),
        pytest.param("AA.", {"fill": [2]}, True, id="and so on"),
        pytest.param("A.A", {"fill": [1]}, True, id="a gap is filled"),
        pytest.param(".AA", {"fill": [0]}, True, id="from below"),
        pytest.param("NA.", {}, True, id="whatever is above"),
        pytest.param("AFA", {"repair": [1]}, True, id="one that failed is replaced"),
        pytest.param("ASA", {"repair": [1]}, True, id="and one that ended well"),
        pytest.param("AXA", {}, True, id="once it is gone"),
        pytest.param("NFA", {}, True, id="and those below serve"),
        pytest.param("AAA", {}, False, id="all are there"),
        pytest.param("AAAA", {}, False, id="more than all"),
    ],
)
def test_an_ordered_set_does_one_thing_at_a_time(letters: str, does: dict[str, Any], waits: bool) -> None:
    taken = take(team(stateful(3), letters))
    done = {name: ordinals(getattr(taken, name)) for name in ("repair", "furnish", "mend")}
    assert {name: value for name, value in {**done, "fill": [*taken.fill]}.items() if value} == does
    assert (taken.waits is not None) is waits


@pytest.mark.parametrize(
    ("letters", "does"),
    [
        ("...", {"fill": [0, 1, 2]}),
        ("N.P", {"fill": [1], "furnish": [2]}),
        ("F.X", {"fill": [1], "repair": [0]}),
        ("TQ.", {"fill": [2], "furnish": [1]}),
        ("AAA", {}),
    ],
)
def test_a_parallel_set_does_all_at_once_and_waits_for_nobody(letters: str, does: dict[str, Any]) -> None:
    taken = take(team(stateful(3, parallel=True), letters))
    done = {name: ordinals(getattr(taken, name)) for name in ("repair", "furnish")}
    assert {name: value for name, value in {**done, "fill": [*taken.fill]}.items() if value} == does
    assert taken.waits is None


def test_an_ordered_set_mends_what_it_passes() -> None:
    taken = turn(team(stateful(3), "AAN"), lambda pod: True, lambda ordinal: False)
    assert ordinals(taken.mend) == [0, 1]


@pytest.mark.parametrize(("parallel", "fill"), [(False, ()), (True, (2,))])
def test_an_ordinal_whose_claim_is_to_go_is_not_filled(parallel: bool, fill: tuple[int, ...]) -> None:
    roster = team(stateful(3, parallel=parallel), "A..")
    assert turn(roster, lambda pod: False, lambda ordinal: ordinal == 1).fill == fill


def test_a_set_may_begin_to_count_anywhere() -> None:
    roster = team(stateful(2, start=5, parallel=True), "..A")
    assert take(roster).fill == (5, 6)
    assert ordinals(departure(roster).leave) == [7]


def test_a_set_that_wants_very_many_makes_some_of_them_a_round() -> None:
    assert take(team(stateful(2**31 - 1, parallel=True), "A")).fill == tuple(range(1, 501))
    assert take(team(stateful(2**31 - 1), "A")).fill == (1,)


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
    departing = departure(team(stateful(2), letters))
    assert (ordinals(departing.leave), departing.waits is not None) == (leave, waits)


def test_a_parallel_set_shrinks_at_once() -> None:
    assert ordinals(departure(team(stateful(1, parallel=True), "NATNF")).leave) == [4, 3, 1]


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
    roster = team(stateful(3, partition=partition), letters, revisions)
    assert ordinals(outdated(roster, "new", several=False).leave) == leave


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
    roster = team(stateful(4, unavailable=unavailable), letters, revisions)
    assert ordinals(outdated(roster, "new", several=True).leave) == leave


def test_a_set_that_is_updated_by_hand_is_left_alone() -> None:
    assert outdated(team(stateful(3, on_delete=True), "AAA", "ooo"), "new", several=True).leave == ()


def test_a_number_that_is_none_is_nonsense() -> None:
    with pytest.raises(InvalidSpec, match="maxUnavailable"):
        may_miss(stateful(unavailable="many"))


# -- whatever there is ------------------------------------------------------------------------

TEAMS = st.builds(
    lambda replicas, letters, revisions, **how: team(stateful(replicas, **how), letters, revisions),
    st.integers(0, 6),
    st.text(LETTERS, max_size=8),
    st.text("no", min_size=8, max_size=8),
    parallel=st.booleans(),
    partition=st.integers(0, 7),
    unavailable=st.none() | st.integers(1, 7) | st.sampled_from(["30%", "100%"]),
)


@given(TEAMS)
def test_nobody_is_made_who_is_there_or_is_not_wanted(roster: Roster) -> None:
    fill = take(roster).fill
    assert len({*fill}) == len(fill)
    assert all(ordinal in roster.ordinals and ordinal not in roster.members for ordinal in fill)


@given(TEAMS)
def test_an_ordered_set_makes_one_pod_and_only_when_all_below_serve(roster: Roster) -> None:
    if roster.set.spec.podManagementPolicy == "Parallel":
        return
    taken = take(roster)
    assert len(taken.fill) + len(taken.repair) <= 1
    for ordinal in taken.fill:
        assert all(
            below in roster.members and roster.serves(roster.members[below])
            for below in roster.ordinals
            if below < ordinal
        )


@given(TEAMS)
def test_nobody_is_asked_to_go_twice_and_those_that_stay_are_not_sent_away(roster: Roster) -> None:
    leave = departure(roster).leave
    assert all(pod in roster.condemned and pod.metadata.deletionTimestamp is None for pod in leave)


@given(TEAMS, st.booleans())
def test_an_update_takes_only_old_pods_past_the_partition(roster: Roster, several: bool) -> None:
    rolling = roster.set.spec.updateStrategy.rollingUpdate
    assert rolling is not None
    for pod in outdated(roster, "new", several=several).leave:
        assert pod.metadata.labels["controller-revision-hash"] == "old"
        assert int(pod.metadata.name.removeprefix("web-")) >= (rolling.partition or 0)


@given(TEAMS)
def test_an_update_leaves_as_many_as_must_serve(roster: Roster) -> None:
    leave = outdated(roster, "new", several=True).leave
    serving = [pod for pod in roster.members.values() if roster.serves(pod)]
    left = sum(pod not in leave for pod in serving)
    assert left >= min(len(serving), len(roster.ordinals) - may_miss(roster.set))
