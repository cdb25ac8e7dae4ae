"""Scaling during a rollout, and while paused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Deployment, DeploymentStatus, ReplicaSet
from steersman.controllers.deployment import scale
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, size
from tests.harness.workloads import deployment, replicaset


def sized_for(owner: Deployment, rs: ReplicaSet) -> ReplicaSet:
    return scale.with_replicas_annotations(rs, Limits.of(owner))


def after_scaling(
    now: Deployment, before: Deployment, new: int | None, old: tuple[int, ...]
) -> tuple[int | None, tuple[int, ...]]:
    """The sizes of the new and the old sets, the oldest first, when ``before`` becomes ``now``."""
    sets = [replicaset(now, f"old{i}", count, age=len(old) - i) for i, count in enumerate(old)]
    if new is not None:
        sets.append(replicaset(now, "v1", new))
    replicasets = ReplicaSets.of(now, [sized_for(before, rs) for rs in sets])
    after = scale.scale(replicasets, Limits.of(now))
    return (size(after.new) if after.new is not None else None), tuple(map(size, after.old))


@pytest.mark.parametrize(
    ("before", "now", "new", "old", "expected"),
    [
        pytest.param(10, 12, 10, (), (12, ()), id="one set gets it all"),
        pytest.param(10, 5, 10, (), (5, ()), id="or loses it"),
        pytest.param(5, 10, 2, (3,), (4, (6,)), id="both double"),
        pytest.param(5, 3, 2, (3,), (1, (2,)), id="both shrink"),
        pytest.param(9, 4, 8, (1,), (4, (0,)), id="the small one goes"),
        pytest.param(7, 10, 2, (2, 3), (3, (3, 4)), id="three sets"),
        pytest.param(13, 8, 2, (3, 8), (1, (2, 5)), id="three sets shrink"),
        pytest.param(3, 4, 1, (1, 1), (2, (1, 1)), id="among equals the youngest gains"),
        pytest.param(3, 2, 1, (1, 1), (1, (0, 1)), id="among equals the oldest loses"),
        pytest.param(4, 5, None, (2, 2), (None, (2, 3)), id="without a new set the youngest gains"),
        pytest.param(6, 0, 3, (1, 2), (0, (0, 0)), id="down to nought"),
        pytest.param(6, 6, 0, (0, 0), (6, (0, 0)), id="up from nought: the new set alone"),
        pytest.param(3, 3, None, (0, 0), (None, (0, 3)), id="or the youngest, without a new one"),
        pytest.param(10, 14, None, (3, 7), (None, (4, 10)), id="size and template change together"),
    ],
)
def test_every_set_keeps_its_share(
    before: int,
    now: int,
    new: int | None,
    old: tuple[int, ...],
    expected: tuple[int | None, tuple[int, ...]],
) -> None:
    assert (
        after_scaling(
            deployment(now, surge=0, unavailable=1), deployment(before, surge=0, unavailable=1), new, old
        )
        == expected
    )


@pytest.mark.parametrize(
    ("before", "now", "new", "old", "expected"),
    [
        pytest.param((10, 2), (20, 2), 6, (6,), (11, (11,)), id="surge pods are shared too"),
        pytest.param((10, 3), (50, 6), 5, (8,), (22, (34,)), id="size and surge change together"),
    ],
)
def test_the_surge_is_part_of_the_whole(
    before: tuple[int, int],
    now: tuple[int, int],
    new: int,
    old: tuple[int, ...],
    expected: tuple[int, tuple[int, ...]],
) -> None:
    was = deployment(before[0], surge=before[1], unavailable=0)
    becomes = deployment(now[0], surge=now[1], unavailable=0)
    assert after_scaling(becomes, was, new, old) == expected


def test_a_full_but_broken_new_set_leaves_the_old_pods_alone() -> None:
    owner = deployment(2, surge=1, unavailable=1)
    sets = [replicaset(owner, "v0", 1, age=5), replicaset(owner, "v1", 2, available=0)]
    replicasets = ReplicaSets.of(owner, [sized_for(owner, rs) for rs in sets])
    assert list(map(size, scale.scale(replicasets, Limits.of(owner)))) == [1, 2]


def test_beside_a_full_new_set_adopted_pods_go() -> None:
    owner = deployment(2, surge=1, unavailable=1)
    sets = [replicaset(owner, "v0", 1, age=5), replicaset(owner, "v1", 2)]
    replicasets = ReplicaSets.of(owner, [sized_for(owner, rs) for rs in sets])
    assert list(map(size, scale.scale(replicasets, Limits.of(owner)))) == [0, 2]


@pytest.mark.parametrize("note", ["", "0", "-3", "many", "3.5", "99999999999"])
def test_where_a_set_has_no_useful_note_the_status_serves(note: str) -> None:
    owner = deployment(10, surge=0, unavailable=1, status=DeploymentStatus(replicas=5))
    annotations = (
        {scale.DESIRED_REPLICAS: "5", scale.MAX_REPLICAS: note} if note else {scale.DESIRED_REPLICAS: "5"}
    )
    sets = [
        replicaset(owner, "v0", 3, age=5, annotations=annotations),
        replicaset(owner, "v1", 2, annotations=annotations),
    ]
    after = scale.scale(ReplicaSets.of(owner, sets), Limits.of(owner))
    assert list(map(size, after)) == [6, 4]


def test_every_active_set_notes_the_new_wish_even_where_its_size_stays() -> None:
    before, now = deployment(3, surge=0, unavailable=1), deployment(4, surge=0, unavailable=1)
    sets = [replicaset(now, "v0", 1, age=5), replicaset(now, "v1", 2)]
    replicasets = ReplicaSets.of(now, [sized_for(before, rs) for rs in sets])
    after = scale.scale(replicasets, Limits.of(now))
    assert [rs.metadata.annotations[scale.DESIRED_REPLICAS] for rs in after] == ["4", "4"]
    assert not scale.is_scaling_event(after)


@pytest.mark.parametrize(
    ("noted", "wanted", "scaling"),
    [
        pytest.param("3", 3, False, id="as it was"),
        pytest.param("3", 5, True, id="more are wanted"),
        pytest.param(None, 5, False, id="no note, no telling"),
        pytest.param("x", 5, False, id="a broken note tells nothing"),
    ],
)
def test_a_wish_that_differs_from_the_note_is_a_scaling(
    noted: str | None, wanted: int, scaling: bool
) -> None:
    owner = deployment(wanted)
    annotations = {} if noted is None else {scale.DESIRED_REPLICAS: noted}
    assert (
        scale.is_scaling_event(ReplicaSets.of(owner, [replicaset(owner, annotations=annotations)])) is scaling
    )


def test_a_set_without_pods_says_nothing_about_scaling() -> None:
    owner = deployment(5, "v2")
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", 0, annotations={scale.DESIRED_REPLICAS: "3"})])
    assert not scale.is_scaling_event(sets)


def test_a_note_that_is_outdated_on_a_set_of_the_right_size_is_corrected() -> None:
    """Else the Deployment would be taken for one that is being scaled, and never roll out again."""
    owner = deployment(5, "v2")
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", 5, annotations={scale.DESIRED_REPLICAS: "3"})])
    assert scale.is_scaling_event(sets)
    after = scale.scale(sets, Limits.of(owner))
    assert list(map(size, after)) == [5]
    assert not scale.is_scaling_event(after)


def test_an_outdated_note_on_a_set_without_pods_is_left() -> None:
    owner = deployment(0, "v2", paused=True)
    sets = ReplicaSets.of(owner, [replicaset(owner, "v1", 0, annotations={scale.DESIRED_REPLICAS: "3"})])
    after = scale.scale(sets, Limits.of(owner))
    assert after.old[0] is sets.old[0]


def test_recreate_with_several_active_sets_is_left_to_its_rollout() -> None:
    owner = deployment(5, "v2", strategy="Recreate")
    notes = {scale.DESIRED_REPLICAS: "3"}
    sets = ReplicaSets.of(
        owner,
        [replicaset(owner, "v1", 2, annotations=notes), replicaset(owner, "v2", 1, annotations=notes)],
    )
    assert not scale.is_scaling_event(sets)


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    notes=st.lists(st.integers(0, 60), min_size=5, max_size=5),
    replicas=st.integers(0, 60),
    surge=st.integers(0, 10),
    seen=st.integers(0, 60),
)
def test_shares_add_up_to_the_whole_whatever_the_notes_say(
    counts: list[int], notes: list[int], replicas: int, surge: int, seen: int
) -> None:
    owner = deployment(replicas, surge=surge, unavailable=1, status=DeploymentStatus(replicas=seen))
    sets = [
        replicaset(owner, f"v{i}", count, age=i, annotations={scale.MAX_REPLICAS: str(note)})
        for i, (count, note) in enumerate(zip(counts, notes, strict=False))
    ]
    limits = Limits.of(owner)
    shares = scale.proportional_sizes(owner, sets, limits)
    assert all(wanted >= 0 for _, wanted in shares)
    assert sum(wanted for _, wanted in shares) == (limits.max_total if replicas else 0)
    if limits.max_total <= sum(counts):
        assert all(wanted <= size(rs) for rs, wanted in shares), "none grows while the whole shrinks"


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    replicas=st.integers(1, 60),
)
def test_a_set_strays_from_its_exact_share_by_no_more_than_rounding(counts: list[int], replicas: int) -> None:
    owner = deployment(replicas, surge=0, unavailable=1)
    before = sum(counts)
    sets = [
        replicaset(owner, f"v{i}", count, age=i, annotations={scale.MAX_REPLICAS: str(before)})
        for i, count in enumerate(counts)
    ]
    for rs, wanted in scale.proportional_sizes(owner, sets, Limits.of(owner)):
        assert abs(wanted - size(rs) * replicas / before) <= len(sets)


def test_scaling_does_not_touch_what_it_need_not() -> None:
    owner = deployment(3)
    sets = ReplicaSets.of(owner, [sized_for(owner, replicaset(owner, "v1", 3))])
    after = scale.scale(sets, Limits.of(owner))
    assert after.new is sets.new
