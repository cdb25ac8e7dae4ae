"""Rounds of statefulset-controller in upstream's tables: each with every retention policy, ordered and parallel."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, ServerError
from steersman.api.kinds import Condition, NewPod, Object, ObjectMeta, OwnerReference, Pod
from steersman.api.kinds.revisions import ControllerRevision
from steersman.api.kinds.statefulsets import StatefulSet, StatefulSetStatus
from steersman.api.kinds.storage import NewClaim, PersistentVolumeClaim
from steersman.api.scheme import Key
from steersman.controllers.shared import history
from steersman.controllers.statefulset import controller
from steersman.controllers.statefulset.order import max_unavailable, rolling_update
from steersman.intent.actions import Action, Create, Delete, Patch, ReadModifyWrite, UpdateStatus
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Verdict, Wake
from steersman.testing.decision_driver import USUAL, Answers, StaticCaches, walk
from tests.harness.statefulsets import NOW, by_ordinal, member, members, stateful
from tests.harness.workloads import NAMESPACE

KEEP = ("", "RR", "RD", "DR", "DD")
every_policy = pytest.mark.parametrize("keep", KEEP)
both_managements = pytest.mark.parametrize("parallel", [False, True], ids=["ordered", "parallel"])
FAILED = ServerError("API server failed")


def kept(set_: StatefulSet, name: str = "new", number: int = 1) -> ControllerRevision:
    """The revision of the set's template."""
    made = history.new_revision(set_, set_.spec.template, number, label=history.HASH, hash_="x")
    return replace(made, metadata=replace(made.metadata, name=name, uid=f"{name}-uid"))


def claims(set_: StatefulSet, *ordinals: int) -> list[PersistentVolumeClaim]:
    """Claims as the controller leaves them."""
    policy = set_.spec.persistentVolumeClaimRetentionPolicy
    owners: tuple[OwnerReference, ...] = ()
    if policy is not None and policy.whenDeleted == "Delete":
        owners = (member(set_, 0).metadata.ownerReferences[0],)
    return [
        PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=f"data-web-{ordinal}",
                namespace=NAMESPACE,
                uid=f"data-web-{ordinal}-uid",
                ownerReferences=owners,
            )
        )
        for ordinal in ordinals
    ]


def look(
    set_: StatefulSet,
    *objects: Object,
    answers: Answers | None = None,
    recorded: list[Action[Any]] | None = None,
    **gates: bool,
) -> tuple[list[Action[Any]], Verdict]:
    running = controller.configured(Settings(gates=gates))
    assert running is not None
    seen = running.see(StaticCaches(running, set_, *objects), Key(NAMESPACE, "web"))
    assert seen is not None
    return walk(running.decide(seen, NOW), answers, recorded=recorded)


def created(actions: list[Action[Any]]) -> list[str]:
    return [
        one.body.metadata.name for one in actions if isinstance(one, Create) and isinstance(one.body, NewPod)
    ]


def deleted(actions: list[Action[Any]]) -> list[str]:
    return [one.target.metadata.name for one in actions if isinstance(one, Delete)]


