"""Rounds of job-controller: actions, status and verdicts, in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.errors import Cause, Forbidden, NotFound, ServerError
from steersman.api.kinds import (
    Condition,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Job,
    JobSpec,
    JobStatus,
    LabelSelector,
    NewPod,
    ObjectMeta,
    OnExitCodes,
    OwnerReference,
    Pod,
    PodFailurePolicy,
    PodFailurePolicyRule,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    SuccessPolicy,
    SuccessPolicyRule,
    UncountedTerminatedPods,
)
from steersman.api.scheme import Key
from steersman.controllers.job import controller
from steersman.controllers.job.backoff import FailureMemory, delay
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
)
from steersman.controllers.job.scaling import INDEX_VARIABLE, index_prefix
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, Read, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=5)
KEY = Key("d", "j")
LABELS = {"batch.kubernetes.io/controller-uid": "j"}
TEMPLATE = PodTemplateSpec(
    metadata=ObjectMeta(labels={**LABELS, "app": "x"}, annotations={"note": "y"}),
    spec=msgspec.Raw(
        b'{"restartPolicy":"Never","hostname":"old","novelty":{"a":[1]},"containers":'
        b'[{"name":"main","novel":true},{"name":"other","env":[{"name":"JOB_COMPLETION_INDEX","value":"9"}]}]}'
    ),
)
GOING = NOW + timedelta(seconds=28)
"""With 30 seconds of grace: it was asked to go two seconds ago."""
SINCE = NOW - timedelta(seconds=2)
SUCCEEDS = Condition(type="SuccessCriteriaMet", status="True", reason="CompletionsReached")


def job(*, conditions: tuple[Condition, ...] = (), deleted: bool = False, **fields: Any) -> Job:
    status = {name: fields.pop(name) for name in list(fields) if name in JobStatus.__struct_fields__}
    spec: dict[str, Any] = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": TEMPLATE}
    return Job(
        metadata=ObjectMeta(name="j", namespace="d", uid="j", deletionTimestamp=GOING if deleted else None),
        spec=JobSpec(selector=LabelSelector(matchLabels=LABELS), **{**spec, **fields}),
        status=JobStatus(
            **{
                "startTime": BEGAN,
                "ready": 0,
                "terminating": 0,
                "uncountedTerminatedPods": UncountedTerminatedPods(),
                "conditions": conditions,
                **status,
            }
        ),
    )


def pod(
    name: str,
    phase: str = "Running",
    *,
    ago: float = 60,
    index: int | None = None,
    tracked: bool = True,
    going: bool = False,
    ready: bool = False,
    code: int = 1,
    owned: bool = True,
    restarts: int = 0,
    annotations: dict[str, str] | None = None,
) -> Pod:
    """A pod of the Job, called as its uid; where it ended, that was so many seconds ago."""
    ended = None
    if phase in ("Succeeded", "Failed"):
        code = 0 if phase == "Succeeded" else code
        ended = ContainerStateTerminated(exitCode=code, finishedAt=NOW - timedelta(seconds=ago))
    marks = {**(annotations or {}), **({} if index is None else {COMPLETION_INDEX: str(index)})}
    owner = OwnerReference(apiVersion="batch/v1", kind="Job", name="j", uid="j", controller=True)
    state = ContainerState(terminated=ended)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="d",
            uid=name,
            labels=LABELS,
            annotations=marks,
            finalizers=(TRACKING_FINALIZER,) if tracked else (),
            ownerReferences=(owner,) if owned else (),
            creationTimestamp=NOW - timedelta(minutes=4),
            deletionTimestamp=GOING if going else None,
            deletionGracePeriodSeconds=30 if going else None,
        ),
        spec=PodSpec(nodeName="n"),
        status=PodStatus(
            phase=phase,
            conditions=(Condition(type="Ready", status="True", lastTransitionTime=BEGAN),) if ready else (),
            containerStatuses=(ContainerStatus(name="main", restartCount=restarts, state=state),),
        ),
    )


def look(
    of: Job, *pods: Pod, now: datetime = NOW, answers: Any = None, caches: StaticCaches | None = None
) -> tuple[list[Action[Any]], Verdict]:
    caches = caches or StaticCaches(controller, of, *pods)
    seen = controller.see(caches, KEY)
    assert seen is not None
    actions, verdict = walk(controller.decide(seen, now), answers)
    # What is only counted has tests of its own.
    return [one for one in actions if not isinstance(one, Measure | Elapsed)], verdict


def told(actions: list[Action[Any]]) -> list[str]:
    """The actions in a word each."""
    words = []
    for action in actions:
        match action:
            case Create():
                words.append("create")
            case Delete(obj):
                words.append(f"delete {obj.metadata.name}")
            case Patch(obj):
                words.append(f"patch {obj.metadata.name}")
            case UpdateStatus():
                words.append("status")
            case Emit(reason=reason):
                words.append(reason)
            case other:
                words.append(type(other).__name__)
    return words


def statuses(actions: list[Action[Any]]) -> list[JobStatus]:
    return [
        one.status for one in actions if isinstance(one, UpdateStatus) and isinstance(one.status, JobStatus)
    ]


def bodies(actions: list[Action[Any]]) -> list[NewPod]:
    return [one.body for one in actions if isinstance(one, Create) and isinstance(one.body, NewPod)]


def types(status: JobStatus) -> list[tuple[str, str, str]]:
    return [(one.type, one.status, one.reason) for one in status.conditions]


# -- starting ---------------------------------------------------------------------------------


def test_a_new_job_starts_its_pods_and_then_says_so() -> None:
    actions, verdict = look(job(parallelism=2, completions=3, startTime=None, ready=None, terminating=None))
    assert told(actions) == ["create", "create", "SuccessfulCreate", "SuccessfulCreate", "status"]
    (status,) = statuses(actions)
    assert (status.active, status.ready, status.terminating, status.startTime) == (2, 0, 0, NOW)
    assert status.uncountedTerminatedPods == UncountedTerminatedPods()
    assert verdict == Rest("2 active, 0 succeeded, 0 failed")


def test_a_pod_is_the_template_with_an_owner_and_what_keeps_it_until_it_is_counted() -> None:
    (body,) = bodies(look(job())[0])
    assert body.metadata.generateName == "j-"
    assert body.metadata.finalizers == (TRACKING_FINALIZER,)
    assert body.metadata.ownerReferences[0].controller
    assert body.metadata.annotations == {"note": "y"}
    assert body.spec is TEMPLATE.spec


def test_a_pod_of_an_index_knows_it_and_keeps_what_nobody_here_knows() -> None:
    actions, _ = look(job(completionMode="Indexed", completions=3, parallelism=2))
    first, second = bodies(actions)
    assert [one.metadata.generateName for one in (first, second)] == ["j-0-", "j-1-"]
    assert second.metadata.labels == {**LABELS, "app": "x", COMPLETION_INDEX: "1"}
    assert second.metadata.annotations == {"note": "y", COMPLETION_INDEX: "1"}
    spec = msgspec.json.decode(second.spec)
    assert spec["hostname"] == "j-1"
    assert spec["novelty"] == {"a": [1]}
    main, other = spec["containers"]
    assert main["novel"] is True
    path = f"metadata.labels['{COMPLETION_INDEX}']"
    assert main["env"] == [{"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert other["env"] == [{"name": INDEX_VARIABLE, "value": "9"}], "what is there already stays"


def test_a_long_name_leaves_room_for_the_index() -> None:
    assert index_prefix("j" * 60, 12) == "j" * 54 + "-12-"


def test_slow_start_stops_at_the_first_refusal_and_the_status_is_written_all_the_same() -> None:
    said: list[Action[Any]] = []
    of = job(parallelism=9, completions=9, active=3)
    seen = controller.see(StaticCaches(controller, of), KEY)
    with pytest.raises(Forbidden):
        walk(controller.decide(seen, NOW), {Create: Forbidden("quota")}, recorded=said)  # type: ignore[arg-type]
    assert [one for one in told(said) if one not in ("Measure", "Elapsed")] == [
        "create",
        "FailedCreate",
        "status",
    ]


def test_a_namespace_that_is_going_is_nobodys_fault() -> None:
    gone = Forbidden("going", causes=(Cause("NamespaceTerminating", "", ""),))
    actions, verdict = look(job(), answers={Create: gone})
    assert "FailedCreate" not in told(actions)
    assert isinstance(verdict, Rest)


def test_no_more_than_five_hundred_pods_a_round() -> None:
    assert len(bodies(look(job(parallelism=700, completions=900))[0])) == 500


# -- counting ---------------------------------------------------------------------------------


def test_a_pod_is_listed_then_let_go_then_counted() -> None:
    actions, _ = look(job(completions=2, active=1), pod("a", "Succeeded"))
    assert told(actions) == ["create", "SuccessfulCreate", "status", "patch a", "status"]
    listed, counted = statuses(actions)
    assert (listed.succeeded, listed.uncountedTerminatedPods) == (
        0,
        UncountedTerminatedPods(succeeded=("a",)),
    )
    assert (counted.succeeded, counted.uncountedTerminatedPods) == (1, UncountedTerminatedPods())


def test_what_was_listed_and_let_go_before_a_crash_is_counted_once() -> None:
    listed = UncountedTerminatedPods(succeeded=("a",), failed=("b", "gone"))
    of = job(completions=3, active=1, uncountedTerminatedPods=listed)
    pods = (pod("a", "Succeeded", tracked=False), pod("b", "Failed"), pod("c"))
    actions, _ = look(of, *pods)
    final = statuses(actions)[-1]
    assert (final.succeeded, final.failed) == (1, 2)
    assert final.uncountedTerminatedPods == UncountedTerminatedPods()


def test_a_finalizer_that_stays_keeps_its_pod_uncounted() -> None:
    said: list[Action[Any]] = []
    of = job(completions=2, parallelism=2)
    seen = controller.see(StaticCaches(controller, of, pod("a", "Succeeded"), pod("b")), KEY)
    with pytest.raises(ServerError):
        walk(controller.decide(seen, NOW), {Patch: ServerError("no")}, recorded=said)  # type: ignore[arg-type]
    (status,) = statuses(said)
    assert status.uncountedTerminatedPods == UncountedTerminatedPods(succeeded=("a",))


def test_a_pod_that_is_gone_already_is_counted() -> None:
    actions, _ = look(job(), pod("a", "Succeeded"), answers={Patch: NotFound("gone")})
    assert statuses(actions)[-1].succeeded == 1


def test_nothing_new_writes_nothing() -> None:
    actions, verdict = look(job(active=1, ready=1), pod("a", ready=True))
    assert actions == []
    assert verdict == Rest("1 active, 0 succeeded, 0 failed")


def test_a_deleted_pod_counts_as_failed_unless_it_is_replaced_only_when_it_has() -> None:
    actions, verdict = look(job(active=1), pod("a", going=True))
    assert statuses(actions)[-1].failed == 1
    assert verdict.because.endswith("waiting for pod failure backoff")
    actions, verdict = look(job(active=1, podReplacementPolicy="Failed"), pod("a", going=True))
    assert statuses(actions)[-1].failed == 0
    assert statuses(actions)[-1].terminating == 1
    assert bodies(actions) == []


@given(
    st.lists(st.sampled_from(["Running", "Pending", "Succeeded", "Failed"]), max_size=8),
    st.integers(0, 4),
    st.integers(1, 6),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_never_more_active_than_wanted_and_no_pod_twice_wherever_it_breaks_off(
    phases: list[str], parallelism: int, completions: int, indexed: bool
) -> None:
    mode = "Indexed" if indexed else "NonIndexed"
    of = job(parallelism=parallelism, completions=completions, completionMode=mode, backoffLimit=99)
    pods = [
        pod(f"p{n}", phase, ago=1000, index=n % completions if indexed else None)
        for n, phase in enumerate(phases)
    ]
    failed = phases.count("Failed")
    succeeded = {n % completions for n, phase in enumerate(phases) if phase == "Succeeded"}
    for crash in range(12):
        job_now, pods_now = _live_through(of, pods, crash)
        final, left = _live_through(job_now, pods_now, 10**6)
        status = final.status
        assert status.failed == failed
        if indexed:
            assert status.completedIndexes == str(Indexes.of(succeeded))
        else:
            assert status.succeeded == phases.count("Succeeded")
        active = [one for one in left if one.status.phase not in ("Succeeded", "Failed")]
        assert len([one for one in active if one.metadata.deletionTimestamp is None]) <= parallelism


def _live_through(of: Job, pods: list[Pod], crash: int) -> tuple[Job, list[Pod]]:
    """A Job and its pods after some rounds, of which the last breaks off after so many writes."""
    known = {one.metadata.name: one for one in pods}
    current, left = of, crash
    for _ in range(6):
        actions: list[Action[Any]] = []
        seen = controller.see(StaticCaches(controller, current, *known.values()), KEY)
        walk(controller.decide(seen, NOW), recorded=actions)  # type: ignore[arg-type]
        writes = [one for one in actions if isinstance(one, Create | Delete | Patch | UpdateStatus)]
        for write in writes[:left]:
            match write:
                case Create():
                    name = f"new{len(known)}"
                    index = write.body.metadata.annotations.get(COMPLETION_INDEX)  # type: ignore[attr-defined]
                    known[name] = pod(name, "Pending", index=None if index is None else int(index))
                case Delete(obj):
                    known.pop(obj.metadata.name, None)
                case Patch(obj):
                    meta = replace(known[obj.metadata.name].metadata, finalizers=())
                    known[obj.metadata.name] = replace(known[obj.metadata.name], metadata=meta)
                case UpdateStatus(status=status):
                    current = replace(current, status=status)
        left -= len(writes)
        if left <= 0 or not writes:
            break
    return current, list(known.values())


# -- the end ----------------------------------------------------------------------------------


def test_a_job_that_has_all_it_wants_says_how_it_will_end_and_then_that_it_has() -> None:
    actions, verdict = look(job(active=1), pod("a", "Succeeded"))
    assert told(actions) == ["status", "patch a", "status", "Completed"]
    first, last = statuses(actions)
    assert types(first) == [("SuccessCriteriaMet", "True", "CompletionsReached")]
    assert types(last)[1:] == [("Complete", "True", "CompletionsReached")]
    assert last.completionTime == NOW
    assert verdict == Rest("finished")


def test_without_a_number_one_success_is_enough_once_the_others_have_ended() -> None:
    of = job(completions=None, parallelism=3, active=3)
    actions, _ = look(of, pod("a", "Succeeded"), pod("b"), pod("c"))
    assert told(actions) == ["status", "patch a", "status"]
    assert statuses(actions)[-1].conditions == ()
    actions, _ = look(of, pod("a", "Succeeded"), pod("b", "Failed"), pod("c", "Succeeded"))
    assert types(statuses(actions)[-1])[-1][0] == "Complete"


def test_too_many_failures_end_it_and_what_runs_is_deleted_and_counted() -> None:
    of = job(backoffLimit=1, failed=1, active=2, parallelism=2, completions=2)
    actions, verdict = look(of, pod("a", "Failed"), pod("b", ready=True))
    assert told(actions) == [
        *("status", "delete b", "SuccessfulDelete", "status", "patch a", "patch b", "status")
    ]
    first, second, last = statuses(actions)
    assert types(first) == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert (second.active, second.terminating) == (0, 1)
    assert last.failed == 3
    assert isinstance(verdict, Rest)
    told_already = replace(of, status=last)
    actions, _ = look(told_already, pod("a", "Failed", tracked=False))
    assert told(actions) == ["status", "BackoffLimitExceeded"]
    assert types(statuses(actions)[-1])[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert statuses(actions)[-1].completionTime is None


def test_a_pod_that_cannot_be_deleted_puts_off_the_end() -> None:
    said: list[Action[Any]] = []
    of = job(backoffLimit=0, active=1)
    seen = controller.see(StaticCaches(controller, of, pod("a", "Failed"), pod("b")), KEY)
    with pytest.raises(ServerError):
        walk(controller.decide(seen, NOW), {Delete: ServerError("no")}, recorded=said)  # type: ignore[arg-type]
    assert [types(one) for one in statuses(said)][-1] == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert "patch a" in told(said), "a pod that has ended is counted all the same"
    assert "patch b" not in told(said)
    assert (statuses(said)[-1].failed, statuses(said)[-1].active) == (1, 1)
    actions, _ = look(replace(of, status=statuses(said)[-1]), pod("a", "Failed", tracked=False), pod("b"))
    assert told(actions) == ["delete b", "SuccessfulDelete", "status", "patch b", "status"]
    assert statuses(actions)[-1].failed == 2


def test_a_pod_that_another_actor_deleted_counts_as_failed_in_the_round_that_completes_the_job() -> None:
    of = job(parallelism=2, active=2)
    actions, _ = look(of, pod("a", "Succeeded"), pod("b", going=True))
    assert types(statuses(actions)[-1]) == [("SuccessCriteriaMet", "True", "CompletionsReached")]
    assert (statuses(actions)[-1].succeeded, statuses(actions)[-1].failed) == (1, 1)
    recorded = job(parallelism=2, conditions=(replace(SUCCEEDS, lastTransitionTime=NOW),))
    actions, _ = look(recorded, pod("a", "Succeeded"), pod("b", going=True))
    assert statuses(actions)[-1].failed == 1, "it was deleted before the Job was known to succeed"


@pytest.mark.parametrize(("policy", "ends"), [("OnFailure", True), ("Never", False)])
def test_restarts_count_where_pods_restart_themselves(policy: str, ends: bool) -> None:
    template = replace(TEMPLATE, spec=msgspec.Raw(f'{{"restartPolicy":"{policy}"}}'.encode()))
    actions, _ = look(job(backoffLimit=3, active=1, template=template), pod("a", restarts=3))
    assert ("delete a" in told(actions)) == ends


def test_a_deadline_ends_it_and_until_then_it_wakes_for_it() -> None:
    actions, verdict = look(job(activeDeadlineSeconds=301, active=1), pod("a"))
    assert actions == []
    assert verdict == Wake(
        timedelta(seconds=1), "1 active, 0 succeeded, 0 failed; waiting for activeDeadlineSeconds"
    )
    actions, _ = look(job(activeDeadlineSeconds=300, active=1), pod("a"))
    assert types(statuses(actions)[0]) == [("FailureTarget", "True", "DeadlineExceeded")]


def test_a_policy_fails_the_job_whatever_the_limit() -> None:
    rule = PodFailurePolicyRule(action="FailJob", onExitCodes=OnExitCodes(operator="In", values=(42,)))
    of = job(podFailurePolicy=PodFailurePolicy(rules=(rule,)), active=1)
    actions, _ = look(of, pod("a", "Failed", code=42))
    status = statuses(actions)[0]
    assert types(status) == [("FailureTarget", "True", "PodFailurePolicy")]
    assert "failed with exit code 42 matching FailJob rule at index 0" in status.conditions[0].message


def test_a_failure_that_is_ignored_is_let_go_uncounted() -> None:
    rule = PodFailurePolicyRule(action="Ignore", onExitCodes=OnExitCodes(operator="In", values=(42,)))
    of = job(podFailurePolicy=PodFailurePolicy(rules=(rule,)), backoffLimit=0, active=1)
    actions, _ = look(of, pod("a", "Failed", code=42))
    assert told(actions) == ["create", "SuccessfulCreate", "patch a"]


def test_a_success_policy_ends_it_and_what_runs_does_not_count() -> None:
    policy = SuccessPolicy(rules=(SuccessPolicyRule(succeededIndexes="0"),))
    of = job(completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy, active=3)
    pods = (pod("a", "Succeeded", index=0), pod("b", index=1), pod("c", "Failed", index=2))
    actions, _ = look(of, *pods)
    first, _, last = statuses(actions)
    assert types(first) == [("SuccessCriteriaMet", "True", "SuccessPolicy")]
    assert first.conditions[0].message == "Matched rules at index 0"
    assert (last.completedIndexes, last.failed) == ("0", 1)
    going = (pod("a", "Succeeded", index=0), pod("b", index=1, going=True), pod("c", "Failed", index=2))
    first = replace(first, conditions=(replace(first.conditions[0], lastTransitionTime=SINCE),))
    actions, _ = look(replace(of, status=first), *going)
    assert statuses(actions)[-1].failed == 1, "whether it asked them to go before or now makes no difference"


# -- indexes that fail on their own -----------------------------------------------------------


def per_index(**fields: Any) -> Job:
    return job(
        **{
            "completionMode": "Indexed",
            "completions": 2,
            "parallelism": 2,
            "backoffLimit": 2**31 - 1,
            "backoffLimitPerIndex": 1,
            **fields,
        }
    )


def test_the_last_pod_of_an_index_stays_until_the_next_knows_of_it() -> None:
    first = pod("a", "Failed", index=0, annotations={INDEX_FAILURES: "0"})
    actions, _ = look(per_index(active=2, failedIndexes=""), first, pod("b", index=1))
    (body,) = bodies(actions)
    assert body.metadata.annotations == {"note": "y", COMPLETION_INDEX: "0", INDEX_FAILURES: "1"}
    assert "patch a" not in told(actions)
    again = pod("c", index=0, annotations={INDEX_FAILURES: "1"})
    actions, _ = look(per_index(active=2, failedIndexes=""), first, pod("b", index=1), again)
    assert told(actions) == ["status", "patch a", "status"]


def test_an_index_that_failed_too_often_is_lost_and_the_others_go_on() -> None:
    of = per_index(active=2, failedIndexes="")
    actions, _ = look(of, pod("a", "Failed", index=0, annotations={INDEX_FAILURES: "1"}), pod("b", index=1))
    assert bodies(actions) == []
    assert statuses(actions)[-1].failedIndexes == "0"
    assert statuses(actions)[-1].conditions == ()
    of = replace(of, status=statuses(actions)[-1])
    actions, _ = look(of, pod("b", "Succeeded", index=1))
    assert types(statuses(actions)[0]) == [("FailureTarget", "True", "FailedIndexes")]


def test_too_many_lost_indexes_end_it() -> None:
    of = per_index(active=2, failedIndexes="", maxFailedIndexes=0)
    actions, _ = look(of, pod("a", "Failed", index=0, annotations={INDEX_FAILURES: "1"}), pod("b", index=1))
    assert types(statuses(actions)[0]) == [("FailureTarget", "True", "MaxFailedIndexesExceeded")]


def test_a_rule_may_lose_an_index_at_once_and_ignored_failures_are_told_to_the_next() -> None:
    def policy(action: str) -> PodFailurePolicy:
        codes = OnExitCodes(operator="In", values=(3,))
        return PodFailurePolicy(rules=(PodFailurePolicyRule(action=action, onExitCodes=codes),))

    failed = pod("a", "Failed", index=0, code=3, annotations={INDEX_FAILURES: "0"})
    actions, _ = look(per_index(podFailurePolicy=policy("FailIndex")), failed, pod("b", index=1))
    assert statuses(actions)[-1].failedIndexes == "0"
    actions, _ = look(per_index(podFailurePolicy=policy("Ignore")), failed, pod("b", index=1))
    assert bodies(actions)[0].metadata.annotations == {
        "note": "y",
        COMPLETION_INDEX: "0",
        INDEX_FAILURES: "0",
        INDEX_IGNORED_FAILURES: "1",
    }


def test_each_index_backs_off_alone() -> None:
    fresh = pod("a", "Failed", index=0, ago=4, annotations={INDEX_FAILURES: "0"})
    actions, verdict = look(per_index(active=1, ready=0, failedIndexes=""), fresh, pod("b", index=1))
    assert bodies(actions) == []
    assert verdict == Wake(
        timedelta(seconds=6), "1 active, 0 succeeded, 0 failed; waiting for pod failure backoff"
    )
    of = per_index(completions=3, parallelism=3, failedIndexes="")
    assert [
        one.metadata.annotations[COMPLETION_INDEX] for one in bodies(look(of, fresh, pod("b", index=1))[0])
    ] == ["2"]


# -- elastic ----------------------------------------------------------------------------------


def test_fewer_completions_forget_those_beyond_and_delete_their_pods() -> None:
    of = job(
        completionMode="Indexed", completions=2, parallelism=2, completedIndexes="0,3", succeeded=2, active=2
    )
    actions, _ = look(of, pod("b", index=1), pod("c", index=2))
    assert told(actions)[:3] == ["patch c", "delete c", "SuccessfulDelete"]
    assert (statuses(actions)[-1].completedIndexes, statuses(actions)[-1].succeeded) == ("0", 1)


def test_of_two_pods_for_one_index_the_lesser_goes_and_so_does_one_for_none() -> None:
    of = job(completionMode="Indexed", completions=2, parallelism=2, active=3)
    actions, _ = look(of, pod("a", index=0), pod("b", index=0, ready=True), pod("c"))
    assert [word for word in told(actions) if word.startswith("delete")] == ["delete c", "delete a"]


def test_less_parallelism_deletes_what_is_least_along_without_counting_it() -> None:
    actions, _ = look(job(parallelism=1, completions=5, active=2), pod("a", "Pending"), pod("b", ready=True))
    assert told(actions) == ["patch a", "delete a", "SuccessfulDelete", "status"]
    assert statuses(actions)[0].failed == 0


# -- suspending -------------------------------------------------------------------------------


def test_a_suspended_job_has_no_pods_and_no_clock() -> None:
    actions, verdict = look(job(suspend=True, active=1, ready=1), pod("a", ready=True))
    assert told(actions) == ["patch a", "delete a", "SuccessfulDelete", "Suspended", "status"]
    (status,) = statuses(actions)
    assert types(status) == [("Suspended", "True", "JobSuspended")]
    assert (status.active, status.ready, status.terminating, status.startTime) == (0, 0, 1, None)
    assert verdict == Rest("suspended")


def test_a_resumed_job_starts_anew() -> None:
    said = Condition(type="Suspended", status="True", reason="JobSuspended", message="Job suspended")
    actions, _ = look(job(startTime=None, conditions=(said,), activeDeadlineSeconds=10))
    assert told(actions) == ["create", "SuccessfulCreate", "Resumed", "status"]
    assert types(statuses(actions)[0]) == [("Suspended", "False", "JobResumed")]
    assert statuses(actions)[0].startTime == NOW


# -- waiting after failures -------------------------------------------------------------------


def test_the_wait_doubles_from_ten_seconds_to_ten_minutes() -> None:
    waits = [delay(failures).total_seconds() for failures in range(10)]
    assert waits == [0, 10, 20, 40, 80, 160, 320, 600, 600, 600]


def test_a_success_ends_the_streak() -> None:
    of = job(completions=9, parallelism=1, failed=1)
    failed, succeeded = pod("a", "Failed", ago=8, tracked=False), pod("b", "Succeeded", ago=5)
    assert bodies(look(of, failed, succeeded)[0])
    actions, verdict = look(of, failed, pod("b", "Succeeded", ago=9))
    assert bodies(actions) == []
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=2)


def test_failures_of_pods_that_are_gone_are_remembered() -> None:
    of = job(active=1)
    caches = StaticCaches(controller, of, pod("a", going=True))
    look(of, caches=caches)
    caches.remove(pod("a"))
    actions, verdict = look(of, caches=caches)
    assert bodies(actions) == []
    assert verdict == Wake(
        timedelta(seconds=8), "0 active, 0 succeeded, 0 failed; waiting for pod failure backoff"
    )


def test_pods_deleted_because_nobody_wants_them_are_no_failures() -> None:
    assert bodies(look(job(), pod("a", going=True, tracked=False))[0])


def test_what_is_remembered_stays_small_and_goes_with_the_job() -> None:
    streaks = FailureMemory()
    of = job(completions=9)
    for number in range(40):
        streaks.record(of, [pod(f"p{number}", "Failed", ago=100 - number)])
    assert len(streaks.record(of, []).failures) == 8
    other = replace(of, metadata=replace(of.metadata, uid="another"))
    assert streaks.record(other, []).failures == ()
    assert len(streaks) == 0


# -- whose pods, whose Job --------------------------------------------------------------------


def test_an_orphan_is_adopted_with_what_keeps_it() -> None:
    orphan = pod("o", owned=False, tracked=False)
    actions, _ = look(job(active=1), orphan)
    assert [type(one) for one in actions[:2]] == [Read, Patch]
    patch = actions[1]
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["finalizers"] == [TRACKING_FINALIZER]


def test_a_job_somebody_else_manages_is_left_alone() -> None:
    actions, verdict = look(job(managedBy="example.com/mine"), pod("a", "Failed"))
    assert actions == []
    assert verdict == Rest("managed by example.com/mine")
    assert look(job(managedBy="kubernetes.io/job-controller"))[0]


def test_a_job_that_is_going_makes_no_pods_and_lets_all_go() -> None:
    actions, _ = look(job(deleted=True, active=1), pod("a"))
    assert told(actions) == ["patch a"]


def test_a_finished_job_lets_go_of_what_it_still_holds() -> None:
    complete = Condition(type="Complete", status="True")
    actions, verdict = look(job(conditions=(complete,)), pod("a", "Failed"), pod("b", tracked=False))
    assert told(actions) == ["patch a"]
    assert verdict == Rest("finished")


def test_an_unknown_mode_is_told_and_nothing_done() -> None:
    actions, _ = look(job(completionMode="Sideways"))
    assert told(actions) == ["UnknownCompletionMode"]


@pytest.mark.parametrize("of", [job(parallelism=None), job(backoffLimit=None), job(parallelism=-1)])
def test_a_job_that_makes_no_sense_fails_alone(of: Job) -> None:
    with pytest.raises(InvalidSpec):
        look(of)


def test_without_a_selector_nothing_is_done() -> None:
    of = job()
    actions, verdict = look(replace(of, spec=replace(of.spec, selector=None)))
    assert actions == []
    assert isinstance(verdict, Rest)


# -- strays -----------------------------------------------------------------------------------


def keys(caches: StaticCaches, watch: int, old: Any, new: Any) -> list[Key]:
    return list(controller.watches[watch].to(caches, Change(old, new)))


def test_pods_that_nobody_will_count_are_let_go() -> None:
    orphan = pod("o", owned=False)
    caches = StaticCaches(controller, orphan)
    (key,) = keys(caches, 3, None, orphan)
    seen = controller.see(caches, key)
    actions, _ = walk(controller.decide(seen, NOW))  # type: ignore[arg-type]
    assert told(actions) == ["patch o"]


def test_pods_of_a_job_that_is_gone_are_let_go_and_those_of_one_that_is_there_are_not() -> None:
    of, left = job(), pod("a", going=True)
    assert keys(StaticCaches(controller, of, left), 3, None, left) == []
    gone = StaticCaches(controller, left)
    assert keys(gone, 3, None, left) == [Key("d", "pod/a")]
    assert Key("d", "pod/a") in keys(gone, 0, of, None)
    assert controller.see(StaticCaches(controller, of, left), Key("d", "pod/a")) is None


def test_what_a_job_wants_is_looked_at_at_once_and_all_else_a_second_later() -> None:
    assert [watch.delay for watch in controller.watches] == [0.0, 1.0, 1.0, 0.0]
    of = job()
    caches = StaticCaches(controller, of)
    other = replace(of, metadata=replace(of.metadata, generation=2))
    assert keys(caches, 0, of, other) == [KEY]
    assert keys(caches, 1, of, other) == []
    assert keys(caches, 0, of, replace(of, status=JobStatus())) == []
    assert keys(caches, 1, of, replace(of, status=JobStatus())) == [KEY]


def test_a_pod_is_the_business_of_its_job_and_an_orphan_of_those_that_select_it() -> None:
    caches = StaticCaches(controller, job())
    assert keys(caches, 2, None, pod("a")) == [KEY]
    assert keys(caches, 2, None, pod("a", owned=False)) == [KEY]
    assert keys(caches, 2, pod("a"), pod("a", owned=False)) == [KEY, KEY]
    assert keys(caches, 2, pod("a"), None) == [KEY]
