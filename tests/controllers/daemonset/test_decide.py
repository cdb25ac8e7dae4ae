"""Rounds of daemonset-controller: actions and verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, Cause, Conflict, Forbidden, NotFound
from steersman.api.kinds import (
    LabelSelector,
    NewPod,
)
from steersman.api.kinds.daemonsets import (
    DaemonSet,
    DaemonSetStatus,
)
from steersman.api.kinds.nodes import Node, Taint
from steersman.api.scheme import Key
from steersman.controllers.daemonset import Seen, controller, decide, enqueue_for_node
from steersman.controllers.daemonset.backoff import FailureMemory, remaining
from steersman.controllers.daemonset.sync import BURST
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, Read, UpdateStatus
from steersman.intent.controller import Change, memory_of
from steersman.intent.settings import Settings
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from steersman.testing.decision_driver import StaticCaches, walk
from tests.harness.daemonsets import NOW, OWNER, daemonset, node, pod, revision

ENQUEUE_FOR_POD = controller.watches[1].to
ENQUEUE_FOR_REVISION = controller.watches[2].to


def seen(*objects: Any) -> Seen:
    """What is observed of some objects."""
    found = controller.see(StaticCaches(controller, *objects), Key("default", "agent"))
    assert found is not None
    return found


def of(actions: list[Action[Any]], kind: type) -> list[Any]:
    return [action for action in actions if isinstance(action, kind)]


def said(actions: list[Action[Any]]) -> list[tuple[str, str, str]]:
    return [(one.type, one.reason, one.message) for one in of(actions, Emit)]


# -- the first round ------------------------------------------------------------------------------


def test_a_new_daemonset_gets_a_revision_and_a_pod_on_every_node_that_is_to_have_one() -> None:
    tainted = node("n3", Taint(key="gpu", effect="NoSchedule"))
    actions, verdict = walk(decide(seen(daemonset(), node("n1"), node("n2"), tainted), NOW))
    kept, *made = of(actions, Create)
    assert kept.body.revision == 1
    assert kept.body.metadata.labels.keys() == {"app", "controller-revision-hash"}
    assert kept.body.metadata.ownerReferences == (OWNER,)
    hash_ = kept.body.metadata.labels["controller-revision-hash"]
    assert kept.body.metadata.name == f"agent-{hash_}"
    bodies = [one.body for one in made]
    assert all(isinstance(body, NewPod) for body in bodies)
    assert [body.metadata.labels["controller-revision-hash"] for body in bodies] == [hash_, hash_]
    assert [b'"values":["n1"]' in bytes(body.spec) for body in bodies] == [True, False]
    assert said(actions) == [
        ("Normal", "SuccessfulCreate", "Created pod: agent-00002"),
        ("Normal", "SuccessfulCreate", "Created pod: agent-00003"),
    ]
    assert not of(actions, UpdateStatus)
    assert verdict == Rest("created 2 and deleted 0 daemon pods")


def test_what_is_there_is_counted_once() -> None:
    there = daemonset(), revision(1), node("n1"), node("n2"), pod("n1"), pod("n2", ready=None)
    actions, verdict = walk(decide(seen(*there), NOW))
    (written,) = actions
    assert isinstance(written, UpdateStatus)
    assert written.status == DaemonSetStatus(
        currentNumberScheduled=2,
        numberMisscheduled=0,
        desiredNumberScheduled=2,
        numberReady=1,
        observedGeneration=2,
        updatedNumberScheduled=2,
        numberAvailable=1,
        numberUnavailable=1,
    )
    assert verdict == Rest("1 of 2 daemon pods available")


def test_a_pod_that_is_not_ready_for_long_enough_is_waited_for() -> None:
    there = daemonset(minReadySeconds=30), revision(1), node(), pod(ready=10)
    actions, verdict = walk(decide(seen(*there), NOW))
    assert of(actions, UpdateStatus)[0].status.numberReady == 1
    assert of(actions, UpdateStatus)[0].status.numberAvailable == 0
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=20)


def test_as_many_pods_are_made_and_deleted_in_a_round_as_upstream_would() -> None:
    nodes = [node(f"n{number}") for number in range(BURST + 50)]
    many = [pod("n0", name=f"p{number}") for number in range(BURST + 60)]
    actions, _ = walk(decide(seen(daemonset(), revision(1), *nodes, *many), NOW))
    assert (len(of(actions, Create)), len(of(actions, Delete)), BURST) == (250, 250, 250)
    assert len(of(actions, UpdateStatus)) == 1, "somebody may look while it goes on"


def test_a_refusal_is_told_once_counted_and_raised() -> None:
    nodes = [node(f"n{number}") for number in range(9)]
    said_until: list[Action[Any]] = []
    with pytest.raises(Forbidden):
        walk(
            decide(seen(daemonset(), revision(1), *nodes), NOW),
            {Create: Forbidden("exceeded quota")},
            recorded=said_until,
        )
    assert said(said_until) == [("Warning", "FailedCreate", "Error creating: exceeded quota")]
    assert len(of(said_until, Create)) == 1, "a hopeless wish costs one request"
    assert of(said_until, UpdateStatus)[0].status.desiredNumberScheduled == 9


def test_nothing_is_told_or_tried_again_in_a_namespace_that_goes() -> None:
    gone = Forbidden("is being terminated", causes=(Cause("NamespaceTerminating", "", ""),))
    actions, verdict = walk(decide(seen(daemonset(), revision(1), node()), NOW), {Create: gone})
    assert said(actions) == []
    assert isinstance(verdict, Rest)


def test_a_pod_that_is_gone_already_is_gone() -> None:
    there = daemonset(), revision(1), node(), pod(name="a", age=9), pod(name="b", age=8)
    actions, _ = walk(decide(seen(*there), NOW), {Delete: NotFound("gone")})
    assert [one.target.metadata.name for one in of(actions, Delete)] == ["b"]
    assert said(actions) == []


# -- what stands in the way -----------------------------------------------------------------------


def test_one_that_selects_all_pods_is_told_so_and_left_alone() -> None:
    actions, verdict = walk(decide(seen(daemonset(labels={}), node()), NOW))
    message = "This daemon set is selecting all pods. A non-empty selector is required."
    assert said(actions) == [("Warning", "SelectingAll", message)]
    assert len(actions) == 1
    assert isinstance(verdict, Rest)


@pytest.mark.parametrize(
    "odd",
    [
        daemonset(selector=None),
        daemonset(selector=LabelSelector(matchLabels={"a b": "c"})),
        daemonset(labels={"app": "other"}),
        daemonset(meta={"deletionTimestamp": NOW}),
    ],
    ids=["no selector", "nonsense", "selects other pods", "being deleted"],
)
def test_nothing_is_done_about_one_that_goes_or_cannot_be_understood(odd: DaemonSet) -> None:
    actions, verdict = walk(decide(seen(odd, node(), pod("n9"), pod("n8", owned=False)), NOW))
    assert actions == []
    assert isinstance(verdict, Rest)


def test_limits_nobody_understands_fail_the_round_after_the_status_is_written() -> None:
    there = daemonset(unavailable="many"), revision(1), node(), pod()
    until: list[Action[Any]] = []
    with pytest.raises(InvalidSpec):
        walk(decide(seen(*there), NOW), recorded=until)
    assert [type(action) for action in until] == [UpdateStatus]


# -- adoption -------------------------------------------------------------------------------------


def test_pods_are_adopted_and_released_by_their_labels() -> None:
    orphan, stranger = pod("n1", owned=False), pod("n2", app="other")
    actions, _ = walk(decide(seen(daemonset(), revision(1), node("n1"), orphan, stranger), NOW))
    assert [type(action) for action in actions] == [Read, Patch, Patch, UpdateStatus]
    released, adopted = of(actions, Patch)
    assert released.target is stranger
    assert adopted.target is orphan
    assert adopted.body["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert of(actions, UpdateStatus)[0].status.currentNumberScheduled == 1


# -- failures -------------------------------------------------------------------------------------


def test_a_pod_that_failed_is_told_of_and_deleted() -> None:
    there = daemonset(), revision(1), node(), pod(phase="Failed")
    actions, _ = walk(decide(seen(*there), NOW))
    assert said(actions) == [
        (
            "Warning",
            "FailedDaemonPod",
            "Found failed daemon pod default/on-n1 on node n1, will try to kill it",
        ),
        ("Normal", "SuccessfulDelete", "Deleted pod: on-n1"),
    ]


def test_a_pod_that_succeeded_is_told_of_and_deleted() -> None:
    actions, _ = walk(decide(seen(daemonset(), revision(1), node(), pod(phase="Succeeded")), NOW))
    assert said(actions)[0] == (
        "Normal",
        "SucceededDaemonPod",
        "Found succeeded daemon pod default/on-n1 on node n1, will try to delete it",
    )


def failing(memory: FailureMemory, ages: list[float], **status: Any) -> timedelta:
    """How long the last of some pods is left alone that failed on a node one after the other."""
    known: Any = {}
    for number, age in enumerate(ages):
        last = pod(phase="Failed", age=age, name=f"p{number}")
        known = memory.record(daemonset(status=status), [last], {"n1": None})
    return remaining(last, known, "n1", NOW)


@pytest.mark.parametrize(
    ("ages", "seconds"),
    [
        ([0], 0),
        ([5, 0], 1),
        ([5, 3, 0], 2),
        ([9, 8, 6, 0], 4),
        ([9, 8, 6, 3], 1),
        ([9, 8, 6, 5], 0),
        ([float(age) for age in range(20, -1, -1)], 900),
        ([1801, 0], 0),
        ([1800, 0], 1),
        ([5000, 4000, 1900, 100, 0], 2),
        ([2000, 1900], 0),
    ],
)
def test_the_wait_after_each_failure_on_a_node_doubles_up_to_a_quarter_of_an_hour(
    ages: list[float], seconds: float
) -> None:
    assert failing(FailureMemory(), ages) == timedelta(seconds=seconds)


def test_another_generation_and_a_node_that_was_away_start_anew() -> None:
    memory = FailureMemory()
    assert failing(memory, [9, 8, 0], observedGeneration=1) > timedelta()
    assert failing(memory, [0], observedGeneration=2) == timedelta()
    assert failing(memory, [9, 8, 0], observedGeneration=2) > timedelta()
    assert memory.record(daemonset(), [], {"n2": None}) == {}
    assert len(memory) == 0


def test_looking_twice_at_a_failure_is_no_second_failure() -> None:
    memory = FailureMemory()
    assert failing(memory, [0]) == failing(memory, [0]) == timedelta()


def test_a_daemonset_that_is_gone_is_forgotten() -> None:
    caches = StaticCaches(controller, daemonset(), node(), pod(phase="Failed"))
    assert controller.see(caches, Key("default", "agent")) is not None
    assert len(memory_of(caches, FailureMemory)) == 1
    caches.remove(daemonset())
    assert controller.see(caches, Key("default", "agent")) is None
    assert len(memory_of(caches, FailureMemory)) == 0


def test_a_pod_that_failed_again_is_left_alone_for_a_while() -> None:
    caches = StaticCaches(controller, daemonset(), revision(1), node(), pod(phase="Failed", name="a", age=5))
    controller.see(caches, Key("default", "agent"))
    caches.remove(pod(name="a"))
    caches.put(pod(phase="Failed", name="b", age=0.25))
    found = controller.see(caches, Key("default", "agent"))
    assert found is not None
    actions, verdict = walk(decide(found, NOW))
    assert [type(action) for action in actions] == [UpdateStatus]
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=0.75)


# -- history --------------------------------------------------------------------------------------

OTHER = msgspec.Raw(b'{"containers":[{"name":"c","image":"j"}]}')
THIRD = msgspec.Raw(b'{"containers":[{"name":"c","image":"k"}]}')


def test_another_template_is_the_next_revision_and_old_pods_make_room() -> None:
    there = daemonset(OTHER), revision(4), node("n1"), node("n2"), pod("n1"), pod("n2")
    actions, _ = walk(decide(seen(*there), NOW))
    (kept,) = of(actions, Create)
    assert kept.body.revision == 5
    assert [one.target.metadata.name for one in of(actions, Delete)] == ["on-n1"]


def test_a_template_of_before_is_its_revision_renumbered() -> None:
    there = daemonset(), revision(1), revision(2, "then", OTHER), node(), pod(hash_="then")
    actions, _ = walk(decide(seen(*there), NOW))
    assert not of(actions, Create)
    (renumbered,) = of(actions, Patch)
    assert (renumbered.target.metadata.name, renumbered.body["revision"]) == ("agent-now", 3)
    assert of(actions, Delete), "the pod is of another template"


def test_revisions_beyond_the_limit_go_oldest_first_unless_a_pod_is_of_them() -> None:
    olds = [revision(1, "a", OTHER), revision(2, "b", THIRD), revision(3, "c", msgspec.Raw(b"{}"))]
    leaving = pod("n2", hash_="a", phase="Succeeded", going=True)
    there = daemonset(), *olds, revision(4), node(), pod(), leaving
    actions, _ = walk(decide(seen(*there), NOW))
    assert [one.target.metadata.name for one in of(actions, Delete)] == ["agent-b", "agent-c"]
    unlimited = daemonset(revisionHistoryLimit=None), *olds, revision(4), node(), pod()
    assert not of(walk(decide(seen(*unlimited), NOW))[0], Delete)


def test_a_revision_that_is_gone_already_does_not_fail_the_round() -> None:
    there = daemonset(revisionHistoryLimit=0), revision(1, "a", OTHER), revision(2), node(), pod()
    _, verdict = walk(decide(seen(*there), NOW), {Delete: NotFound("gone")})
    assert isinstance(verdict, Rest)
    with pytest.raises(Conflict):
        walk(decide(seen(*there), NOW), {Delete: Conflict("changed")})


def test_of_revisions_that_hold_the_same_one_stays_and_pods_of_the_others_become_its() -> None:
    there = (
        daemonset(),
        revision(1, "a"),
        revision(2, "b"),
        revision(1, "then", OTHER),
        *(node(name) for name in ("n1", "n2", "n3")),
        pod("n1", hash_="a"),
        pod("n2", hash_="b"),
        pod("n3", hash_="then"),
    )
    actions, _ = walk(decide(seen(*there), NOW))
    (labelled,) = of(actions, Patch)
    assert labelled.target.metadata.name == "on-n1"
    assert labelled.body == {"metadata": {"labels": {"controller-revision-hash": "b"}}}
    assert [one.target.metadata.name for one in of(actions, Delete)] == ["agent-a", "on-n3"]


def test_an_orphaned_revision_is_adopted_and_one_without_a_hash_is_called_by_its_name() -> None:
    orphan = revision(3, owned=False)
    labels = {"app": "agent"}
    orphan = replace(orphan, metadata=replace(orphan.metadata, labels=labels))
    actions, _ = walk(decide(seen(daemonset(), orphan, node(), pod(hash_="agent-now")), NOW))
    assert [type(action) for action in actions] == [Read, Patch, Patch, UpdateStatus]
    assert of(actions, Patch)[1].body["metadata"]["labels"] == {"controller-revision-hash": "agent-now"}
    assert of(actions, UpdateStatus)[0].status.updatedNumberScheduled == 1


def test_a_name_that_another_template_has_is_a_collision() -> None:
    taken = revision(1, spec=OTHER)
    answers: dict[type[Action[Any]], object] = {Create: AlreadyExists("taken"), Read: taken}
    actions, verdict = walk(decide(seen(daemonset(), node()), NOW), answers)
    assert of(actions, UpdateStatus)[0].status.collisionCount == 1
    assert isinstance(verdict, Wake)
    again = daemonset(status={"collisionCount": 1})
    first, second = (of(walk(decide(seen(one), NOW))[0], Create)[0] for one in (daemonset(), again))
    assert first.body.metadata.name != second.body.metadata.name


def test_a_name_that_the_very_template_has_is_taken_for_its_own() -> None:
    answers: dict[type[Action[Any]], object] = {Create: [AlreadyExists("taken")], Read: revision(1)}
    actions, _ = walk(decide(seen(daemonset(), node()), NOW), answers)
    assert of(actions, Create)[1].body.metadata.labels["controller-revision-hash"] == "now"


# -- which changes are a reason to look -----------------------------------------------------------

KEY = Key("default", "agent")


def looked_at(old: Node | None, new: Node | None, *sets: DaemonSet) -> list[Key]:
    return list(enqueue_for_node(StaticCaches(controller, *(sets or (daemonset(),))), Change(old, new)))


TAINTED = node("n1", Taint(key="gpu", effect="NoSchedule"))
EVICTING = node("n1", Taint(key="gpu", effect="NoExecute"))


@pytest.mark.parametrize(
    ("old", "new", "looks"),
    [
        (None, node(), True),
        (node(), None, True),
        (None, TAINTED, True),
        (None, EVICTING, False),
        (EVICTING, None, False),
        (node(), TAINTED, True),
        (TAINTED, node(), True),
        (TAINTED, EVICTING, True),
        (node(), node(zone="a"), False),
        (node(), node("n1", Taint(key="gpu", effect="PreferNoSchedule")), False),
    ],
)
def test_a_node_is_looked_at_where_it_becomes_something_else(
    old: Node | None, new: Node | None, looks: bool
) -> None:
    assert looked_at(old, new) == ([KEY] if looks else [])


def test_a_heartbeat_costs_two_comparisons() -> None:
    class Unread(StaticCaches):
        def __getitem__(self, kind: Any) -> Any:
            raise AssertionError("nothing is to be read for a heartbeat")

    beat = node("n1", Taint(key="gpu", effect="NoSchedule"), zone="a")
    caches = Unread(controller)
    assert list(enqueue_for_node(caches, Change(beat, replace(beat)))) == []


def test_a_label_matters_to_those_that_select_by_it() -> None:
    picky = daemonset(msgspec.Raw(b'{"nodeSelector":{"zone":"a"}}'))
    other = replace(daemonset(), metadata=replace(daemonset().metadata, name="other"))
    assert looked_at(node(), node(zone="a"), picky, other) == [KEY]


def test_a_pod_is_its_daemonsets_or_that_of_those_who_may_adopt_it() -> None:
    caches = StaticCaches(controller, daemonset())
    assert list(ENQUEUE_FOR_POD(caches, Change(None, pod()))) == [KEY]
    assert list(ENQUEUE_FOR_POD(caches, Change(None, pod(owned=False)))) == [KEY]
    assert list(ENQUEUE_FOR_POD(caches, Change(None, pod(owned=False, app="other")))) == []
    assert list(ENQUEUE_FOR_POD(caches, Change(pod(), None))) == [KEY]


def test_a_revision_is_looked_at_unless_it_is_its_own_and_new() -> None:
    caches = StaticCaches(controller, daemonset())
    assert list(ENQUEUE_FOR_REVISION(caches, Change(None, revision(1)))) == []
    assert list(ENQUEUE_FOR_REVISION(caches, Change(None, revision(1, owned=False)))) == [KEY]
    assert KEY in ENQUEUE_FOR_REVISION(caches, Change(revision(1), None))
    assert KEY in ENQUEUE_FOR_REVISION(caches, Change(revision(1), revision(2)))


def test_the_gate_of_numeric_tolerations_is_heeded() -> None:
    spec = msgspec.Raw(b'{"tolerations":[{"key":"level","operator":"Gt","value":"5"}]}')
    there = daemonset(spec), node("n1", Taint(key="level", value="6", effect="NoSchedule"))
    on = controller.configured(Settings(gates={"TaintTolerationComparisonOperators": True}))
    assert on is not None
    for one, runs in ((controller, False), (on, True)):
        found = one.see(StaticCaches(one, *there), KEY)
        assert found is not None
        assert found.fits["n1"].should_run is runs