def status_of(actions: list[Action[Any]]) -> StatefulSetStatus:
    (found,) = (one.status for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(found, StatefulSetStatus)
    return found


def failing(actions: list[Action[Any]], error: type[ApiError], *args: Any, **kwargs: Any) -> None:
    """A round that fails, with its actions."""
    with pytest.raises(error):
        look(*args, recorded=actions, **kwargs)


# -- pods come and go ---------------------------------------------------------------------------


@every_policy
@both_managements
def test_a_new_set_gets_its_pods_with_their_index(keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)
    actions, _ = look(set_, kept(set_))
    names = ["web-0", "web-1", "web-2"] if parallel else ["web-0"]
    assert created(actions) == names
    for action in actions:
        if isinstance(action, Create) and isinstance(action.body, NewPod):
            meta = action.body.metadata
            assert meta.labels["apps.kubernetes.io/pod-index"] == meta.name.removeprefix("web-")


@every_policy
@both_managements
def test_a_set_that_is_scaled_up_gets_one_more(keep: str, parallel: bool) -> None:
    set_ = stateful(4, parallel=parallel, claims=("data",), keep=keep)
    actions, _ = look(set_, kept(set_), *members(set_, "AAA"), *claims(set_, 0, 1, 2))
    assert (created(actions), deleted(actions)) == (["web-3"], [])
    full, _ = look(set_, kept(set_), *members(set_, "AAAA"), *claims(set_, 0, 1, 2, 3))
    status = status_of(full)
    assert (status.replicas, status.readyReplicas, status.updatedReplicas) == (4, 4, 4)


@every_policy
@both_managements
def test_a_set_that_is_scaled_to_nothing_loses_its_pods(keep: str, parallel: bool) -> None:
    set_ = stateful(0, parallel=parallel, claims=("data",), keep=keep)
    actions, _ = look(set_, kept(set_), *members(set_, "AAA"), *claims(set_, 0, 1, 2))
    assert deleted(actions) == (["web-2", "web-1", "web-0"] if parallel else ["web-2"])
    changed = [one.target.metadata.name for one in actions if isinstance(one, ReadModifyWrite)]
    # Claims that go with scaled pods are handed to them before the first one goes.
    assert changed == (["data-web-2", "data-web-1", "data-web-0"] if keep[:1] == "D" else [])
    empty, _ = look(replace(set_, status=StatefulSetStatus(replicas=1)), kept(set_))
    status = status_of(empty)
    assert (status.replicas, status.readyReplicas, status.updatedReplicas) == (0, 0, 0)


@every_policy
@both_managements
def test_a_deletion_that_fails_while_scaling_down_is_tried_again(keep: str, parallel: bool) -> None:
    set_ = stateful(0, parallel=parallel, claims=("data",), keep=keep)
    actions: list[Action[Any]] = []
    failing(actions, ServerError, set_, kept(set_), *members(set_, "AA"), answers={Delete: FAILED})
    assert deleted(actions) == ["web-1"]
    assert status_of(actions).replicas == 2


@every_policy
@both_managements
def test_gaps_are_filled(keep: str, parallel: bool) -> None:
    set_ = stateful(5, parallel=parallel, claims=("data",), keep=keep)
    there = (kept(set_), *claims(set_, *range(5)))
    rounds = [(".A.A.", ["web-0", "web-2", "web-4"]), ("AA.A.", ["web-2", "web-4"]), ("AAAA.", ["web-4"])]
    for letters, missing in rounds:
        actions, _ = look(set_, *there, *members(set_, letters))
        assert created(actions) == (missing if parallel else missing[:1])
    actions, _ = look(set_, *there, *members(set_, "AAAAA"))
    assert status_of(actions).replicas == 5


@pytest.mark.parametrize("phase", ["F", "S"])
@every_policy
@both_managements
def test_a_pod_that_ended_is_deleted_once_and_then_created(phase: str, keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)
    there, others = (kept(set_), *claims(set_, 0, 1, 2)), "PP" if parallel else ".."
    actions: list[Action[Any]] = []
    failing(actions, ServerError, set_, *there, *members(set_, phase + others), answers={Delete: FAILED})
    assert (deleted(actions), created(actions)) == (["web-0"], [])
    actions, _ = look(set_, *there, *members(set_, phase + others))
    assert (deleted(actions), created(actions)) == (["web-0"], [])
    actions, _ = look(set_, *there, *members(set_, "." + others))
    assert (deleted(actions), created(actions)) == ([], ["web-0"])


@every_policy
@both_managements
def test_a_creation_that_fails_fails_the_round_after_the_status(keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)

    def answer(action: Action[Any]) -> Any:
        return FAILED if isinstance(action, Create) and isinstance(action.body, NewPod) else USUAL

    actions: list[Action[Any]] = []
    failing(actions, ServerError, set_, kept(set_), *members(set_, "A"), *claims(set_, 0), answers=answer)
    assert created(actions) == ["web-1"]
    assert status_of(actions).replicas == 1


@every_policy
@both_managements
def test_a_pod_whose_identity_cannot_be_restored_fails_the_round(keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)
    first, *rest = members(set_, "AAA")
    nameless = replace(first, metadata=replace(first.metadata, labels={"app": "web"}))
    actions: list[Action[Any]] = []
    there = (kept(set_), nameless, *rest, *claims(set_, 0, 1, 2))
    failing(actions, ServerError, set_, *there, answers={Patch: FAILED})


@every_policy
@both_managements
def test_a_status_that_cannot_be_written_fails_the_round(keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)
    actions: list[Action[Any]] = []
    failing(actions, ServerError, set_, kept(set_), answers={UpdateStatus: FAILED})
    assert created(actions)


@every_policy
@both_managements
def test_a_deletion_that_fails_does_not_count_as_an_update(keep: str, parallel: bool) -> None:
    old = stateful(3, "v1", parallel=parallel, claims=("data",), keep=keep)
    set_ = replace(
        old,
        spec=stateful(3, "v2", parallel=parallel, claims=("data",), keep=keep).spec,
        status=StatefulSetStatus(currentRevision="old"),
    )
    there = (kept(old, "old"), kept(set_, "new", 2), *members(set_, "AAA", "ooo"), *claims(set_, 0, 1, 2))
    actions: list[Action[Any]] = []
    failing(actions, ServerError, set_, *there, answers={Delete: FAILED})
    status = status_of(actions)
    assert (status.currentReplicas, status.currentRevision, status.updateRevision) == (3, "old", "new")
    actions, _ = look(set_, *there)
    assert (deleted(actions), status_of(actions).currentReplicas) == (["web-2"], 2)


@every_policy
@both_managements
def test_the_claim_of_a_pending_pod_is_created_again(keep: str, parallel: bool) -> None:
    set_ = stateful(3, parallel=parallel, claims=("data",), keep=keep)
    pods = members(set_, "PPP" if parallel else "P..")
    actions, _ = look(set_, kept(set_), *pods, *claims(set_, 1, 2))
    made = [
        one.body.metadata.name
        for one in actions
        if isinstance(one, Create) and isinstance(one.body, NewClaim)
    ]
    assert (made, created(actions)) == (["data-web-0"], [])


@both_managements
def test_ordinals_may_start_at_two(parallel: bool) -> None:
    set_ = stateful(3, start=2, parallel=parallel)
    for letters, missing in (
        ("...", ["web-2", "web-3", "web-4"]),
        ("A..", ["web-3", "web-4"]),
        ("AA.", ["web-4"]),
    ):
        actions, _ = look(set_, kept(set_), *members(set_, letters))
        assert created(actions) == (missing if parallel else missing[:1])
    actions, _ = look(set_, kept(set_), *members(set_, "AAA"))
    status = status_of(actions)
    assert (status.replicas, status.readyReplicas, status.updatedReplicas) == (3, 3, 3)


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({}, None),
        ({Create: FAILED}, ServerError),
        ({UpdateStatus: Conflict("status")}, Conflict),
        ({Create: FAILED, UpdateStatus: Conflict("status")}, ServerError),
    ],
)
def test_the_failure_of_a_round_comes_before_that_of_its_status(
    answers: dict[type[Action[Any]], Any], error: type[ApiError] | None
) -> None:
    set_ = stateful(3)
    actions: list[Action[Any]] = []
    if error is None:
        look(set_, kept(set_), recorded=actions)
    else:
        failing(actions, error, set_, kept(set_), answers=answers)
    assert sum(isinstance(action, UpdateStatus) for action in actions) == 1


