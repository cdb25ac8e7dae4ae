"""How pods are counted, and in which order they go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.kinds import (
    Condition,
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    InitContainer,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
)
from steersman.api.pods import (
    DELETION_COST,
    available_in,
    deletion_cost,
    is_active,
    is_available,
    is_ready,
    is_terminal,
    is_terminated,
    is_terminating,
    ready_since,
    restarts,
    sort_for_deletion,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def pod(
    uid: str = "u",
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: datetime | bool = False,
    restarted: int = 0,
    sidecar: int = 0,
    created: datetime | None = NOW - timedelta(days=1),
    deleted: datetime | None = None,
    cost: str | None = None,
) -> Pod:
    conditions: tuple[Condition, ...] = ()
    if ready:
        since = ready if isinstance(ready, datetime) else None
        conditions = (Condition(type="Ready", status="True", lastTransitionTime=since),)
    return Pod(
        metadata=ObjectMeta(
            name=uid,
            uid=uid,
            creationTimestamp=created,
            deletionTimestamp=deleted,
            annotations={} if cost is None else {DELETION_COST: cost},
        ),
        spec=PodSpec(nodeName=node, initContainers=(InitContainer(name="s", restartPolicy="Always"),)),
        status=PodStatus(
            phase=phase,
            conditions=conditions,
            containerStatuses=(ContainerStatus(name="c", restartCount=restarted),),
            initContainerStatuses=(
                ContainerStatus(name="s", restartCount=sidecar),
                ContainerStatus(name="setup", restartCount=99),
            ),
        ),
    )


# -- states -----------------------------------------------------------------------------------


def test_a_pod_is_ready_only_if_its_condition_says_true() -> None:
    assert is_ready(pod(ready=ago(hours=1)))
    assert not is_ready(pod())
    denied = Pod(
        status=PodStatus(conditions=(Condition(type="Ready", status="False", lastTransitionTime=NOW),))
    )
    assert not is_ready(denied)
    assert ready_since(denied) is None
    assert ready_since(pod(ready=ago(hours=1))) == ago(hours=1)


@pytest.mark.parametrize(
    ("ready", "seconds", "available", "wait"),
    [
        (False, 0, False, None),
        (True, 0, True, None),
        (True, 10, False, None),  # no telling since when: waiting does not help
        (ago(seconds=10), 10, True, None),
        (ago(seconds=9), 10, False, timedelta(seconds=1)),
        (ago(seconds=9.5), 10, False, timedelta(seconds=0.5)),
        (ago(seconds=11), 10, True, None),
        (ago(seconds=-5), 0, True, None),
        (ago(seconds=-5), 10, False, timedelta(seconds=15)),
        (LAST_DAY, 2**31 - 1, False, timedelta(seconds=2**31 - 1) + (LAST_DAY - NOW)),
    ],
)
def test_a_pod_is_available_once_it_has_been_ready_for_long_enough(
    ready: datetime | bool, seconds: int, available: bool, wait: timedelta | None
) -> None:
    it = pod(ready=ready)
    assert is_available(it, seconds, NOW) is available
    assert available_in(it, seconds, NOW) == wait


@given(st.integers(-100, 100), st.integers(0, 100), st.integers(0, 200))
def test_a_pod_that_becomes_available_does_so_at_the_instant_foretold(
    since: int, seconds: int, later: int
) -> None:
    it = pod(ready=ago(seconds=since))
    wait = available_in(it, seconds, NOW)
    then = NOW + timedelta(seconds=later)
    if wait is None:
        assert is_available(it, seconds, NOW)
    else:
        assert is_available(it, seconds, then) == (timedelta(seconds=later) >= wait)


@pytest.mark.parametrize(
    ("phase", "deleted", "active", "terminating", "terminal"),
    [
        ("Running", None, True, False, False),
        ("Pending", None, True, False, False),
        ("", None, True, False, False),
        ("Running", NOW, False, True, False),
        ("Succeeded", None, False, False, True),
        ("Failed", NOW, False, False, True),
    ],
)
def test_a_pod_counts_as_active_or_terminating_or_neither(
    phase: str, deleted: datetime | None, active: bool, terminating: bool, terminal: bool
) -> None:
    it = pod(phase=phase, deleted=deleted)
    assert (is_active(it), is_terminating(it), is_terminal(it)) == (active, terminating, terminal)


RUNNING, WAITING, ENDED = (
    ContainerStatus(state=state)
    for state in (
        ContainerState(),
        ContainerState(waiting=ContainerStateWaiting()),
        ContainerState(terminated=ContainerStateTerminated()),
    )
)


@pytest.mark.parametrize(
    ("phase", "deleted", "status", "terminated"),
    [
        ("Running", None, PodStatus(), False),
        ("Running", None, PodStatus(containerStatuses=(ENDED,)), False),
        ("Succeeded", None, PodStatus(containerStatuses=(RUNNING,)), True),
        ("Failed", None, PodStatus(), True),
        ("Running", NOW, PodStatus(), True),
        ("Running", NOW, PodStatus(containerStatuses=(RUNNING,)), False),
        ("Running", NOW, PodStatus(containerStatuses=(ENDED, WAITING)), True),
        ("Running", NOW, PodStatus(containerStatuses=(ENDED, RUNNING)), False),
        ("Running", NOW, PodStatus(initContainerStatuses=(RUNNING,), containerStatuses=(WAITING,)), False),
        ("Running", NOW, PodStatus(ephemeralContainerStatuses=(RUNNING,)), False),
    ],
)
def test_the_volumes_of_a_pod_are_free_once_no_container_runs(
    phase: str, deleted: datetime | None, status: PodStatus, terminated: bool
) -> None:
    """Upstream's IsPodTerminated of volumes."""
    it = replace(pod(deleted=deleted), status=replace(status, phase=phase))
    assert is_terminated(it) == terminated


