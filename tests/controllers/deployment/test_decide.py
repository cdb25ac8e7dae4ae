"""Rounds of deployment-controller: actions and verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api import pod_templates
from steersman.api.conditions import find_condition
from steersman.api.errors import AlreadyExists, Cause, Conflict, Forbidden, NotFound
from steersman.api.generated import load
from steersman.api.kinds import (
    Condition,
    Deployment,
    DeploymentStatus,
    DeploymentStrategy,
    LabelSelector,
    LabelSelectorRequirement,
    Object,
    ReplicaSet,
)
from steersman.api.scheme import encode, kind_of
from steersman.controllers.deployment import Seen, decide
from steersman.controllers.deployment.replicasets import size
from steersman.controllers.deployment.revision import REVISION, REVISION_HISTORY
from steersman.controllers.deployment.scale import DESIRED_REPLICAS, MAX_REPLICAS
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, Read, UpdateStatus
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from steersman.testing.decision_driver import Answers, walk
from tests.harness.workloads import CREATED, deployment, pod_template, replicaset

NOW = CREATED + timedelta(hours=1, microseconds=7)
SECOND = CREATED + timedelta(hours=1)


def run(
    owner: Deployment,
    *sets: ReplicaSet,
    orphans: tuple[ReplicaSet, ...] = (),
    running: dict[str, int] | None = None,
    answers: Answers | None = None,
) -> tuple[list[Action[Any]], Rest | Wake]:
    return walk(decide(Seen(owner, sets, orphans, running or {}), NOW), answers)


def marks(replicas: int, most: int, revision: int = 1) -> dict[str, str]:
    return {REVISION: str(revision), DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(most)}


def scaled(owner: Deployment, message: str) -> Emit:
    return Emit(owner, "Normal", "ScalingReplicaSet", message)


def status_of(actions: list[Action[Any]]) -> DeploymentStatus:
    """The one status that was written."""
    (update,) = [action for action in actions if isinstance(action, UpdateStatus)]
    assert isinstance(update.status, DeploymentStatus)
    return update.status


def progressing(actions: list[Action[Any]]) -> Condition:
    condition = find_condition(status_of(actions).conditions, "Progressing")
    assert condition is not None
    return condition


def available(status: str = "True") -> Condition:
    enough = status == "True"
    return Condition(
        type="Available",
        status=status,
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        lastUpdateTime=CREATED,
        lastTransitionTime=CREATED,
    )


def moving(reason: str = "ReplicaSetUpdated", status: str = "True", at: Any = SECOND) -> Condition:
    return Condition(
        type="Progressing", status=status, reason=reason, lastUpdateTime=at, lastTransitionTime=at
    )


def settled(replicas: int = 3, revision: int = 1, **more: Any) -> tuple[Deployment, ReplicaSet]:
    """A Deployment whose rollout is over, and its set."""
    image = more.pop("image", "v1")
    owner = deployment(
        replicas,
        image,
        annotations={REVISION: str(revision)},
        status=DeploymentStatus(
            observedGeneration=1,
            replicas=replicas,
            updatedReplicas=replicas,
            readyReplicas=replicas,
            availableReplicas=replicas,
            terminatingReplicas=0,
            conditions=(available(), moving("NewReplicaSetAvailable", at=CREATED)),
        ),
        **more,
    )
    most = replicas + -(-replicas // 4) if owner.spec.strategy.type == "RollingUpdate" else replicas
    return owner, replicaset(owner, image, replicas, annotations=marks(replicas, most, revision))


# -- a first rollout --------------------------------------------------------------------------


def test_a_new_deployment_gets_its_set_and_says_so_in_one_status_write() -> None:
    owner = deployment(3, annotations={"cause": "first"}, min_ready=5)
    actions, verdict = run(owner)
    create, event, update = actions
    assert isinstance(create, Create)
    assert isinstance(create.body, ReplicaSet)
    born = create.body
    digest = pod_templates.digest(owner.spec.template, None)
    labels = {"app": "web", "pod-template-hash": digest}
    assert born.metadata.name == f"web-{digest}"
    assert born.metadata.namespace == "default"
    assert born.metadata.labels == labels
    assert born.metadata.annotations == {"cause": "first", **marks(3, 4)}
    (reference,) = born.metadata.ownerReferences
    assert (reference.kind, reference.uid, reference.controller) == ("Deployment", "web-uid", True)
    assert reference.blockOwnerDeletion
    assert born.spec.replicas == 3
    assert born.spec.minReadySeconds == 5
    assert born.spec.selector == LabelSelector(matchLabels=labels)
    assert born.spec.template.metadata.labels == labels
    assert born.spec.template.spec is owner.spec.template.spec
    assert event == scaled(owner, f"Scaled up replica set web-{digest} from 0 to 3")
    assert isinstance(update, UpdateStatus)
    assert update.annotations == {"cause": "first", REVISION: "1"}
    condition = progressing(actions)
    assert (condition.status, condition.reason) == ("True", "NewReplicaSetCreated")
    assert condition.message == f'Created new replica set "web-{digest}"'
    assert condition.lastUpdateTime == SECOND
    assert status_of(actions).unavailableReplicas == 3
    assert status_of(actions).observedGeneration == 1
    assert verdict == Wake(
        timedelta(seconds=600) - timedelta(microseconds=7),
        "rollout in progress: 0 of 3 new replicas available; progress deadline at 2024-01-01T01:10:00Z",
    )


def test_a_deployment_of_nought_gets_a_set_without_an_event_and_is_complete() -> None:
    actions, verdict = run(deployment(0))
    assert [type(action) for action in actions] == [Create, UpdateStatus]
    assert progressing(actions).reason == "NewReplicaSetAvailable"
    assert verdict == Rest("0 of 0 replicas updated and available")


def test_a_finished_rollout_says_nothing_and_rests() -> None:
    owner, rs = settled()
    assert run(owner, rs) == ([], Rest("3 of 3 replicas updated and available"))


def test_the_same_round_twice_writes_once() -> None:
    owner = deployment(3)
    actions, _ = run(owner)
    create, _, update = actions
    assert isinstance(create, Create)
    assert isinstance(create.body, ReplicaSet)
    assert isinstance(update, UpdateStatus)
    born = replace(create.body, metadata=replace(create.body.metadata, uid="u", creationTimestamp=SECOND))
    owner = replace(
        owner, status=update.status, metadata=replace(owner.metadata, annotations=update.annotations)
    )
    again, _ = run(owner, born)
    assert again == []


def test_progress_is_written_as_pods_become_available() -> None:
    owner = deployment(3, annotations={REVISION: "1"}, status=DeploymentStatus(conditions=(moving(),)))
    rs = replicaset(owner, replicas=3, available=2, annotations=marks(3, 4))
    actions, verdict = run(owner, rs)
    assert [type(action) for action in actions] == [UpdateStatus]
    assert progressing(actions).reason == "ReplicaSetUpdated"
    assert status_of(actions).availableReplicas == 2
    assert isinstance(verdict, Wake)
    assert verdict.because.startswith("rollout in progress: 2 of 3 new replicas available")


def test_a_rollout_without_progress_is_given_up_at_its_deadline() -> None:
    owner = deployment(
        3,
        deadline=60,
        annotations={REVISION: "1"},
        status=DeploymentStatus(
            replicas=3, updatedReplicas=3, conditions=(moving(at=SECOND - timedelta(minutes=1)),)
        ),
    )
    rs = replicaset(owner, replicas=3, available=0, annotations=marks(3, 4))
    actions, verdict = run(owner, rs)
    assert progressing(actions).reason == "ProgressDeadlineExceeded"
    assert verdict == Rest("rollout made no progress for 60s: 0 of 3 new replicas available")


def test_the_wake_is_at_the_instant_the_deadline_passes() -> None:
    condition = moving(at=SECOND - timedelta(seconds=20))
    owner = deployment(
        3,
        deadline=60,
        annotations={REVISION: "1"},
        status=DeploymentStatus(replicas=3, updatedReplicas=3, conditions=(condition,)),
    )
    _, verdict = run(owner, replicaset(owner, available=0, annotations=marks(3, 4)))
    assert isinstance(verdict, Wake)
    assert NOW + verdict.after == SECOND + timedelta(seconds=40)


def test_a_failure_of_a_set_is_shown_and_told() -> None:
    failure = Condition(
        type="ReplicaFailure",
        status="True",
        reason="FailedCreate",
        message="quota",
        lastTransitionTime=CREATED,
    )
    owner = deployment(2, annotations={REVISION: "1"}, status=DeploymentStatus(conditions=(moving(),)))
    rs = replicaset(owner, replicas=2, current=0, conditions=(failure,), annotations=marks(2, 3))
    actions, verdict = run(owner, rs)
    shown = find_condition(status_of(actions).conditions, "ReplicaFailure")
    assert shown is not None
    assert (shown.status, shown.reason, shown.message) == ("True", "FailedCreate", "quota")
    assert verdict.because.startswith(
        "rollout in progress: 0 of 2 new replicas available; FailedCreate: quota"
    )


def test_a_set_found_before_anything_was_said_about_progress_is_mentioned() -> None:
    owner = deployment(3, annotations={REVISION: "1"}, paused=False)
    actions, _ = run(owner, replicaset(owner, replicas=3, current=0, annotations=marks(3, 4)))
    condition = progressing(actions)
    assert (condition.reason, condition.message) == ("FoundNewReplicaSet", 'Found new replica set "web-v1"')


def test_without_a_deadline_there_is_no_progressing_condition() -> None:
    owner = deployment(3, deadline=None)
    actions, verdict = run(owner)
    assert [condition.type for condition in status_of(actions).conditions] == ["Available"]
    assert verdict == Rest("rollout in progress: 0 of 3 new replicas available")


# -- an update --------------------------------------------------------------------------------


def test_an_update_creates_the_new_set_and_frees_what_may_be_missing_in_the_same_round() -> None:
    owner, old = settled(4)
    owner = replace(owner, spec=replace(owner.spec, template=pod_template("v2")))
    old = replace(old, metadata=replace(old.metadata, creationTimestamp=CREATED - timedelta(days=1)))
    actions, verdict = run(owner, old)
    create, born, patch, shrunk, again, grown, update = actions
    assert isinstance(create, Create)
    assert isinstance(create.body, ReplicaSet)
    name = create.body.metadata.name
    assert size(create.body) == 1
    assert create.body.metadata.annotations[REVISION] == "2"
    assert born == scaled(owner, f"Scaled up replica set {name} from 0 to 1")
    # The notes on the old set are right already, so only its size is sent.
    assert patch == Patch(old, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}})
    assert shrunk == scaled(owner, "Scaled down replica set web-v1 from 4 to 3")
    assert isinstance(again, Patch)
    assert again.body["spec"] == {"replicas": 2}
    assert grown == scaled(owner, f"Scaled up replica set {name} from 1 to 2")
    assert isinstance(update, UpdateStatus)
    assert update.annotations == {REVISION: "2"}
    assert progressing(actions).reason == "NewReplicaSetCreated"
    assert isinstance(verdict, Wake)
    assert verdict.because.startswith(
        "rollout in progress: 0 of 4 new replicas available, 4 old pods remaining"
    )


def amidst(known: int) -> tuple[Deployment, ReplicaSet, ReplicaSet]:
    """A rollout with one new pod of four; the status knows of so many updated ones."""
    owner, _ = settled(4)
    owner = replace(
        owner,
        metadata=replace(owner.metadata, annotations={REVISION: "2"}),
        spec=replace(owner.spec, template=pod_template("v2")),
        status=replace(owner.status, updatedReplicas=known),
    )
    old = replicaset(owner, "v1", 3, age=9, annotations=marks(4, 5))
    return owner, old, replicaset(owner, "v2", 1, annotations=marks(4, 5, 2))


def test_a_step_of_a_rollout_resizes_both_and_leaves_the_status_to_the_next_round() -> None:
    owner, old, new = amidst(known=1)
    actions, verdict = run(owner, old, new)
    assert actions == [
        Patch(old, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}}),
        scaled(owner, "Scaled down replica set web-v1 from 3 to 2"),
        Patch(new, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}}),
        scaled(owner, "Scaled up replica set web-v2 from 1 to 3"),
    ]
    assert verdict == Rest("scaled web-v1 from 3 to 2, scaled web-v2 from 1 to 3")


def test_pods_that_were_not_reported_yet_are_reported_at_each_step() -> None:
    """Else a long rollout that moves all the time would never say so."""
    owner, old, new = amidst(known=0)
    actions, verdict = run(owner, old, new)
    assert [type(action) for action in actions] == [Patch, Emit, Patch, Emit, UpdateStatus]
    assert status_of(actions).updatedReplicas == 1
    assert progressing(actions).reason == "ReplicaSetUpdated"
    assert verdict.because.startswith("scaled web-v1 from 3 to 2")


def test_going_back_to_an_old_template_gives_its_set_a_new_revision_in_the_same_request() -> None:
    """What kubectl rollout undo leads to."""
    owner = deployment(2, "v1", surge=1, unavailable=0, annotations={REVISION: "2", "cause": "back"})
    again = replicaset(owner, "v1", 0, age=9, annotations=marks(2, 3, 1))
    other = replicaset(owner, "v2", 2, annotations=marks(2, 3, 2))
    actions, _ = run(owner, again, other)
    assert actions[0] == Patch(
        again,
        {
            "metadata": {
                "resourceVersion": "1",
                "annotations": {REVISION: "3", REVISION_HISTORY: "1", "cause": "back"},
            },
            "spec": {"replicas": 1},
        },
    )


def test_the_deployment_takes_the_revision_of_its_set_once_that_is_written() -> None:
    owner, rs = settled(revision=3)
    owner = replace(owner, metadata=replace(owner.metadata, annotations={REVISION: "2", "x": "y"}))
    rs = replace(rs, metadata=replace(rs.metadata, annotations={**rs.metadata.annotations, "x": "y"}))
    actions, _ = run(owner, rs)
    assert actions == [UpdateStatus(owner, owner.status, {REVISION: "3", "x": "y"})]


def test_a_changed_min_ready_seconds_reaches_the_new_set() -> None:
    owner, rs = settled(min_ready=9)
    actions, verdict = run(owner, rs)
    assert actions == [Patch(rs, {"metadata": {"resourceVersion": "1"}, "spec": {"minReadySeconds": 9}})]
    assert isinstance(verdict, Rest)


def test_old_sets_past_the_history_go_when_the_rollout_is_complete() -> None:
    owner, new = settled(image="v4", revision=4, history=1)
    old = [replicaset(owner, f"v{i}", 0, age=9 - i, annotations=marks(3, 4, i)) for i in (1, 2, 3)]
    actions, verdict = run(owner, *old, new)
    assert actions == [Delete(old[0], exact=True), Delete(old[1], exact=True)]
    assert verdict == Rest("3 of 3 replicas updated and available")


def test_old_sets_stay_while_the_rollout_goes_on() -> None:
    owner, new = settled(image="v2", revision=2, history=0)
    new = replace(new, status=replace(new.status, availableReplicas=2))
    actions, _ = run(owner, replicaset(owner, "v1", 0, age=9, annotations=marks(3, 4)), new)
    assert not [action for action in actions if isinstance(action, Delete)]


def test_a_set_that_is_gone_already_is_no_failure_of_the_clean_up() -> None:
    owner, new = settled(image="v2", revision=2, history=0)
    old = replicaset(owner, "v1", 0, age=9, annotations=marks(3, 4))
    actions, verdict = run(owner, old, new, answers={Delete: NotFound("gone")})
    assert actions == [Delete(old, exact=True)]
    assert isinstance(verdict, Rest)


# -- what goes wrong --------------------------------------------------------------------------


def test_nothing_grows_when_something_could_not_be_made_smaller_for_it() -> None:
    owner = deployment(4, "v2", annotations={REVISION: "2"})
    old = replicaset(owner, "v1", 3, age=9, annotations=marks(4, 5))
    new = replicaset(owner, "v2", 1, annotations=marks(4, 5, 2))
    said: list[Action[Any]] = []
    with pytest.raises(Conflict):
        walk(decide(Seen(owner, (old, new)), NOW), {Patch: [Conflict("changed")]}, recorded=said)
    assert [type(action) for action in said] == [Patch, UpdateStatus]


def test_a_change_the_server_undoes_leaves_the_status_to_this_round() -> None:
    """No other round would follow: nothing changed that could be seen."""
    owner = deployment(4, "v2", annotations={REVISION: "2"})
    old = replicaset(owner, "v1", 3, age=9, annotations=marks(4, 5))
    new = replicaset(owner, "v2", 1, annotations=marks(4, 5, 2))
    actions, _ = run(owner, old, new, answers={Patch: lambda action: action.target})
    assert [type(action) for action in actions] == [Patch, Patch, UpdateStatus]


def test_a_revision_that_could_not_be_written_is_not_shown() -> None:
    owner = deployment(2, "v1", annotations={REVISION: "2"})
    again = replicaset(owner, "v1", 0, age=9, annotations=marks(2, 3, 1))
    said: list[Action[Any]] = []
    with pytest.raises(Conflict):
        walk(decide(Seen(owner, (again,)), NOW), {Patch: Conflict("changed")}, recorded=said)
    (update,) = [action for action in said if isinstance(action, UpdateStatus)]
    assert update.annotations is None


def test_a_set_that_cannot_be_created_is_reported_and_tried_again() -> None:
    owner = deployment(3)
    said: list[Action[Any]] = []
    with pytest.raises(Forbidden):
        walk(decide(Seen(owner), NOW), {Create: Forbidden("no quota")}, recorded=said)
    name = f"web-{pod_templates.digest(owner.spec.template, None)}"
    message = f'Failed to create new replica set "{name}": no quota'
    condition = progressing(said)
    assert (condition.status, condition.reason) == ("False", "ReplicaSetCreateError")
    assert condition.message == message
    assert said[-1] == Emit(owner, "Warning", "ReplicaSetCreateError", message)


def test_the_refusal_is_what_is_reported_even_if_the_status_cannot_be_written() -> None:
    answers: dict[type[Action[Any]], object] = {
        Create: Forbidden("no quota"),
        UpdateStatus: Conflict("changed"),
    }
    said: list[Action[Any]] = []
    with pytest.raises(Forbidden):
        walk(decide(Seen(deployment(3)), NOW), answers, recorded=said)
    assert isinstance(said[-1], Emit)


def test_in_a_namespace_that_goes_away_nothing_is_reported() -> None:
    going = Forbidden("going", causes=(Cause("NamespaceTerminating", "", ""),))
    actions, verdict = run(deployment(3), answers={Create: going})
    assert [type(action) for action in actions] == [Create]
    assert verdict == Rest("namespace is terminating: cannot create a ReplicaSet")


def test_a_name_taken_by_the_very_set_that_is_wanted_is_no_collision() -> None:
    owner = deployment(3)
    existing = replicaset(owner, "v1", 3, current=0, annotations=marks(3, 4))
    answers: dict[type[Action[Any]], object] = {Create: AlreadyExists("taken"), Read: existing}
    actions, _ = run(owner, answers=answers)
    assert [type(action) for action in actions] == [Create, Read, UpdateStatus]
    assert progressing(actions).reason == "FoundNewReplicaSet"
    assert actions[-1] == UpdateStatus(owner, status_of(actions), {REVISION: "1"})


@pytest.mark.parametrize(
    "existing",
    [
        pytest.param(replicaset(deployment(), "v2"), id="another template"),
        pytest.param(replicaset(deployment(name="other"), "v1"), id="another owner"),
        pytest.param(replicaset(None, "v1"), id="no owner"),
    ],
)
def test_a_name_taken_by_another_set_is_a_collision(existing: ReplicaSet) -> None:
    owner = deployment(3)
    answers: dict[type[Action[Any]], object] = {Create: AlreadyExists("taken"), Read: existing}
    actions, verdict = run(owner, answers=answers)
    assert actions[2:] == [UpdateStatus(owner, DeploymentStatus(collisionCount=1))]
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta()

    create, *_ = actions
    (again, *_), _ = run(replace(owner, status=DeploymentStatus(collisionCount=1)))
    assert isinstance(create, Create)
    assert isinstance(again, Create)
    assert isinstance(create.body, ReplicaSet)
    assert isinstance(again.body, ReplicaSet)
    assert create.body.metadata.name != again.body.metadata.name


# -- scaling and pausing ----------------------------------------------------------------------


def test_a_rescaled_deployment_resizes_its_set_before_anything_else() -> None:
    owner, rs = settled(3)
    owner = replace(owner, spec=replace(owner.spec, replicas=5))
    actions, _ = run(owner, rs)
    assert actions == [
        Patch(
            rs,
            {
                "metadata": {
                    "resourceVersion": "1",
                    "annotations": {DESIRED_REPLICAS: "5", MAX_REPLICAS: "7"},
                },
                "spec": {"replicas": 5},
            },
        ),
        scaled(owner, "Scaled up replica set web-v1 from 3 to 5"),
    ]


def test_a_size_and_a_template_that_change_together_scale_first_and_create_nothing() -> None:
    owner, rs = settled(3)
    owner = replace(owner, spec=replace(owner.spec, replicas=5, template=pod_template("v2")))
    actions, _ = run(owner, rs)
    assert not [action for action in actions if isinstance(action, Create)]
    assert scaled(owner, "Scaled up replica set web-v1 from 3 to 5") in actions


def test_a_paused_deployment_creates_no_set() -> None:
    owner = deployment(3, paused=True)
    actions, verdict = run(owner)
    assert [type(action) for action in actions] == [UpdateStatus]
    condition = progressing(actions)
    assert (condition.status, condition.reason) == ("Unknown", "DeploymentPaused")
    assert condition.message == "Deployment is paused"
    assert verdict == Rest("paused: 0 of 3 replicas updated, 0 available")


def test_a_paused_deployment_still_scales_and_tidies() -> None:
    owner, new = settled(image="v3", revision=3, history=1, paused=True)
    old = [replicaset(owner, f"v{i}", 0, age=9 - i, annotations=marks(3, 4, i)) for i in (1, 2)]
    actions, _ = run(replace(owner, spec=replace(owner.spec, replicas=1)), *old, new)
    assert isinstance(actions[0], Patch)
    assert actions[0].body["spec"] == {"replicas": 1}

    actions, _ = run(owner, *old, new)
    assert actions[0] == Delete(old[0], exact=True)


def test_resuming_is_told_and_the_rollout_goes_on() -> None:
    owner, rs = settled()
    owner = replace(
        owner, status=replace(owner.status, conditions=(available(), moving("DeploymentPaused", "Unknown")))
    )
    rs = replace(rs, status=replace(rs.status, availableReplicas=2, readyReplicas=2))
    actions, verdict = run(owner, rs)
    assert progressing(actions).reason == "DeploymentResumed"
    assert isinstance(verdict, Wake)


# -- recreate ---------------------------------------------------------------------------------


def test_recreate_first_sends_the_old_pods_away() -> None:
    owner, old = settled(3, strategy="Recreate")
    owner = replace(owner, spec=replace(owner.spec, template=pod_template("v2")))
    actions, _ = run(owner, old, running={old.metadata.uid: 3})
    assert actions[:2] == [
        Patch(old, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 0}}),
        scaled(owner, "Scaled down replica set web-v1 from 3 to 0"),
    ]
    assert status_of(actions).updatedReplicas == 0


@pytest.mark.parametrize(("counted", "running", "left"), [(2, 2, 2), (0, 1, 1), (2, 0, 2)])
def test_recreate_waits_for_the_last_old_pod(counted: int, running: int, left: int) -> None:
    owner = deployment(3, "v2", strategy="Recreate", deadline=None)
    old = replicaset(owner, "v1", 0, current=counted)
    actions, verdict = run(owner, old, running={old.metadata.uid: running})
    assert [type(action) for action in actions] == [UpdateStatus]
    pods = "1 old pod" if left == 1 else f"{left} old pods"
    assert verdict == Rest(f"rollout in progress: waiting for {pods} to stop")


def test_recreate_creates_the_new_set_at_full_size_when_nothing_old_runs() -> None:
    owner = deployment(3, "v2", strategy="Recreate")
    old = replicaset(owner, "v1", 0, age=9, annotations=marks(3, 3))
    actions, _ = run(owner, old, running={old.metadata.uid: 0})
    create = actions[0]
    assert isinstance(create, Create)
    assert isinstance(create.body, ReplicaSet)
    assert size(create.body) == 3
    assert create.body.metadata.annotations == marks(3, 3, 2)


def test_recreate_ignores_the_pods_of_the_new_set() -> None:
    owner = deployment(3, "v2", strategy="Recreate", annotations={REVISION: "2"})
    old = replicaset(owner, "v1", 0, age=9, annotations=marks(3, 3))
    new = replicaset(owner, "v2", 1, annotations=marks(3, 3, 2))
    actions, _ = run(owner, old, new, running={old.metadata.uid: 0, new.metadata.uid: 1})
    assert scaled(owner, "Scaled up replica set web-v2 from 1 to 3") in actions


# -- the odd ones -----------------------------------------------------------------------------


def test_a_deployment_that_selects_all_pods_is_told_and_left_alone() -> None:
    plain = deployment(generation=7)
    owner = replace(plain, spec=replace(plain.spec, selector=LabelSelector()))
    actions, verdict = run(owner, replicaset(owner))
    assert actions == [
        Emit(
            owner,
            "Warning",
            "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.",
        ),
        UpdateStatus(owner, DeploymentStatus(observedGeneration=7)),
    ]
    assert verdict == Rest("empty selector: it would select all pods")


def test_an_invalid_selector_is_told_and_nothing_is_written() -> None:
    plain = deployment()
    near = LabelSelector(matchExpressions=(LabelSelectorRequirement(key="app", operator="Near"),))
    actions, verdict = run(replace(plain, spec=replace(plain.spec, selector=near)))
    assert actions == []
    assert verdict == Rest('invalid selector: "Near" is not a valid label selector operator')


def test_a_deployment_that_is_being_deleted_only_keeps_up_its_status() -> None:
    owner = deployment(3, "v2", deleted=NOW)
    rs = replicaset(owner, "v1", 3)
    actions, verdict = run(owner, rs, orphans=(replicaset(None, "v2"),))
    assert [type(action) for action in actions] == [UpdateStatus]
    assert status_of(actions).replicas == 3
    assert verdict == Rest("being deleted: only the status is updated")


def test_an_unknown_strategy_is_nonsense() -> None:
    plain = deployment()
    owner = replace(plain, spec=replace(plain.spec, strategy=DeploymentStrategy(type="Hope")))
    with pytest.raises(InvalidSpec, match="unexpected deployment strategy type: Hope"):
        run(owner, replicaset(owner))


def test_a_set_whose_size_is_not_known_is_never_guessed() -> None:
    owner = deployment(3, "v2")
    rs = replicaset(owner, "v1")
    with pytest.raises(InvalidSpec, match=r"spec\.replicas of default/web-v1 is missing"):
        run(owner, replace(rs, spec=replace(rs.spec, replicas=None)), replicaset(owner, "v2"))


def test_an_orphan_that_is_adopted_takes_part_at_once() -> None:
    owner = deployment(3, annotations={REVISION: "1"}, status=DeploymentStatus(conditions=(moving(),)))
    orphan = replicaset(None, "v1", 3, annotations=marks(3, 4))
    actions, verdict = run(owner, orphans=(orphan,))
    assert [type(action) for action in actions] == [Read, Patch, UpdateStatus]
    assert progressing(actions).reason == "NewReplicaSetAvailable"
    assert verdict == Rest("3 of 3 replicas updated and available")


def test_a_set_that_no_longer_matches_is_released_and_another_takes_its_place() -> None:
    owner = deployment(3)
    stray = replicaset(owner, "v1", 3, labels={"app": "db"})
    actions, _ = run(owner, stray)
    assert [type(action) for action in actions] == [Patch, Create, Emit, UpdateStatus]


def full(obj: Object) -> Any:
    """The same object with every field of its kind, as the in-process server has it."""
    kind = kind_of(obj)
    return msgspec.json.decode(encode(kind, obj), type=load(kind.group, kind.version, kind.name).type)


def test_objects_with_every_field_lead_to_the_same_round() -> None:
    owner, old = settled(4)
    owner = replace(owner, spec=replace(owner.spec, template=pod_template("v2")))
    views, verdict = run(owner, old)
    fulls, same = run(full(owner), full(old))
    assert [type(action) for action in fulls] == [type(action) for action in views]
    assert [action.message for action in fulls if isinstance(action, Emit)] == [
        action.message for action in views if isinstance(action, Emit)
    ]
    assert verdict == same


def test_a_finished_rollout_of_objects_with_every_field_says_nothing() -> None:
    owner, rs = settled()
    assert run(full(owner), full(rs)) == ([], Rest("3 of 3 replicas updated and available"))