# -- revisions ----------------------------------------------------------------------------------


def revised(image: str, current: str = "first") -> StatefulSet:
    return stateful(3, image, status=StatefulSetStatus(currentRevision=current))


FIRST, SECOND, THIRD = (
    kept(revised(f"v{n}"), name, n) for n, name in enumerate(("first", "second", "third"), 1)
)


@every_policy
@pytest.mark.parametrize(
    ("known", "image", "current", "update", "number"),
    [
        pytest.param((), "v1", "", "", 1, id="the first is created"),
        pytest.param((FIRST,), "v2", "first", "", 2, id="one for an update is created"),
        pytest.param((FIRST, SECOND), "v2", "first", "second", 0, id="one that exists is not created again"),
        pytest.param(
            (FIRST, SECOND, THIRD), "v2", "first", "second", 4, id="one before the last is rolled back to"
        ),
    ],
)
def test_revisions_are_found_created_or_renumbered(
    known: tuple[ControllerRevision, ...], image: str, current: str, update: str, number: int, keep: str
) -> None:
    set_ = revised(image)
    policy = stateful(3, keep=keep).spec.persistentVolumeClaimRetentionPolicy
    set_ = replace(set_, spec=replace(set_.spec, persistentVolumeClaimRetentionPolicy=policy))
    actions, _ = look(set_, *known)
    new = [
        one.body for one in actions if isinstance(one, Create) and isinstance(one.body, ControllerRevision)
    ]
    renumbered = [one.body["revision"] for one in actions if isinstance(one, Patch)]
    status = status_of(actions)
    name = new[0].metadata.name if new else update
    assert (status.currentRevision, status.updateRevision) == (current or name, name)
    assert [one.revision for one in new] + renumbered == ([number] if number else [])


