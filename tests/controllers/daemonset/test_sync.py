"""What a DaemonSet makes and deletes: nodes drawn as words, one letter for each pod, the eldest first.

``N`` new and available, ``n`` new and not, ``m`` new and ready, but not for long enough; ``O``, ``o`` old and
available or not, ``p`` old and ready, but not for long enough; ``X`` on its way out, ``F`` failed,
``S`` succeeded, ``w`` new and still without a place. A node's word may begin with ``-`` (unfit), ``~`` (tainted: what
is there may stay), ``?`` (gone) or ``!`` (cannot be decoded).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Condition, ObjectMeta, Pod, PodSpec, PodStatus, RollingUpdate
from steersman.api.kinds.daemonsets import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy
from steersman.controllers.daemonset import new_status
from steersman.controllers.daemonset.nodes import (
    SHOULD_CONTINUE,
    SHOULD_NOT_RUN,
    SHOULD_RUN,
    UNKNOWN,
    NodePods,
    group_by_node,
)
from steersman.controllers.daemonset.rolling import rolling_update
from steersman.controllers.daemonset.sync import Limits, PodChanges, allows_surge, manage
from steersman.intent.verdict import InvalidSpec

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WAIT = 15
NEW, OLD = "new", "old"


def daemonset(unavailable: Any = 0, surge: Any = None, kind: str = "RollingUpdate", **spec: Any) -> DaemonSet:
    rolling = RollingUpdate(maxUnavailable=unavailable, maxSurge=surge)
    strategy = DaemonSetUpdateStrategy(type=kind, rollingUpdate=rolling if kind == "RollingUpdate" else None)
    return DaemonSet(
        metadata=ObjectMeta(name="agent", namespace="default", uid="ds", generation=2),
        spec=DaemonSetSpec(updateStrategy=strategy, minReadySeconds=WAIT, **spec),
    )


def pod(letter: str, node: str, number: int) -> Pod:
    ready = {"N": 600, "O": 600, "X": 600, "m": 5, "p": 5}.get(letter)
    conditions: tuple[Condition, ...] = ()
    if ready is not None:
        since = NOW - timedelta(seconds=ready)
        conditions = (Condition(type="Ready", status="True", lastTransitionTime=since),)
    where = PodSpec(nodeName=node)
    if letter == "w":
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = [{"matchFields": [field]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        where = PodSpec(affinity=msgspec.Raw(msgspec.json.encode({"nodeAffinity": required})))
    return Pod(
        metadata=ObjectMeta(
            name=f"{node}-{letter}{number}",
            namespace="default",
            uid=f"{node}-{letter}{number}",
            labels={"controller-revision-hash": NEW if letter in "Nnmw" else OLD},
            creationTimestamp=NOW - timedelta(seconds=1000 - number),
            deletionTimestamp=NOW if letter == "X" else None,
        ),
        spec=where,
        status=PodStatus(
            phase={"F": "Failed", "S": "Succeeded", "w": "Pending"}.get(letter, "Running"),
            conditions=conditions,
        ),
    )


def drawn(words: str) -> list[NodePods]:
    """The nodes of a drawing, called n0, n1 …"""
    fits, pods = {}, []
    for index, word in enumerate(words.split()):
        mark, letters = (word[0], word[1:]) if word[0] in "-~?!" else ("", word)
        if mark != "?":
            fits[f"n{index}"] = {"": SHOULD_RUN, "-": SHOULD_NOT_RUN, "~": SHOULD_CONTINUE, "!": UNKNOWN}[
                mark
            ]
        pods += [pod(letter, f"n{index}", number) for number, letter in enumerate(letters) if letter != "."]
    return group_by_node(fits, pods)


def told(step: PodChanges) -> str:
    """``+n1`` for a pod that is made, ``-n1-O0`` for one that goes."""
    gone = sorted(pod.metadata.name for pod in (*step.finished, *step.delete))
    return " ".join([*(f"+{node}" for node in sorted(step.create)), *(f"-{name}" for name in gone)])


# -- mending ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "step"),
    [
        ("", ""),
        (". .", "+n0 +n1"),
        ("N n", ""),
        ("O o", ""),
        ("w", ""),
        ("X", ""),
        ("F", "-n0-F0"),
        ("S", "-n0-S0"),
        ("FN", "-n0-F0"),
        ("NN nNO", "-n0-N1 -n1-N1 -n1-O2"),
        ("wN", "-n0-w0"),
        ("-. -N -nX", "-n1-N0 -n2-n0"),
        ("-F -S", "-n0-F0 -n1-S0"),
        ("~. ~N ~NN", "-n2-N1"),
        ("~F", "-n0-F0"),
        ("?N ?w ?F", "-n1-w0"),
        (". N NN NNNNN -NN", "+n0 -n2-N1 -n3-N1 -n3-N2 -n3-N3 -n3-N4 -n4-N0 -n4-N1"),
        ("N", ""),
        (".", "+n0"),
        ("FNNN", "-n0-F0 -n0-N2 -n0-N3"),
        ("-. -NNN -. -. -N . . .", "+n5 +n6 +n7 -n1-N0 -n1-N1 -n1-N2 -n4-N0"),
        ("-N -NN . NNN . N", "+n2 +n4 -n0-N0 -n1-N0 -n1-N1 -n3-N1 -n3-N2"),
    ],
)
def test_each_node_gets_the_one_pod_it_is_to_have(letters: str, step: str) -> None:
    assert told(manage(daemonset(1), drawn(letters), NEW, {}, NOW).changes) == step
    assert told(manage(daemonset(kind="OnDelete"), drawn(letters), NEW, {}, NOW).changes) == step


@pytest.mark.parametrize(
    ("letters", "step"),
    [
        (". N", "+n0"),
        ("X", "+n0"),
        ("XN", ""),
        ("~X -X", ""),
        ("On", ""),
        ("Om", ""),
        ("ON", "-n0-O0"),
        ("on", "-n0-o0"),
        ("pn", ""),
        ("pN", "-n0-p0"),
        ("NN OO", "-n0-N1 -n1-O1"),
        ("OOn", "-n0-O1"),
        ("oOn", "-n0-O1 -n0-o0"),
        ("OOm", "-n0-O1"),
        ("OON", "-n0-O0 -n0-O1"),
        (". N NN NNNNN -NN", "+n0 -n2-N1 -n3-N1 -n3-N2 -n3-N3 -n3-N4 -n4-N0 -n4-N1"),
        ("On O O O X", "+n4"),
        (". OOn N . .", "+n0 +n3 +n4 -n1-O1"),
        (". oOn N . .", "+n0 +n3 +n4 -n1-O1 -n1-o0"),
        (". OOm N . .", "+n0 +n3 +n4 -n1-O1"),
        (". OON N . .", "+n0 +n3 +n4 -n1-O0 -n1-O1"),
        ("On On O O O", ""),
        ("ON ON O O O", "-n0-O0 -n1-O0"),
        ("N N ON ON O", "-n2-O0 -n3-O0"),
        ("N N N N ON", "-n4-O0"),
        ("on on on on on", "-n0-o0 -n1-o0 -n2-o0 -n3-o0 -n4-o0"),
        ("Om Om On O o", ""),
        ("ON ON On O on", "-n0-O0 -n1-O0 -n4-o0"),
        ("N N ON ON N", "-n2-O0 -n3-O0"),
        ("N N N N N", ""),
        ("F", "+n0 -n0-F0"),
    ],
)
def test_with_a_surge_a_node_may_have_two_until_the_new_one_serves(letters: str, step: str) -> None:
    assert told(manage(daemonset(0, 1), drawn(letters), NEW, {}, NOW).changes) == step


def test_a_pod_that_has_ended_and_is_on_its_way_out_is_nobodys_business() -> None:
    leaving = pod("F", "n0", 0)
    leaving = msgspec.structs.replace(
        leaving, metadata=msgspec.structs.replace(leaving.metadata, deletionTimestamp=NOW)
    )
    (node_pods,) = group_by_node({"n0": SHOULD_RUN}, [leaving])
    assert node_pods.pods == ()
    assert told(manage(daemonset(1), [node_pods], NEW, {}, NOW).changes) == "+n0"


def test_a_pod_that_is_for_no_node_is_left_alone() -> None:
    (node_pods,) = group_by_node({"n0": SHOULD_RUN}, [pod("w", "", 0)])
    assert node_pods.pods == ()


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unavailable", "surge", "desired", "limits"),
    [
        (0, None, 0, Limits(0, 0)),
        (1, None, 2, Limits(0, 1)),
        (0, None, 2, Limits(0, 1)),
        (0, 0, 2, Limits(0, 1)),
        ("50%", None, 2, Limits(0, 1)),
        ("50%", 0, 3, Limits(0, 2)),
        (0, "50%", 2, Limits(1, 0)),
        (0, "100%", 2, Limits(2, 0)),
        (0, "1%", 5000, Limits(50, 0)),
        ("10%", None, 5, Limits(0, 1)),
        (7, None, 2, Limits(0, 7)),
    ],
)
def test_limits_are_numbers_or_shares_rounded_up_and_never_both_nothing(
    unavailable: Any, surge: Any, desired: int, limits: Limits
) -> None:
    assert Limits.of(daemonset(unavailable, surge), desired) == limits


def test_without_limits_one_node_at_a_time_may_do_without() -> None:
    unsaid = DaemonSet(spec=DaemonSetSpec(updateStrategy=DaemonSetUpdateStrategy(type="RollingUpdate")))
    assert Limits.of(unsaid, 3) == Limits(0, 1)


@pytest.mark.parametrize(("unavailable", "surge"), [("many", 0), (None, 0), (0, "some")])
def test_limits_that_are_no_numbers_are_nonsense(unavailable: Any, surge: Any) -> None:
    with pytest.raises(InvalidSpec, match="invalid value for Max"):
        Limits.of(daemonset(unavailable, surge), 3)


@pytest.mark.parametrize(
    ("surge", "kind", "allowed"),
    [
        (1, "RollingUpdate", True),
        ("1%", "RollingUpdate", True),
        (0, "RollingUpdate", False),
        ("0%", "RollingUpdate", False),
        (None, "RollingUpdate", False),
        ("some", "RollingUpdate", False),
        (1, "OnDelete", False),
    ],
)
def test_a_surge_is_allowed_where_it_is_more_than_nothing(surge: Any, kind: str, allowed: bool) -> None:
    assert allows_surge(daemonset(0, surge, kind)) is allowed


# -- rolling ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "letters", "step"),
    [
        (1, "", ""),
        (2, "O O O O O", "-n0-O0 -n1-O0"),
        (2, "X X O O O", ""),
        (2, "n n O O O", ""),
        (2, "m N O O O", "-n2-O0"),
        (2, "N N O O O", "-n2-O0 -n3-O0"),
        (2, ". n O O O", ""),
        (2, ". N O O O", "-n2-O0"),
        (1, "o o o o o", "-n0-o0 -n1-o0 -n2-o0 -n3-o0 -n4-o0"),
        (1, "p O", "-n0-p0"),
        (2, "p O O", "-n0-p0 -n1-O0"),
        (1, "o O", "-n0-o0"),
        (1, "On O", ""),
        (2, "NN O O", "-n1-O0"),
        (2, "OO O O", "-n1-O0"),
        (3, "-O O ~O O", "-n0-O0 -n1-O0 -n2-O0"),
        (1, "?n O", ""),
        (1, "?N O", "-n1-O0"),
        (1, "-. O", "-n1-O0"),
        ("50%", "O O O", "-n0-O0 -n1-O0"),
        ("100%", "O O O", "-n0-O0 -n1-O0 -n2-O0"),
        (0, "O O", "-n0-O0"),
        (2, "N N N N O", "-n4-O0"),
        (2, "N N N N N", ""),
        (3, "n n n O O", ""),
        (2, "o o O O O", "-n0-o0 -n1-o0"),
        (3, "o o o o o", "-n0-o0 -n1-o0 -n2-o0 -n3-o0 -n4-o0"),
        (3, "n n n n n", ""),
    ],
)
def test_old_pods_make_room_as_far_as_nodes_may_do_without(most: Any, letters: str, step: str) -> None:
    assert told(rolling_update(daemonset(most), drawn(letters), NEW, NOW)) == step


@pytest.mark.parametrize(
    ("most", "letters", "step"),
    [
        (2, "O O O", "+n0 +n1"),
        (2, "On O O", "+n1"),
        (2, "On Om O", ""),
        (2, "ON Om O", "+n2 -n0-O0"),
        (3, "o o o o o", "+n0 +n1 +n2 +n3 +n4"),
        (1, "On o", "+n1"),
        (1, "On p", "+n1"),
        (1, "N O", "+n1"),
        (1, "n O", "+n1"),
        (1, "X O", "+n1"),
        (1, "OO O", ""),
        (2, "NN O O", "+n1"),
        ("50%", "O O O", "+n0 +n1"),
        ("100%", "O O", "+n0 +n1"),
        # Pods move to other nodes: what serves stays until as many serve there.
        (1, "~O n", ""),
        (1, "~O N", "-n0-O0"),
        (1, "~O ~O N", "-n0-O0 -n1-O0"),
        (1, "~O ~O N n", "-n0-O0"),
        (1, "~o n", "-n0-o0"),
        (1, "~o O", "+n1 -n0-o0"),
        (1, "?O O", "+n1 -n0-O0"),
        (1, "?o O", "+n1 -n0-o0"),
    ],
)
def test_new_pods_come_beside_old_ones_as_far_as_the_surge_goes(most: Any, letters: str, step: str) -> None:
    assert told(rolling_update(daemonset(0, most), drawn(letters), NEW, NOW)) == step


@pytest.mark.parametrize("most", range(12))
def test_old_pods_that_serve_stay_while_others_do_not(most: int) -> None:
    """Ten old pods serve and ten do not: those go, and of the others as many as may be missing besides."""
    step = rolling_update(daemonset(most), drawn(" ".join("O" * 10 + "o" * 10)), NEW, NOW)
    assert sum("-o" in pod.metadata.name for pod in step.delete) == 10
    assert sum("-O" in pod.metadata.name for pod in step.delete) == max(most - 10, 0)


@pytest.mark.parametrize(
    ("letters", "step"),
    [
        ("!O O O", "-n1-O0"),
        ("!o O O", ""),
        ("!. O O", "-n1-O0"),
        ("!O N N", ""),
    ],
    ids=[
        "others come first",
        "its pod counts as unavailable",
        "without a pod it does not count",
        "it is left",
    ],
)
def test_a_rollout_goes_on_beside_a_node_that_cannot_be_decoded(letters: str, step: str) -> None:
    changes = rolling_update(daemonset(1), drawn(letters), NEW, NOW)
    assert told(changes.without(["n0"])) == step


def test_old_pods_that_do_not_serve_go_however_many_new_ones_do_not() -> None:
    step = rolling_update(daemonset(10), drawn(" ".join("O" * 10 + "o" * 2 + "n" * 88)), NEW, NOW)
    assert told(step) == "-n10-o0 -n11-o0"


@pytest.mark.parametrize(
    ("most", "letters", "step"),
    [
        (2, "O O O O O", "+n0 +n1"),
        (2, "On On O O O", ""),
        (2, "N N O O O", "+n2 +n3"),
        (2, "N N On On O", ""),
        (2, "N N N N O", "+n4"),
        (2, "N N N N On", ""),
        (2, "N N N N N", ""),
        # One node has a taint that the new template does not tolerate.
        (1, "~O O O O O", "+n1 -n0-O0"),
        (1, "~. On O O O", ""),
        (1, "~. N O O O", "+n2"),
        (1, "~. N N N O", "+n4"),
        (1, "~. N N N N", ""),
        (3, "o o o o o", "+n0 +n1 +n2 +n3 +n4"),
        (3, "O O O O O", "+n0 +n1 +n2"),
        (3, "Om Om On O o", "+n4"),
        (3, "N N On O n", "+n3"),
    ],
)
def test_a_rollout_with_a_surge_step_by_step(most: int, letters: str, step: str) -> None:
    assert told(rolling_update(daemonset(0, most), drawn(letters), NEW, NOW)) == step


# -- counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "desired", "current", "misscheduled", "ready", "updated", "available"),
    [
        ("", 0, 0, 0, 0, 0, 0),
        (". .", 2, 0, 0, 0, 0, 0),
        ("N m n w", 4, 4, 0, 2, 4, 1),
        ("O p o X", 4, 4, 0, 3, 0, 2),
        ("-N ~N -.", 0, 0, 2, 0, 0, 0),
        ("On nO", 2, 2, 0, 1, 1, 1),
        ("?N N", 1, 1, 0, 1, 1, 1),
        ("F S", 2, 2, 0, 0, 0, 0),
    ],
)
def test_the_first_pod_of_each_node_counts(
    letters: str, desired: int, current: int, misscheduled: int, ready: int, updated: int, available: int
) -> None:
    status = new_status(daemonset(1), drawn(letters), NEW, NOW)
    assert (status.desiredNumberScheduled, status.currentNumberScheduled) == (desired, current)
    assert (status.numberMisscheduled, status.numberReady) == (misscheduled, ready)
    assert (status.updatedNumberScheduled, status.numberAvailable) == (updated, available)
    assert status.numberUnavailable == desired - available
    assert status.observedGeneration == 2


# -- whatever the nodes are like ----------------------------------------------------------------

words = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", "-", "~", "?"]),
        st.text("NnmOopXFSw", max_size=3).map(lambda text: text or "."),
    ),
)
clusters = st.lists(words, max_size=7).map(" ".join)
limits = st.one_of(st.integers(0, 4), st.sampled_from(["1%", "30%", "100%"]))


def kept(nodes: Iterable[NodePods], step: PodChanges) -> dict[str, list[Pod]]:
    """The pods on each node that nobody has asked to go, once a step is taken."""
    gone = {pod.metadata.uid for pod in (*step.finished, *step.delete)}
    return {
        node_pods.node: [pod for pod in node_pods.not_deleted if pod.metadata.uid not in gone]
        for node_pods in nodes
    }


def serves(pod: Pod) -> bool:
    return pod.metadata.name.split("-")[1][0] in "NO"


@given(clusters, limits)
def test_without_a_surge_no_node_keeps_two_pods_that_run(letters: str, most: Any) -> None:
    nodes = drawn(letters)
    step = manage(daemonset(most), nodes, NEW, {}, NOW).changes
    after = kept(nodes, step)
    for node_pods in nodes:
        if node_pods.exists:
            assert len(after[node_pods.node]) <= 1
        # One is made only where there is none, and not even one on its way out.
        assert node_pods.node not in step.create or not node_pods.pods


@given(clusters, st.integers(1, 4))
def test_with_a_surge_no_node_keeps_two_pods_of_one_sort(letters: str, most: int) -> None:
    nodes = drawn(letters)
    step = manage(daemonset(0, most), nodes, NEW, {}, NOW).changes
    after = kept(nodes, step)
    for node_pods in nodes:
        if node_pods.exists:
            sorts = [pod.metadata.labels["controller-revision-hash"] for pod in after[node_pods.node]]
            assert len(sorts) == len(set(sorts))
            assert node_pods.node not in step.create or not sorts


@given(clusters, limits)
def test_no_pod_is_made_where_none_should_be_and_none_stays_there(letters: str, most: Any) -> None:
    for strategy in (daemonset(most), daemonset(0, most), daemonset(kind="OnDelete")):
        nodes = drawn(letters)
        step = manage(strategy, nodes, NEW, {}, NOW).changes
        after = kept(nodes, step)
        for node_pods in nodes:
            assert node_pods.fit.should_run or node_pods.node not in step.create
            assert node_pods.fit.should_continue or not node_pods.exists or not after[node_pods.node]


@given(clusters, limits)
def test_a_rollout_never_takes_more_that_serves_than_nodes_may_do_without(letters: str, most: Any) -> None:
    nodes = drawn(letters)
    if manage(daemonset(most), nodes, NEW, {}, NOW).changes:
        return  # it is not rolled before all is mended
    step = rolling_update(daemonset(most), nodes, NEW, NOW)
    wanted = [node_pods for node_pods in nodes if node_pods.fit.should_run or node_pods.pods]
    allowed = Limits.of(daemonset(most), sum(node_pods.fit.should_run for node_pods in nodes)).max_unavailable
    before = sum(not any(map(serves, node_pods.not_deleted)) for node_pods in wanted)
    taken = sum(map(serves, step.delete))
    assert not step.create
    assert taken == 0 or before + taken <= allowed
    assert all("-N" not in pod.metadata.name for pod in step.delete)


@given(clusters, st.integers(1, 4))
def test_a_surge_never_takes_the_last_pod_that_serves_from_a_node_that_should_have_one(
    letters: str, most: int
) -> None:
    nodes = drawn(letters)
    if manage(daemonset(0, most), nodes, NEW, {}, NOW).changes:
        return
    step = rolling_update(daemonset(0, most), nodes, NEW, NOW)
    after = kept(nodes, step)
    beside = 0
    for node_pods in nodes:
        if node_pods.fit.should_run and any(map(serves, node_pods.not_deleted)):
            assert any(map(serves, after[node_pods.node]))
        if node_pods.node in step.create:
            assert node_pods.fit.should_run
            beside += any(map(serves, node_pods.not_deleted))
    assert beside <= most
    desired = sum(node_pods.fit.should_run for node_pods in nodes)
    serving = sum(any(map(serves, node_pods.not_deleted)) for node_pods in nodes)
    left = sum(any(map(serves, pods)) for pods in after.values())
    assert left >= min(serving, desired)
