"""Volumes whose reclaiming fails or is interrupted: what is tried again and when, and what is left behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, Conflict, Forbidden
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.scheme import Key
from steersman.controllers.persistentvolume import decide, observe
from steersman.controllers.persistentvolume.memory import Memory
from steersman.controllers.persistentvolume.metrics import OPERATION_ERRORS
from steersman.controllers.persistentvolume.seen import Config
from steersman.intent.actions import (
    Action,
    Address,
    Create,
    Delete,
    Emit,
    List,
    Read,
    RemoveDirectory,
    Update,
    UpdateStatus,
)
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.controllers.persistentvolume.test_rows import NOW, caches_of, claim, pod, volume

USED = Key("", "used")
RECYCLED = ["used", "1Gi", "Released", "Recycle", "claim:data/uid", "path:/tmp/used"]
DELETED = [
    "used", "1Gi", "Released", "Delete", "claim:data/uid", "path:/tmp/used",
    "provisioned-by:kubernetes.io/host-path", "finalizer:kubernetes.io/pv-controller",
]  # fmt: skip


def recycler(phase: str) -> Pod:
    return pod(["recycler-for-used", phase])


def caches_with(*objects: Object, recycling: bool = True) -> StaticCaches:
    caches = caches_of(*objects)
    if recycling:
        memory_in(caches).recyclers["used"] = "uid-recycler-for-used"
    return caches


def memory_in(caches: StaticCaches) -> Memory:
    assert isinstance(caches.memory, Memory)
    return caches.memory


def run(
    caches: StaticCaches, answers: Callable[[Action[Any]], Any], *, config: Config = Config()
) -> tuple[list[Action[Any]], Verdict]:
    seen = observe(caches, USED, config)
    assert seen is not None
    return walk(decide(seen, NOW), answers)


def server(**answers: Any) -> Callable[[Action[Any]], Any]:
    """Answers actions by the names of their types; reads the volume as the cache shows it."""

    def answer(action: Action[Any]) -> Any:
        name = type(action).__name__
        if name in answers:
            return answers[name]
        return [] if isinstance(action, List) else USUAL

    return answer


# -- recycling that failed --------------------------------------------------------------------


def test_a_volume_whose_recycler_fails_is_tried_again_after_the_sync_period_and_not_earlier() -> None:
    used = volume(RECYCLED, "")
    caches = caches_with(used, recycler("Failed"))
    _, verdict = run(caches, server(), config=Config(sync_period=20.0))
    message = "Recycle failed: failed to recycle volume: pod failed, pod.Status.Message unknown"
    assert verdict == Wake(timedelta(seconds=20), message)

    # The deletion of the pod causes a round at once.
    gone = caches_of(used)
    memory_in(gone).recycle_failures.update(memory_in(caches).recycle_failures)
    actions, verdict = run(gone, server(), config=Config(sync_period=20.0))
    assert actions == []
    assert verdict == Wake(timedelta(seconds=20), "recycling failed, and is tried again")

    memory_in(gone).recycle_failures["used"] -= 20.0
    actions, _ = run(gone, server())
    assert [type(action) for action in actions] == [Read, Create]


def test_a_pod_that_has_the_name_of_the_recycler_is_deleted_though_the_cache_does_not_show_it() -> None:
    caches = caches_with(volume(RECYCLED, ""), recycling=False)
    actions, _ = run(caches, server(Create=AlreadyExists("exists")))
    assert Delete(Address(PODS, "default", "recycler-for-used")) in actions
    assert messages(actions) == ["Recycle failed: old recycler pod found, will retry later"]


def test_the_volume_says_why_an_old_recycler_pod_cannot_be_deleted() -> None:
    caches = caches_with(volume(RECYCLED, ""), recycler("Running"), recycling=False)
    actions, _ = run(caches, server(Delete=Forbidden("forbidden")))
    why = "failed to delete old recycler pod default/recycler-for-used: forbidden"
    assert messages(actions) == [f"Recycle failed: {why}"]


@pytest.mark.parametrize(
    ("phase", "why"),
    [
        ("Failed", "failed to recycle volume: pod failed, pod.Status.Message unknown"),
        ("Succeeded", "failed to delete recycler pod: denied"),
    ],
)
def test_a_volume_whose_recycler_cannot_be_deleted_has_failed(phase: str, why: str) -> None:
    caches = caches_with(volume(RECYCLED, ""), recycler(phase))
    actions, verdict = run(caches, server(Delete=Forbidden("denied")))
    assert messages(actions) == [f"Recycle failed: {why}"]
    assert isinstance(verdict, Wake)


def messages(actions: list[Action[Any]]) -> list[str]:
    return [action.message for action in actions if isinstance(action, Emit)]


# -- recycling that is not needed any more ----------------------------------------------------


def test_the_recycler_of_a_deleted_volume_runs_to_its_end_and_is_deleted() -> None:
    caches = caches_with(recycler("Running"))
    actions, verdict = run(caches, server())
    assert (actions, type(verdict)) == ([], Rest)

    caches = caches_with(recycler("Succeeded"))
    actions, _ = run(caches, server())
    assert actions == [Delete(recycler("Succeeded"))]
    assert not memory_in(caches).recyclers


def test_a_pod_that_only_has_the_name_of_a_recycler_is_left_alone() -> None:
    assert observe(caches_with(recycler("Succeeded"), recycling=False), USED) is None


def test_a_recycler_that_ended_for_an_earlier_claim_does_not_count_for_the_next() -> None:
    bound = claim(["data", "uid", "1Gi", "Bound", "volume:used", "by-controller", "completed"])
    caches = caches_with(
        replace(volume(RECYCLED, ""), status=replace(volume(RECYCLED, "").status, phase="Bound")),
        bound,
        recycler("Succeeded"),
    )
    actions, _ = run(caches, server())
    assert actions == [Delete(recycler("Succeeded"))]
    assert not memory_in(caches).recyclers


# -- deletion ---------------------------------------------------------------------------------


def test_a_volume_whose_finalizer_cannot_be_removed_has_failed() -> None:
    actions: list[Action[Any]] = []

    def answer(action: Action[Any]) -> Any:
        actions.append(action)
        return Forbidden("denied") if isinstance(action, Update) else USUAL

    with pytest.raises(InvalidSpec, match="can't update finalizer: denied"):
        run(caches_of(volume(DELETED, "")), answer)
    kinds = [type(action) for action in actions]
    assert kinds == [Read, RemoveDirectory, Update, UpdateStatus, Emit, Measure, Measure]
    assert messages(actions) == ["persistent volume controller can't update finalizer: denied"]
    assert actions[-2] == Measure(OPERATION_ERRORS, labels=("kubernetes.io/host-path", "delete"))


def test_a_volume_that_changes_while_it_is_deleted_has_not_failed() -> None:
    actions: list[Action[Any]] = []

    def answer(action: Action[Any]) -> Any:
        actions.append(action)
        return Conflict("changed") if isinstance(action, Update) else USUAL

    with pytest.raises(Conflict):
        run(caches_of(volume(DELETED, "")), answer)
    assert not any(isinstance(action, UpdateStatus | Emit) for action in actions)


# -- claims that the cache does not show -----------------------------------------------------------


@pytest.mark.parametrize("named", ["", "volume:used"])
def test_a_volume_whose_claim_only_the_server_shows_is_looked_at_again(named: str) -> None:
    used = volume(["used", "1Gi", "Bound", "Retain", "claim:data/uid"], "")
    live = claim(["data", "uid", "1Gi", "Pending", *([named] if named else [])])
    actions, verdict = run(caches_of(used), server(Read=live))
    assert [type(action) for action in actions] == [Read]
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=15)

    _, verdict = run(caches_of(used, live), server())
    assert isinstance(verdict, Rest)