@pytest.mark.parametrize(
    ("limit", "gone"),
    [(0, ["r1", "r2", "r3", "r4"]), (2, ["r1", "r2"]), (5, []), (-2, []), (None, [])],
)
@both_managements
def test_history_is_limited_to_revisions_without_pods(
    limit: int | None, gone: list[str], parallel: bool
) -> None:
    set_ = stateful(3, parallel=parallel, history=limit, status=StatefulSetStatus(currentRevision="new"))
    past = [kept(stateful(3, f"v{n}-"), f"r{n}", n) for n in range(1, 5)]
    actions, _ = look(set_, *past, kept(set_, "new", 5), *members(set_, "AAA"))
    assert deleted(actions) == gone


# -- updates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "terminating",
    [(), (5,), (3,), (4,), (5, 4), (5, 3), (4, 3), (5, 4, 3), (2,), (1,)],
    ids=lambda ordinals: ",".join(map(str, ordinals)) or "none",
)
@both_managements
def test_pods_that_terminate_count_against_max_unavailable(
    terminating: tuple[int, ...], parallel: bool
) -> None:
    letters = "".join("T" if ordinal in terminating else "A" for ordinal in range(6))
    set_ = stateful(6, partition=3, unavailable=2, parallel=parallel)
    step = rolling_update(by_ordinal(set_, letters, "oooooo"), "new", use_max_unavailable=True)
    assert len(step.delete) == max(2 - len(terminating), 0)
    assert all(int(pod.metadata.name[-1]) >= 3 for pod in step.delete)


@pytest.mark.parametrize(
    ("unavailable", "replicas", "most"),
    [
        (None, 10, 1),
        (3, 10, 3),
        (3, 0, 3),
        (0, 0, 1),
        ("10%", 25, 2),
        ("100%", 5, 5),
        ("50%", 5, 2),
        ("10%", 5, 1),
        ("1%", 0, 1),
        ("0%", 0, 1),
    ],
)
def test_max_unavailable_is_rounded_down_and_at_least_one(
    unavailable: int | str | None, replicas: int, most: int
) -> None:
    assert max_unavailable(stateful(replicas, unavailable=unavailable)) == most


@pytest.mark.parametrize(
    ("replicas", "unavailable", "on_delete", "parallel", "down", "most"),
    [
        (5, 2, False, False, 1, 2),
        (10, "20%", False, True, 3, 2),
        (6, 3, False, False, 3, 3),
        (4, 1, False, True, 0, 1),
        (8, "25%", False, False, 1, 2),
        (5, "80%", False, True, 4, 4),
        (2, 1, False, False, 1, 1),
        (1, 1, False, True, 1, 1),
        (3, None, True, False, 2, 1),
        (4, None, True, True, 1, 1),
        (5, None, False, False, 2, 1),
        (6, None, False, True, 0, 1),
    ],
)
def test_both_gauges_show_the_limit_and_the_unavailable_pods(
    replicas: int, unavailable: int | str | None, on_delete: bool, parallel: bool, down: int, most: int
) -> None:
    set_ = stateful(replicas, unavailable=unavailable, on_delete=on_delete, parallel=parallel)
    letters = ("T" if parallel else "N") * down + "A" * (replicas - down)
    actions, _ = look(set_, kept(set_), *members(set_, letters), MaxUnavailableStatefulSet=True)
    assert [one.value for one in actions if isinstance(one, Measure)] == [most, down]


