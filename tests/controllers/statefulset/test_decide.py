"""Rounds of statefulset-controller: actions, events, status and verdicts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from steersman.api.kinds import NewPod, Object, ObjectMeta, OwnerReference
from steersman.api.kinds.revisions import ControllerRevision
from steersman.api.kinds.statefulsets import StatefulSet, StatefulSetStatus
from steersman.api.kinds.storage import NewClaim, PersistentVolumeClaim
from steersman.api.scheme import Key, kind_of
from steersman.controllers.shared import history
from steersman.controllers.statefulset import controller
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, Read, ReadModifyWrite, UpdateStatus
from steersman.intent.controller import Change, Settings
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.testing.decision_driver import Answers, StaticCaches, walk
from tests.harness.statefulsets import NOW, member, members, stateful
from tests.harness.workloads import NAMESPACE

KEY = Key(NAMESPACE, "web")


def kept(set_: StatefulSet, name: str = "new", number: int = 1, owned: bool = True) -> ControllerRevision:
    """The revision of the set's present template."""
    made = history.new_revision(set_, set_.spec.template, number, label=history.HASH, hash_="x")
    metadata = replace(made.metadata, name=name, uid=f"{name}-uid", resourceVersion="1")
    metadata = metadata if owned else replace(metadata, ownerReferences=())
    return replace(made, metadata=metadata)


def claim(name: str, **meta: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=f"{name}-uid", **meta)
    )


def look(
    set_: StatefulSet,
    *objects: Object,
    answers: Answers | None = None,
    settings: Settings = Settings(),
    recorded: list[Action[Any]] | None = None,
) -> tuple[list[Action[Any]], Verdict]:
    running = controller.configured(settings)
    assert running is not None
    seen = running.see(StaticCaches(running, set_, *objects), KEY)
    assert seen is not None
    return walk(running.decide(seen, NOW), answers, recorded=recorded)


def told(actions: list[Action[Any]]) -> list[str]:
    return [f"{action.reason}: {action.message}" for action in actions if isinstance(action, Emit)]


def written(actions: list[Action[Any]]) -> list[str]:
    """What was written, in order, in short."""
    found = []
    for action in actions:
        match action:
            case Create(body=NewPod() | NewClaim() | ControllerRevision() as body):
                found.append(f"create {body.metadata.name}")
            case Delete(target=obj):
                found.append(f"delete {obj.metadata.name}")
            case Patch(target=obj) | ReadModifyWrite(target=obj):
                found.append(f"change {obj.metadata.name}")
            case UpdateStatus():
                found.append("status")
    return found


def status_of(actions: list[Action[Any]]) -> StatefulSetStatus:
    (found,) = (action.status for action in actions if isinstance(action, UpdateStatus))
    assert isinstance(found, StatefulSetStatus)
    return found


def test_claims_are_made_before_their_pod_and_all_is_told() -> None:
    set_ = stateful(2, claims=("data", "logs"))
    actions, verdict = look(set_, kept(set_))
    assert written(actions) == ["create data-web-0", "create logs-web-0", "create web-0", "status"]
    assert told(actions) == [
        "SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "SuccessfulCreate: Create Claim logs-web-0 Pod web-0 in StatefulSet web success",
        "SuccessfulCreate: Create Pod web-0 in StatefulSet web successful",
    ]
    assert verdict == Rest("creating pod web-0")


def test_a_claim_that_is_refused_keeps_its_pod_back_and_both_are_told_of() -> None:
    set_ = stateful(1, claims=("data",))
    said: list[Action[Any]] = []
    with pytest.raises(Forbidden, match="failed to create PVC data-web-0: full"):
        look(set_, kept(set_), answers={Create: Forbidden("full")}, recorded=said)
    assert written(said) == ["create data-web-0", "status"]
    assert told(said) == [
        "FailedCreate: Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: full",
        "FailedCreate: Create Pod web-0 in StatefulSet web failed error: "
        "failed to create PVC data-web-0: full",
    ]


def test_a_claim_that_is_being_deleted_keeps_its_pod_back() -> None:
    set_ = stateful(1, claims=("data",))
    with pytest.raises(Conflict, match="pvc data-web-0 is being deleted"):
        look(set_, kept(set_), claim("data-web-0", deletionTimestamp=NOW))


def test_a_name_that_is_taken_is_no_event() -> None:
    set_, said = stateful(1), list[Action[Any]]()
    with pytest.raises(AlreadyExists):
        look(set_, kept(set_), answers={Create: AlreadyExists("taken")}, recorded=said)
    assert told(said) == []
    assert written(said) == ["create web-0", "status"]