def test_restarts_of_sidecars_count_apart_and_of_other_init_containers_not_at_all() -> None:
    assert restarts(pod(restarted=3, sidecar=2)) == (3, 2)
    assert restarts(Pod()) == (0, 0)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("10", 10),
        ("-10", -10),
        ("-008", -8),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", 0),
        ("+10", 0),
        ("008", 0),
        ("", 0),
        ("-", 0),
        ("1.5", 0),
        ("1_0", 0),
        (" 1", 0),
        ("\u0661", 0),
    ],
)
def test_a_deletion_cost_is_a_plain_integer_or_nothing(text: str, cost: int) -> None:
    assert deletion_cost(pod(cost=text)) == cost


# -- victims ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "ranks"),
    [
        # The uids are such that they alone would give the other order.
        pytest.param(pod("z", node="", ready=True, cost="9"), pod("a"), (0, 9), id="unassigned"),
        pytest.param(pod("z", phase="Pending"), pod("a", phase="Unknown"), (0, 9), id="pending"),
        pytest.param(pod("z", phase="Unknown"), pod("a"), (0, 9), id="unknown"),
        pytest.param(pod("z", cost="9"), pod("a", ready=True), (0, 9), id="not ready"),
        pytest.param(pod("z", cost="-1"), pod("a"), (0, 9), id="cheaper"),
        pytest.param(pod("z", ready=ago(days=9)), pod("a", ready=ago(seconds=1)), (3, 2), id="crowded"),
        pytest.param(
            pod("z", ready=True), pod("a", ready=ago(seconds=1), restarted=5), (0, 0), id="ready for no time"
        ),
        pytest.param(
            pod("z", ready=ago(seconds=1)),
            pod("a", ready=ago(seconds=9), restarted=5),
            (0, 0),
            id="ready shorter",
        ),
        pytest.param(
            pod("a", ready=ago(seconds=9)),
            pod("z", ready=ago(seconds=9.1), restarted=5),
            (0, 0),
            id="same magnitude",
        ),
        pytest.param(pod("z", ready=NOW, restarted=1), pod("a", ready=NOW), (0, 0), id="restarted more"),
        pytest.param(
            pod("z", restarted=1, created=ago(days=9)), pod("a", sidecar=5), (0, 0), id="regular first"
        ),
        pytest.param(pod("z", sidecar=1, created=ago(days=9)), pod("a"), (0, 0), id="sidecar restarted more"),
        pytest.param(pod("z", created=ago(hours=1)), pod("a", created=ago(hours=9)), (0, 0), id="younger"),
        pytest.param(pod("z", created=None), pod("a", created=NOW), (0, 0), id="never created"),
        pytest.param(
            pod("a", created=ago(hours=9)), pod("z", created=ago(hours=8.9)), (0, 0), id="same age, by uid"
        ),
    ],
)
def test_of_two_pods_the_one_that_is_missed_least_goes_first(
    first: Pod, second: Pod, ranks: tuple[int, int]
) -> None:
    assert sort_for_deletion([first, second], ranks, NOW) == [first, second]
    assert sort_for_deletion([second, first], ranks[::-1], NOW) == [first, second]