STEPS = {
    # Six pods, partition 3, two may be unavailable.
    False: (
        "AAAAAA ooooooo -5-4",
        "AAAA.. oooo +4",
        "AAAAP. ooooon ",
        "AAAAA. ooooon +5",
        "AAAAAA oooonn -3",
    ),
    True: (
        "AAAAAA oooooo -5-4",
        "AAAA.. oooo +4+5",
        "AAAAAP oooonn -3",
        "AAA.AA ooonnn +3",
        "AAAAAA ooonnn ",
    ),
}


@both_managements
@pytest.mark.parametrize("step", range(5))
def test_an_update_above_a_partition_with_two_unavailable(parallel: bool, step: int) -> None:
    letters, revisions, writes = STEPS[parallel][step].split(" ")
    old = stateful(6, "v1", partition=3, unavailable=2, parallel=parallel)
    set_ = replace(
        old,
        spec=stateful(6, "v2", partition=3, unavailable=2, parallel=parallel).spec,
        status=StatefulSetStatus(currentRevision="old"),
    )
    pods = members(set_, letters, revisions.ljust(6, "n"))
    actions, _ = look(set_, kept(old, "old"), kept(set_, "new", 2), *pods, MaxUnavailableStatefulSet=True)
    found = [f"-{name.removeprefix('web-')}" for name in deleted(actions)]
    found += [f"+{name.removeprefix('web-')}" for name in created(actions)]
    assert "".join(found) == writes


# -- availability -------------------------------------------------------------------------------


def ready_for(set_: StatefulSet, ordinal: int, seconds: float | None) -> Pod:
    pod = member(set_, ordinal, "A" if seconds is not None else "N")
    if seconds is None:
        return pod
    since = NOW - timedelta(seconds=seconds)
    condition = Condition(type="Ready", status="True", lastTransitionTime=since)
    return replace(pod, status=replace(pod.status, conditions=(condition,)))


@pytest.mark.parametrize(
    ("min_ready", "replicas", "seconds", "ready", "available", "wakes"),
    [
        pytest.param(3600, 1, (7200,), 1, 1, None, id="long enough"),
        pytest.param(3600, 1, (1800,), 1, 0, 1800, id="not long enough"),
        pytest.param(30, 2, (10, 10), 2, 0, 20, id="two, not long enough"),
        pytest.param(30, 2, (60, 60), 2, 2, None, id="two, long enough"),
        pytest.param(0, 2, (0, 0), 2, 2, None, id="without minReadySeconds at once"),
        pytest.param(5, 4, (None, 0, 2, 4.3), 3, 0, 0.7, id="looked at when the next one is available"),
    ],
)
@both_managements
def test_pods_are_available_after_min_ready_seconds(
    min_ready: int,
    replicas: int,
    seconds: tuple[float | None, ...],
    ready: int,
    available: int,
    wakes: float | None,
    parallel: bool,
) -> None:
    set_ = stateful(replicas, min_ready=min_ready, parallel=parallel)
    pods = [ready_for(set_, ordinal, age) for ordinal, age in enumerate(seconds)]
    actions, verdict = look(set_, kept(set_), *pods)
    status = status_of(actions)
    assert (status.readyReplicas, status.availableReplicas) == (ready, available)
    assert (verdict.after if isinstance(verdict, Wake) else None) == (
        None if wakes is None else timedelta(seconds=wakes)
    )