def test_a_parallel_set_stops_asking_when_it_is_refused() -> None:
    set_, said = stateful(5, parallel=True), list[Action[Any]]()
    with pytest.raises(Forbidden):
        look(set_, kept(set_), answers={Create: Forbidden("full")}, recorded=said)
    assert written(said) == ["create web-0", "status"]
    assert told(said) == ["FailedCreate: Create Pod web-0 in StatefulSet web failed error: full"]


def test_claims_that_were_not_tried_keep_their_pods_back_silently() -> None:
    set_, said = stateful(3, parallel=True, claims=("data",)), list[Action[Any]]()
    with pytest.raises(Forbidden):
        look(set_, kept(set_), answers={Create: Forbidden("full")}, recorded=said)
    assert written(said) == ["create data-web-0", "status"]
    assert len(told(said)) == 2


def test_a_pod_that_has_ended_goes_so_that_another_takes_its_place() -> None:
    set_ = stateful(2)
    actions, verdict = look(set_, kept(set_), *members(set_, "AF"))
    assert written(actions) == ["delete web-1", "status"]
    assert told(actions) == ["SuccessfulDelete: Delete Pod web-1 in StatefulSet web successful"]
    assert verdict == Rest("replacing finished pod web-1")


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        (NotFound("gone"), "SuccessfulDelete: Delete Pod web-1 in StatefulSet web successful"),
        (Forbidden("no"), "FailedDelete: Delete Pod web-1 in StatefulSet web failed error: no"),
    ],
)
def test_a_pod_that_is_gone_is_as_good_as_deleted(answer: ApiError, event: str) -> None:
    set_, said = stateful(1), list[Action[Any]]()
    try:
        look(set_, kept(set_), *members(set_, "AA"), answers={Delete: answer}, recorded=said)
    except Forbidden:
        assert isinstance(answer, Forbidden)
    assert told(said) == [event]


def test_a_pod_without_its_name_is_mended() -> None:
    set_ = stateful(1)
    nameless = member(set_, 0, labels={"app": "web", "controller-revision-hash": "new"})
    actions, _ = look(set_, kept(set_), nameless)
    assert written(actions) == ["change web-0", "status"]
    assert told(actions) == ["SuccessfulUpdate: Update Pod web-0 in StatefulSet web successful"]


def test_a_pod_whose_volumes_cannot_be_changed_is_told_of() -> None:
    set_, said = stateful(1, claims=("data",)), list[Action[Any]]()
    with pytest.raises(Forbidden):
        look(set_, kept(set_), member(stateful(), 0), answers={Patch: Forbidden("no")}, recorded=said)
    assert written(said) == ["create data-web-0", "change web-0", "status"]
    assert told(said)[-1] == "FailedUpdate: Update Pod web-0 in StatefulSet web failed error: no"


def test_claims_of_a_pending_pod_are_made_and_owned() -> None:
    set_ = stateful(1, claims=("data", "logs"), keep="RD")
    actions, _ = look(set_, kept(set_), *members(set_, "P"), claim("data-web-0"))
    assert written(actions) == ["create logs-web-0", "change data-web-0", "status"]


def test_claims_of_a_pod_that_is_to_go_for_good_are_handed_to_it_first() -> None:
    set_ = stateful(0, claims=("data",), keep="DR")
    actions, _ = look(set_, kept(set_), *members(stateful(1, claims=("data",)), "A"), claim("data-web-0"))
    assert written(actions) == ["change data-web-0", "delete web-0", "status"]


def test_a_claim_that_others_control_is_told_of_and_left() -> None:
    set_ = stateful(1, claims=("data",), keep="DD")
    other = OwnerReference(apiVersion="x/v1", kind="Keeper", name="k", uid="k", controller=True)
    actions, _ = look(set_, kept(set_), *members(set_, "P"), claim("data-web-0", ownerReferences=(other,)))
    assert written(actions) == ["status"]
    assert told(actions) == [
        "ConflictingController: PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as "
        "a manging controller, the retention policy is ignored for this claim"
    ]


# -- revisions --------------------------------------------------------------------------------


def test_a_new_template_is_kept_before_anything_is_done_with_it() -> None:
    old = stateful(1, "v1", status=StatefulSetStatus(currentRevision="old"))
    set_ = replace(old, spec=stateful(1, "v2").spec)
    actions, _ = look(set_, kept(old, "old"), *members(set_, "A", "o"))
    name = history.name_of(set_, history.digest(history.data_of(set_.spec.template), 0))
    assert written(actions) == [f"create {name}", "delete web-0", "status"]
    status = status_of(actions)
    assert (status.currentRevision, status.updateRevision) == ("old", name)
    assert (status.currentReplicas, status.updatedReplicas) == (0, 0)