def test_where_comparisons_contradict_each_other_there_still_is_an_order() -> None:
    # a before b (uid), b before c (restarts), c before a (uid): upstream's rules go in a circle.
    instant = ago(seconds=9)
    a, b, c = pod("b", ready=ago(seconds=9.1)), pod("c", ready=instant, restarted=1), pod("a", ready=instant)
    order = sort_for_deletion([a, b, c], (0, 0, 0), NOW)
    assert order.index(b) < order.index(c)
    assert order == sort_for_deletion([c, b, a], (0, 0, 0), NOW)


times = st.integers(-5, 3000).map(lambda seconds: ago(seconds=seconds))
pods = st.builds(
    pod,
    st.just(""),
    node=st.sampled_from(("", "n1")),
    phase=st.sampled_from(("Pending", "Running", "Unknown", "")),
    ready=st.booleans() | times,
    restarted=st.integers(0, 2),
    sidecar=st.integers(0, 1),
    created=st.none() | times,
    cost=st.sampled_from((None, "1", "-1", "x")),
)


@st.composite
def herds(draw: st.DrawFn) -> tuple[list[Pod], dict[str, int], list[Pod]]:
    """Pods with uids, their ranks, and the same pods shuffled."""
    herd = [
        replace(p, metadata=replace(p.metadata, name=f"p{i}", uid=uid))
        for i, (p, uid) in enumerate(
            draw(st.lists(st.tuples(pods, st.uuids().map(str)), max_size=12, unique_by=lambda pair: pair[1]))
        )
    ]
    ranks = {p.metadata.uid: draw(st.integers(0, 2)) for p in herd}
    return herd, ranks, draw(st.permutations(herd))


@given(herds())
def test_the_order_is_total_and_does_not_depend_on_how_the_pods_come(
    drawn: tuple[list[Pod], dict[str, int], list[Pod]],
) -> None:
    herd, ranks, shuffled = drawn
    order = sort_for_deletion(herd, [ranks[p.metadata.uid] for p in herd], NOW)
    assert order == sort_for_deletion(shuffled, [ranks[p.metadata.uid] for p in shuffled], NOW)
    assert sorted(p.metadata.uid for p in order) == sorted(ranks)


@given(herds())
def test_ready_pods_outlive_those_that_are_not_on_equal_terms(
    drawn: tuple[list[Pod], dict[str, int], list[Pod]],
) -> None:
    herd = [p for p in drawn[0] if p.spec.nodeName and p.status.phase == "Running"]
    order = [is_ready(p) for p in sort_for_deletion(herd, [0] * len(herd), NOW)]
    assert order == sorted(order)