@pytest.mark.parametrize(
    ("replicas", "partition", "on_delete", "count"),
    [(1, 0, False, 3), (2, 0, False, 2), (4, 2, False, 4), (2, 0, True, 2)],
    ids=["scaling down", "updating", "updating above a partition", "OnDelete"],
)
def test_nothing_goes_before_pods_are_available(
    replicas: int, partition: int, on_delete: bool, count: int
) -> None:
    old = stateful(replicas, "v1", min_ready=30, partition=partition, on_delete=on_delete)
    new = stateful(replicas, "v2", min_ready=30, partition=partition, on_delete=on_delete)
    set_ = replace(old, spec=new.spec, status=StatefulSetStatus(currentRevision="old"))
    pods = [ready_for(set_, ordinal, 10) for ordinal in range(count)]
    pods = [
        replace(pod, metadata=replace(pod.metadata, labels={**pod.metadata.labels, history.REVISION: "old"}))
        for pod in pods
    ]
    actions, _ = look(set_, kept(old, "old"), kept(set_, "new", 2), *pods)
    assert deleted(actions) == created(actions) == []
    status = status_of(actions)
    assert (status.availableReplicas, status.updateRevision) == (0, "new")


# -- adoption -----------------------------------------------------------------------------------


def renamed(pod: Pod, name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{name}-uid"))


SET = stateful(5)
OWNED, ORPHAN = member(SET, 1), member(SET, 2, ownerReferences=())


@pytest.mark.parametrize(
    ("pod", "counted", "patched"),
    [
        pytest.param(OWNED, True, False, id="owned"),
        pytest.param(ORPHAN, True, True, id="an orphan with labels and name"),
        pytest.param(
            member(SET, 3, ownerReferences=(), labels={}), False, False, id="an orphan without labels"
        ),
        pytest.param(renamed(ORPHAN, "xweb-4"), False, False, id="an orphan of another name"),
        pytest.param(renamed(OWNED, "xweb-2"), False, True, id="owned, with another name"),
        pytest.param(member(SET, 3, labels={}), False, True, id="owned, without labels"),
    ],
)
def test_pods_are_adopted_and_released_by_labels_and_name(pod: Pod, counted: bool, patched: bool) -> None:
    actions, _ = look(SET, kept(SET), pod)
    assert status_of(actions).replicas == counted
    assert any(isinstance(one, Patch) and one.target is pod for one in actions) is patched


@pytest.mark.parametrize("keep", ["RR", "RD", "DR", "DD"])
@pytest.mark.parametrize("replicas", [2, 0])
def test_claims_of_an_adopted_pod_get_its_owners_and_those_of_a_released_one_none(
    keep: str, replicas: int
) -> None:
    set_ = stateful(replicas, claims=("data",), keep=keep, parallel=True)
    orphan, stranger = member(set_, 1, ownerReferences=()), renamed(member(set_, 2), "xweb-2")
    bare = [replace(one, metadata=replace(one.metadata, ownerReferences=())) for one in claims(set_, 0, 1, 2)]
    actions, _ = look(set_, kept(set_), member(set_, 0), orphan, stranger, *bare)
    documents: dict[str, list[str]] = {}
    for action in actions:
        if isinstance(action, ReadModifyWrite):
            document: dict[str, Any] = {"metadata": {}}
            action.mutate(document)
            owners = [one["name"] for one in document["metadata"].get("ownerReferences", ())]
            documents[action.target.metadata.name] = owners
    if replicas:
        expected = [["web"], ["web"]] if keep[1] == "D" else []
    elif keep[0] == "D":
        expected = [["web-0"], ["web-1"]]
    else:
        expected = [["web"], ["web"]] if keep[1] == "D" else []
    names = ["data-web-0", "data-web-1"][: len(expected)]
    assert documents == dict(zip(names, expected, strict=True))


@pytest.mark.parametrize("keep", ["DR", "DD"])
def test_a_set_is_not_scaled_up_until_a_claim_of_a_former_pod_is_gone(keep: str) -> None:
    set_ = stateful(3, claims=("data",), keep=keep)
    *owned, stale = claims(set_, 0, 1, 2)
    former = msgspec.structs.replace(
        member(set_, 0).metadata.ownerReferences[0], apiVersion="v1", kind="Pod", name="web-2", uid="stale"
    )
    stale = replace(stale, metadata=replace(stale.metadata, ownerReferences=(former,)))
    there = (kept(set_), *members(set_, "AA"), *owned)
    actions, _ = look(set_, *there, stale)
    assert created(actions) == []
    assert not any(isinstance(one, ReadModifyWrite) for one in actions)
    assert status_of(actions).replicas == 2
    assert created(look(set_, *there)[0]) == ["web-2"]