def test_a_template_of_old_gets_the_newest_number_again() -> None:
    set_ = stateful(1, "v1")
    actions, _ = look(set_, kept(set_, "first", 1), kept(stateful(1, "v2"), "second", 2), member(set_, 0))
    (renumbered,) = (action for action in actions if isinstance(action, Patch))
    assert (renumbered.target.metadata.name, renumbered.body["revision"]) == ("first", 3)


def null_at_birth(set_: StatefulSet) -> ControllerRevision:
    """As managers before 1.34 wrote it."""
    made = kept(set_)
    data = msgspec.json.decode(made.data)
    data["spec"]["template"]["metadata"]["creationTimestamp"] = None
    return replace(made, data=msgspec.Raw(msgspec.json.encode(data)))


@pytest.mark.parametrize(("semantic", "rolls"), [(True, False), (False, True)])
def test_a_template_that_is_only_written_another_way_rolls_nothing(semantic: bool, rolls: bool) -> None:
    set_ = stateful(1, status=StatefulSetStatus(currentRevision="new"))
    settings = Settings(gates={"StatefulSetSemanticRevisionComparison": semantic})
    actions, _ = look(set_, null_at_birth(set_), *members(set_, "A"), settings=settings)
    assert ("delete web-0" in written(actions)) is rolls


def test_pods_below_the_partition_come_back_as_they_were() -> None:
    old = stateful(2, "v1", status=StatefulSetStatus(currentRevision="old"), partition=1)
    set_ = replace(old, spec=stateful(2, "v2", partition=1).spec)
    for missing, image, name in ((0, "v1", "old"), (1, "v2", "new")):
        others = [member(set_, 1 - missing)]
        actions, _ = look(set_, kept(old, "old", 1), kept(set_, "new", 2), *others)
        (made,) = (one.body for one in actions if isinstance(one, Create) and isinstance(one.body, NewPod))
        assert msgspec.json.decode(made.spec)["containers"][0]["image"] == image
        assert made.metadata.labels["controller-revision-hash"] == name


def test_history_past_the_limit_goes_and_what_pods_need_stays() -> None:
    set_ = stateful(1, history=1, status=StatefulSetStatus(currentRevision="new"))
    past = [kept(stateful(1, f"v{n}"), f"past-{n}", n) for n in range(2, 6)]
    pod = member(set_, 0, "N", revision="past-2")
    actions, _ = look(set_, *past, kept(set_, "new", 9), pod)
    assert [one for one in written(actions) if "past" in one] == ["delete past-3", "delete past-4"]


def test_orphans_are_adopted_after_a_live_look() -> None:
    set_ = stateful(1)
    orphan = member(set_, 0, ownerReferences=())
    actions, _ = look(set_, kept(set_, owned=False), orphan)
    assert [type(action) for action in actions[:4]] == [Read, Patch, Read, Patch]


def test_a_pod_that_is_not_called_like_the_sets_is_let_go() -> None:
    set_ = stateful(1)
    stranger = member(set_, 0, name="other-0", uid="other")
    actions, _ = look(set_, kept(set_), stranger)
    assert written(actions)[:2] == ["change other-0", "create web-0"]


def test_a_set_that_is_going_says_how_it_is_and_does_nothing_else() -> None:
    set_ = stateful(3, deleted=True)
    actions, _ = look(set_, kept(set_), *members(set_, "AFN"))
    assert written(actions) == ["status"]


# -- status -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "revisions", "counts"),
    [
        # replicas, ready, available, current, updated
        ("AAA", "nnn", (3, 3, 3, 3, 3)),
        ("AAA", "oon", (3, 3, 3, 1, 1)),
        ("AAN", "oon", (3, 2, 2, 2, 1)),
        ("AAR", "oon", (3, 3, 2, 2, 1)),
        ("AAT", "ooo", (3, 3, 3, 2, 0)),
        ("AA.", "oon", (2, 2, 2, 2, 0)),
        ("F..", "ooo", (1, 0, 0, 1, 0)),
    ],
)
def test_the_status_counts_what_there_is(letters: str, revisions: str, counts: tuple[int, ...]) -> None:
    set_ = stateful(3, status=StatefulSetStatus(currentRevision="old"))
    actions, _ = look(
        set_, kept(stateful(3, "v0"), "old", 1), kept(set_, "new", 2), *members(set_, letters, revisions)
    )
    status = status_of(actions)
    found = (
        status.replicas,
        status.readyReplicas,
        status.availableReplicas,
        status.currentReplicas,
        status.updatedReplicas,
    )
    assert found == counts
    assert (status.observedGeneration, status.collisionCount) == (2, 0)
    assert status.currentRevision == ("new" if revisions == "nnn" else "old")


