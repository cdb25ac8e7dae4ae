"""Rollback on request."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.kinds import Deployment, DeploymentStatus, ReplicaSet
from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.api.scheme import encode, kind_of
from steersman.controllers.deployment import Seen, decide, rollback
from steersman.controllers.deployment.revision import REVISION, ROLLBACK_TO
from steersman.intent.actions import Action, Create, Emit, Patch, ReadModifyWrite, UpdateStatus
from steersman.intent.verdict import Rest
from steersman.testing.decision_driver import walk
from tests.harness.workloads import CREATED, deployment, replicaset

NOW = CREATED + timedelta(hours=1)


def asking(wish: str, image: str = "v3") -> Deployment:
    return deployment(
        3,
        image,
        annotations={ROLLBACK_TO: wish, REVISION: "3", LAST_APPLIED: "{}", "cause": "third"},
        status=DeploymentStatus(observedGeneration=1),
    )


def history(owner: Deployment) -> tuple[ReplicaSet, ...]:
    causes = {1: "first", 2: "second", 3: "third"}
    return tuple(
        replicaset(
            owner,
            f"v{i}",
            3 if i == 3 else 0,
            age=9 - i,
            annotations={REVISION: str(i), "cause": causes[i]},
        )
        for i in (1, 2, 3)
    )


def run(owner: Deployment, *sets: ReplicaSet) -> tuple[list[Action[Any]], Any]:
    return walk(decide(Seen(owner, sets), NOW))


def document(owner: Deployment) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(encode(kind_of(owner), owner))
    return plain


@pytest.mark.parametrize(
    ("wish", "revision", "image"),
    [("1", 1, "v1"), ("2", 2, "v2"), ("0", 2, "v2")],
)
def test_the_old_template_and_its_annotations_come_back(wish: str, revision: int, image: str) -> None:
    owner = asking(wish)
    actions, verdict = run(owner, *history(owner))
    amend, event = actions
    assert isinstance(amend, ReadModifyWrite)
    edited = document(owner)
    edited["spec"]["unknownField"] = {"kept": True}
    amend.mutate(edited)
    assert edited["spec"]["template"] == {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    assert edited["spec"]["unknownField"] == {"kept": True}
    assert edited["metadata"]["annotations"] == {
        REVISION: "3",
        LAST_APPLIED: "{}",
        "cause": "first" if revision == 1 else "second",
    }
    assert event == Emit(
        owner, "Normal", "DeploymentRollback", f'Rolled back deployment "web" to revision {revision}'
    )
    assert verdict == Rest(f"rolled back to revision {revision}")


@pytest.mark.parametrize(
    ("wish", "reason", "message"),
    [
        (
            "3",
            "DeploymentRollbackTemplateUnchanged",
            'The rollback revision contains the same template as current deployment "web"',
        ),
        ("9", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
    ],
)
def test_a_wish_that_cannot_be_met_is_told_and_cleared(wish: str, reason: str, message: str) -> None:
    owner = asking(wish)
    actions, verdict = run(owner, *history(owner))
    event, amend = actions
    assert event == Emit(owner, "Warning", reason, message)
    assert isinstance(amend, ReadModifyWrite)
    edited = document(owner)
    amend.mutate(edited)
    assert edited["spec"] == document(owner)["spec"]
    assert edited["metadata"]["annotations"] == {REVISION: "3", LAST_APPLIED: "{}", "cause": "third"}
    assert verdict == Rest(f"rollback rejected: {message}")


def test_without_an_earlier_revision_there_is_nothing_to_go_back_to() -> None:
    owner = asking("0")
    (event, _), _ = run(owner, history(owner)[2])
    assert event == Emit(
        owner, "Warning", "DeploymentRollbackRevisionNotFound", "Unable to find last revision."
    )


def test_a_wish_that_was_changed_meanwhile_is_left_to_the_next_round() -> None:
    owner = asking("1")
    (amend, _), _ = run(owner, *history(owner))
    assert isinstance(amend, ReadModifyWrite)
    changed = document(asking("2"))
    before = msgspec.json.encode(changed)
    amend.mutate(changed)
    assert msgspec.json.encode(changed) == before


def test_the_present_template_becomes_a_revision_before_it_is_left() -> None:
    owner = asking("1", "v4")
    actions, _ = run(owner, *history(owner))
    assert [type(action) for action in actions] == [Create, Emit, UpdateStatus]
    create = actions[0]
    assert isinstance(create, Create)
    assert isinstance(create.body, ReplicaSet)
    assert create.body.metadata.annotations[REVISION] == "4"


def test_the_revision_of_the_new_set_is_brought_up_to_date_first() -> None:
    owner = asking("2")
    old, older, new = history(owner)
    stale = replace(new, metadata=replace(new.metadata, annotations={REVISION: "1", "cause": "third"}))
    actions, _ = run(owner, old, older, stale)
    assert [type(action) for action in actions] == [Patch, ReadModifyWrite, Emit]


@pytest.mark.parametrize("wish", ["", "junk", "1.5"])
def test_a_wish_that_is_no_number_is_none(wish: str) -> None:
    assert rollback.requested_revision(asking(wish)) is None


def test_the_wish_is_where_the_api_server_puts_it() -> None:
    wish = {"deprecated.deployment.rollback.to": "7"}
    assert rollback.requested_revision(deployment(annotations=wish)) == 7


def test_a_paused_deployment_does_not_roll_back_and_keeps_its_history_for_it() -> None:
    owner = asking("1")
    owner = replace(owner, spec=replace(owner.spec, paused=True, revisionHistoryLimit=0))
    actions, _ = run(owner, *history(owner))
    assert [type(action) for action in actions] == [UpdateStatus]
