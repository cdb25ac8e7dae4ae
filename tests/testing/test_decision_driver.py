"""Driving decisions without a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from steersman.api.kinds import DEPLOYMENTS, NEW_PODS, PODS, REPLICASETS, NewPod, ObjectMeta, Pod
from steersman.controllers.deployment import controller
from steersman.controllers.shared.indexes import BY_CONTROLLER, controller_key
from steersman.intent.actions import (
    Action,
    Batch,
    Create,
    Delete,
    Done,
    Emit,
    Failed,
    Patch,
    PatchType,
    Read,
    ReadModifyWrite,
    Skipped,
    UpdateStatus,
)
from steersman.intent.verdict import Rest, Verdict
from steersman.runtime import decision_driver
from steersman.testing.decision_driver import USUAL, Answers, StaticCaches, walk
from tests.harness.workloads import deployment, pod, replicaset

OWNER = deployment()
SET = replicaset(OWNER)
POD = pod(SET, "a")


def answered(action: Action[Any], answers: Answers | None = None) -> Any:
    """What a decision hears when it says just this."""
    heard: list[Any] = []

    async def decision() -> Verdict:
        heard.append(await action)
        return Rest("heard")

    walk(decision(), answers)
    return heard[0]


def test_a_decision_that_says_nothing_has_a_verdict_only() -> None:
    async def decision() -> Verdict:
        return Rest("nothing to do")

    assert walk(decision()) == ([], Rest("nothing to do"))


def test_actions_are_noted_in_order() -> None:
    event = Emit(POD, "Normal", "Reason", "message")

    async def decision() -> Verdict:
        await event
        await Delete(POD)
        return Rest("done")

    assert walk(decision()) == ([event, Delete(POD)], Rest("done"))


# -- usual answers ----------------------------------------------------------------------------


def test_what_is_created_has_a_name_a_uid_and_a_version() -> None:
    body = NewPod(metadata=ObjectMeta(generateName="web-", labels={"app": "web"}))
    made = answered(Create(PODS, "default", body))
    assert isinstance(made, Pod)
    assert made.metadata.name.startswith("web-")
    assert len(made.metadata.name) > len("web-")
    assert made.metadata.namespace == "default"
    assert made.metadata.labels == {"app": "web"}
    assert made.metadata.uid
    assert made.metadata.resourceVersion


def test_what_is_created_is_of_the_kind_that_was_asked_for() -> None:
    body = NewPod(metadata=ObjectMeta(name="a"))
    assert isinstance(answered(Create(NEW_PODS, "default", body)), NewPod)
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "unknown": 1}
    made = answered(Create(PODS.untyped, "default", plain))
    assert made["unknown"] == 1
    assert made["metadata"]["uid"]


def test_two_creations_are_told_apart() -> None:
    made: list[Pod] = []

    async def decision() -> Verdict:
        for _ in range(2):
            made.append(await Create(PODS, "default", NewPod(metadata=ObjectMeta(generateName="web-"))))
        return Rest("made")

    walk(decision())
    one, two = (each.metadata for each in made)
    assert (one.name, one.uid, one.resourceVersion) != (two.name, two.uid, two.resourceVersion)
    assert one.name != two.name
    assert one.uid != two.uid


def test_a_status_that_is_written_comes_back_with_a_new_version() -> None:
    status = replace(OWNER.status, replicas=7)
    written = answered(UpdateStatus(OWNER, status, {"a": "b"}))
    assert written.status == status
    assert written.metadata.annotations == {"a": "b"}
    assert written.spec == OWNER.spec
    assert written.metadata.resourceVersion != OWNER.metadata.resourceVersion
    assert answered(UpdateStatus(OWNER, status)).metadata.annotations == OWNER.metadata.annotations


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        (PatchType.MERGE, {"spec": {"replicas": 9}}),
        (PatchType.STRATEGIC, {"spec": {"replicas": 9}}),
        (PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 9}]),
    ],
)
def test_a_patch_is_applied(type_: PatchType, body: Any) -> None:
    patched = answered(Patch(SET, body, type_))
    assert patched.spec.replicas == 9
    assert patched.spec.selector == SET.spec.selector
    assert patched.spec.template.metadata == SET.spec.template.metadata
    assert bytes(patched.spec.template.spec) == bytes(SET.spec.template.spec)
    assert patched.metadata.uid == SET.metadata.uid
    assert patched.metadata.resourceVersion != SET.metadata.resourceVersion


def test_an_amended_document_is_read_back() -> None:
    def change(document: dict[str, Any]) -> None:
        assert document["kind"] == "Deployment"
        document["spec"]["paused"] = True

    amended = answered(ReadModifyWrite(OWNER, change))
    assert amended.spec.paused
    assert not OWNER.spec.paused


def test_a_live_read_finds_what_the_cache_showed() -> None:
    assert answered(Read(OWNER)) is OWNER


def test_deletes_and_events_are_answered_with_nothing() -> None:
    assert answered(Delete(POD)) is None
    assert answered(Emit(POD, "Normal", "Reason", "message")) is None


# -- other answers ----------------------------------------------------------------------------


def test_a_mapping_answers_by_type_of_action() -> None:
    other = deployment(name="other")
    assert answered(Read(OWNER), {Read: other}) is other
    assert answered(Delete(POD), {Read: other}) is None


def test_a_list_in_a_mapping_is_used_up() -> None:
    heard: list[Any] = []

    async def decision() -> Verdict:
        for _ in range(3):
            heard.append(await Read(OWNER))
        return Rest("read")

    one, two = deployment(name="one"), deployment(name="two")
    walk(decision(), {Read: [one, two]})
    assert heard == [one, two, OWNER]


def test_a_function_in_a_mapping_is_asked() -> None:
    named = answered(Read(OWNER), {Read: lambda action: action.target.metadata.name})
    assert named == "web"


def test_a_function_may_leave_the_answer_to_the_server() -> None:
    asked: list[Action[Any]] = []

    def answer(action: Action[Any]) -> Any:
        asked.append(action)
        return USUAL

    assert answered(Read(OWNER), answer) is OWNER
    assert asked == [Read(OWNER)]


def test_a_list_answers_one_action_after_another() -> None:
    heard: list[Any] = []

    async def decision() -> Verdict:
        for _ in range(3):
            heard.append(await Read(OWNER))
        return Rest("heard")

    other = deployment(name="other")
    walk(decision(), [USUAL, other])
    assert heard == [OWNER, other, OWNER]


def test_an_error_is_thrown_into_the_decision() -> None:
    async def decision() -> Verdict:
        try:
            await Create(REPLICASETS, "default", SET)
        except AlreadyExists as error:
            return Rest(f"caught: {error}")
        return Rest("created")

    assert walk(decision(), {Create: AlreadyExists("taken")})[1] == Rest("caught: taken")


def test_an_error_the_decision_does_not_catch_comes_out_and_leaves_what_was_said() -> None:
    async def decision() -> Verdict:
        await Read(OWNER)
        await Delete(POD)
        return Rest("deleted")

    said: list[Action[Any]] = []
    with pytest.raises(Forbidden, match="no"):
        walk(decision(), {Delete: Forbidden("no")}, recorded=said)
    assert said == [Read(OWNER), Delete(POD)]


# -- batches ----------------------------------------------------------------------------------


def test_a_batch_is_noted_as_its_actions_and_answered_one_outcome_each() -> None:
    other = pod(SET, "b")
    actions, outcomes = outcomes_of(Batch((Delete(POD), Delete(other))))
    assert actions == [Delete(POD), Delete(other)]
    assert outcomes == [Done(None), Done(None)]


def outcomes_of(batch: Batch[Any], answers: Answers | None = None) -> tuple[list[Action[Any]], list[Any]]:
    heard: list[Any] = []

    async def decision() -> Verdict:
        heard.extend(await batch)
        return Rest("tried")

    return walk(decision(), answers)[0], heard


def test_a_slow_start_stops_after_the_first_group_with_a_failure() -> None:
    batch = Batch(tuple(Delete(pod(SET, str(i))) for i in range(8)))
    refusal = Conflict("no")
    actions, outcomes = outcomes_of(batch, {Delete: [USUAL, refusal]})
    assert len(actions) == 3
    assert outcomes == [Done(None), Failed(refusal), Done(None), *[Skipped()] * 5]


def test_without_a_slow_start_all_are_tried() -> None:
    batch = Batch(tuple(Delete(pod(SET, str(i))) for i in range(4)), slow_start=False)
    refusal = NotFound("gone")
    actions, outcomes = outcomes_of(batch, {Delete: [refusal]})
    assert len(actions) == 4
    assert outcomes == [Failed(refusal), Done(None), Done(None), Done(None)]


# -- what is not a decision -------------------------------------------------------------------


def test_a_decision_that_never_ends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_driver, "LONGEST_WALK", 10)

    async def decision() -> Verdict:
        while True:
            await Read(OWNER)

    with pytest.raises(AssertionError, match="no verdict after 10 actions"):
        walk(decision())


def test_a_decision_that_waits_for_anything_but_actions_is_refused() -> None:
    async def decision() -> Verdict:
        await asyncio.sleep(0)
        return Rest("slept")

    with pytest.raises(TypeError, match="awaits actions only"):
        walk(decision())


# -- caches -----------------------------------------------------------------------------------


def test_shelves_hold_objects_by_kind_with_the_indexes_of_the_watches() -> None:
    caches = StaticCaches(controller, OWNER, SET, POD)
    assert caches[DEPLOYMENTS].get(OWNER.key) is OWNER
    assert list(
        caches[PODS].by(BY_CONTROLLER, controller_key("ReplicaSet", SET.metadata.name, SET.metadata.uid))
    ) == [POD]
    caches.remove(POD)
    assert list(caches[PODS].list()) == []