def test_a_status_that_says_nothing_new_is_not_written() -> None:
    set_ = stateful(1)
    actions, _ = look(set_, kept(set_), *members(set_, "A"))
    again = replace(set_, status=status_of(actions))
    assert look(again, kept(set_), *members(set_, "A")) == ([], Rest("1 of 1 replicas ready"))


def test_a_pod_that_is_ready_and_not_available_is_waited_for() -> None:
    set_ = stateful(1)
    _, verdict = look(set_, kept(set_), *members(set_, "R"))
    assert isinstance(verdict, Wake)
    assert verdict.after.total_seconds() == 59


@pytest.mark.parametrize("replicas", [None, -1])
def test_a_set_without_a_number_is_nonsense(replicas: int | None) -> None:
    set_ = stateful()
    with pytest.raises(InvalidSpec):
        look(replace(set_, spec=replace(set_.spec, replicas=replicas)))


def test_a_set_that_would_select_everything_does_nothing() -> None:
    set_ = stateful()
    actions, verdict = look(replace(set_, spec=replace(set_.spec, selector=None)))
    assert actions == []
    assert isinstance(verdict, Rest)


# -- when to look -----------------------------------------------------------------------------


def woken(change: Change[Any], *objects: Object) -> list[Key]:
    caches = StaticCaches(controller, *objects)
    resource = kind_of(change.obj).resource
    (watch,) = (watch for watch in controller.watches if watch.kind.resource == resource)
    return list(watch.to(caches, change))


def gone(obj: Any) -> Change[Any]:
    return Change(obj, None)


def came(obj: Any) -> Change[Any]:
    return Change(None, obj)


SET = stateful(2, claims=("data",))


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        pytest.param(came(member(SET, 0)), True, id="a pod of its own"),
        pytest.param(came(member(SET, 0, ownerReferences=())), True, id="an orphan it selects"),
        pytest.param(came(member(SET, 0, ownerReferences=(), labels={})), False, id="another orphan"),
        pytest.param(gone(claim("data-web-1")), True, id="a claim has gone"),
        pytest.param(came(claim("data-web-1")), False, id="a claim has come"),
        pytest.param(gone(claim("logs-web-1")), False, id="another claim has gone"),
        pytest.param(came(kept(SET)), False, id="a revision has come"),
        pytest.param(came(kept(SET, owned=False)), True, id="a revision that nobody has"),
    ],
)
def test_a_set_is_looked_at_when_something_changes_that_matters(change: Change[Any], wakes: bool) -> None:
    assert woken(change, SET) == ([KEY] if wakes else [])


def test_where_several_may_miss_several_are_updated_and_it_is_counted() -> None:
    settings = Settings(gates={"MaxUnavailableStatefulSet": True})
    set_ = stateful(4, unavailable=2, status=StatefulSetStatus(currentRevision="old"))
    past = (kept(stateful(4, "v0"), "old", 1), kept(set_, "new", 2))
    actions, _ = look(set_, *past, *members(set_, "AAAA", "oooo"), settings=settings)
    assert written(actions) == ["delete web-3", "delete web-2", "status"]
    assert status_of(actions).currentReplicas == 2
    assert [(one.value, one.labels) for one in actions if isinstance(one, Measure)] == [
        (2, (NAMESPACE, "web", "OrderedReady")),
        (0, (NAMESPACE, "web", "OrderedReady")),
    ]


# -- which revisions are its own ----------------------------------------------------------------


def of_another(revision: ControllerRevision) -> ControllerRevision:
    owner = replace(revision.metadata.ownerReferences[0], name="db", uid="db-uid")
    return replace(revision, metadata=replace(revision.metadata, ownerReferences=(owner,)))


FIRST, SECOND = kept(SET, "first", 1), kept(stateful(2, "v2"), "second", 2)
OTHERS, ORPHAN = of_another(kept(SET, "others", 3)), kept(stateful(2, "v3"), "orphan", 3, owned=False)


@pytest.mark.parametrize(
    ("known", "own"),
    [
        pytest.param((), [], id="none"),
        pytest.param((FIRST, SECOND), ["first", "second"], id="all"),
        pytest.param((FIRST, SECOND, OTHERS), ["first", "second"], id="not another's"),
        pytest.param((FIRST, SECOND, ORPHAN), ["first", "orphan", "second"], id="orphans"),
    ],
)
def test_revisions_are_its_own_or_orphans(known: tuple[ControllerRevision, ...], own: list[str]) -> None:
    seen = controller.see(StaticCaches(controller, SET, *known), KEY)
    assert seen is not None
    found = (*seen.revisions, *seen.orphan_revisions)
    assert sorted(one.metadata.name for one in found) == own
