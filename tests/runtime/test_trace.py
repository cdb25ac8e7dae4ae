"""The trace: rounds remembered, told, and written as the same bytes for the same rounds."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import Cause, Conflict, Forbidden, Invalid
from steersman.api.kinds import (
    NEW_PODS,
    SERVICEACCOUNTS,
    NewPod,
    Object,
    ObjectMeta,
    Pod,
    ReplicaSet,
    ReplicaSetStatus,
)
from steersman.api.scheme import Key
from steersman.intent.actions import (
    Action,
    Batch,
    Create,
    Delete,
    Done,
    Emit,
    Evict,
    Failed,
    Patch,
    PatchType,
    Read,
    ReadModifyWrite,
    Skipped,
    UpdateStatus,
)
from steersman.intent.metrics import Elapsed, Measure, Metric
from steersman.intent.verdict import Rest, Wake
from steersman.runtime import trace
from steersman.runtime.action_table import describe, interpretation
from steersman.runtime.trace import Ending, Failure, Round, Step, Trace, encode, outcome, span

NOON = datetime(2026, 1, 2, 12, 0, 3, 120_999, tzinfo=UTC)
WEB = Key("default", "web")

pod = Pod(metadata=ObjectMeta(name="web-x", namespace="default", uid="u1"))
owner = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default"), status=ReplicaSetStatus(replicas=2))
wish = Create(NEW_PODS, "default", NewPod(metadata=ObjectMeta(generateName="web-")))


def round_of(
    controller: str = "replicaset-controller",
    key: Key = WEB,
    causes: tuple[str, ...] = ("Pod default/web-x changed",),
    steps: tuple[Step, ...] = (),
    ending: Ending = Rest("3 of 3 ready"),
) -> Round:
    return Round(controller, key, causes, 0.002, NOON, 0.01, steps, ending)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (wish, "create pod default/web-*"),
        (Create(SERVICEACCOUNTS, "a", {"metadata": {"name": "default"}}), "create serviceaccount a/default"),
        (Create(NEW_PODS, "a", {}), "create pod a/*"),
        (
            UpdateStatus(owner, ReplicaSetStatus(replicas=3, readyReplicas=1)),
            "update replicaset default/web status (replicas 2 -> 3, readyReplicas 0 -> 1)",
        ),
        (UpdateStatus(owner, {"replicas": 2, "phase": "secret"}), "update replicaset default/web status"),
        (UpdateStatus(pod, {"count": 1}), "update pod default/web-x status (count 1)"),
        (
            UpdateStatus(owner, owner.status, annotations={"token": "secret"}),
            "update replicaset default/web status (annotations)",
        ),
        (
            Patch(pod, {"metadata": {"uid": "u1", "labels": {"k": "secret"}}, "spec": {}, "data": "secret"}),
            "patch pod default/web-x (metadata.uid, metadata.labels, spec, data)",
        ),
        (
            Patch(pod, [{"op": "add", "path": "/spec/x", "value": "secret"}], PatchType.JSON),
            "patch pod default/web-x (/spec/x)",
        ),
        (
            Patch(owner, {"spec": {"replicas": 1}}, subresource="scale"),
            "patch replicaset default/web scale (spec.replicas)",
        ),
        (ReadModifyWrite(owner, lambda document: None), "update replicaset default/web"),
        (Delete(pod), "delete pod default/web-x"),
        (
            Delete(pod, propagation="Foreground", exact=True, grace=0),
            "delete pod default/web-x (Foreground, exact, grace 0 s)",
        ),
        (Evict(pod), "evict pod default/web-x"),
        (Read(pod), "read pod default/web-x"),
        (
            Emit(owner, "Normal", "SuccessfulCreate", "Created pod: web-x"),
            "emit Normal SuccessfulCreate about replicaset default/web: Created pod: web-x",
        ),
        (Elapsed(), "read the clock"),
        (Measure(Metric("job_seconds", "", buckets=(1.0,)), 1.5), "measure job_seconds 1.5"),
        (Batch((wish, wish, wish)), "create 3 pods"),
        (Batch((Delete(pod),)), "delete pod default/web-x"),
        (Batch[Any]((wish, Delete(pod), wish)), "create 2 pods + delete 1 pod"),
        (Batch(()), "nothing"),
        (Read(Object(metadata=ObjectMeta(name="thing"))), "read object thing"),
    ],
)
def test_every_action_has_words_and_none_of_them_is_a_field_value(action: Action[Any], words: str) -> None:
    assert describe(action) == words


def test_every_action_has_an_entry_in_the_table() -> None:
    def leaves(cls: type) -> list[type]:
        below: list[type[Any]] = cls.__subclasses__()
        return [leaf for sub in below for leaf in leaves(sub)] if below else [cls]

    from steersman.intent import actions, metrics

    real = [
        cls
        for cls in leaves(Action)
        if cls in (getattr(actions, cls.__name__, None), getattr(metrics, cls.__name__, None))
    ]
    assert Create in real
    assert [cls for cls in real if cls not in interpretation._TABLE] == []


def test_a_long_message_is_cut() -> None:
    said = describe(Emit(owner, "Warning", "FailedCreate", "x" * 5000))
    assert len(said) < 250
    assert said.endswith("…")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, ""),
        (pod, ""),
        (Conflict("the object has been modified"), "Conflict: the object has been modified"),
        (Forbidden(""), "Forbidden"),
        (
            Invalid(
                'data[a]: Invalid value: "secret"', causes=(Cause("FieldValueInvalid", "secret", "data[a]"),)
            ),
            "Invalid: data[a]",
        ),
        ([Done(pod), Done(pod)], ""),
        (
            [Done(pod), Failed(Forbidden("quota")), Skipped(), Skipped()],
            "1 done, 1 refused, 2 not tried: Forbidden: quota",
        ),
    ],
)
def test_an_outcome_is_empty_or_says_what_was_refused(answer: object, words: str) -> None:
    assert outcome(answer) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1.0, "0 µs"),
        (0.0, "0 µs"),
        (0.0000021, "2 µs"),
        (0.002, "2 ms"),
        (1.5, "1.5 s"),
        (59.94, "59.9 s"),
        (60, "1 min"),
        (125.2, "2 min 5 s"),
        (3600, "1 h"),
        (7380, "2 h 3 min"),
    ],
)
def test_lengths_of_time_read_as_one_says_them(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("round_", "line"),
    [
        (
            round_of(steps=(Step("create 3 pods", "", 0.01),)),
            "12:00:03.120 replicaset default/web: because Pod default/web-x changed; waited 2 ms; "
            "created 3 pods; rests: 3 of 3 ready",
        ),
        (
            round_of(causes=(), steps=(Step("create 1 pod + delete 2 pods", "", 0.01),)),
            "12:00:03.120 replicaset default/web: waited 2 ms; created 1 pod + deleted 2 pods; "
            "rests: 3 of 3 ready",
        ),
        (
            round_of(
                causes=tuple(f"Pod default/{n} added" for n in range(6)),
                ending=Wake(timedelta(seconds=90), "TTL runs"),
            ),
            "12:00:03.120 replicaset default/web: because Pod default/0 added, Pod default/1 added, "
            "Pod default/2 added, Pod default/3 added and 2 more; waited 2 ms; wakes in 1 min 30 s: TTL runs",
        ),
        (
            round_of(
                causes=("resync",),
                steps=(
                    Step("read pod default/web-x", "", 0.0),
                    Step("delete pod default/web-x", "Conflict: x", 0.0),
                ),
                ending=Failure("x"),
            ),
            "12:00:03.120 replicaset default/web: because resync; waited 2 ms; read pod default/web-x; "
            "delete pod default/web-x (Conflict: x); failed: x",
        ),
    ],
)
def test_a_round_is_told_in_one_line(round_: Round, line: str) -> None:
    assert trace.tell(round_) == line


def test_a_busy_controller_does_not_push_out_the_rounds_of_a_quiet_one() -> None:
    kept = Trace(capacity=3)
    kept.record(round_of("quiet"))
    for number in range(10):
        kept.record(round_of("busy", Key("default", str(number))))
    assert [(r.controller, r.key.name) for r in kept.rounds()] == [
        ("quiet", "web"),
        ("busy", "7"),
        ("busy", "8"),
        ("busy", "9"),
    ]


def test_rounds_of_several_controllers_come_in_the_order_they_ended() -> None:
    kept = Trace()
    for name in ("b", "a", "b", "c", "a"):
        kept.record(round_of(name))
    assert [r.controller for r in kept.rounds()] == ["b", "a", "b", "c", "a"]
    assert [r.controller for r in kept.rounds("b")] == ["b", "b"]
    assert kept.rounds("nobody") == []


def test_a_story_is_about_one_key_across_controllers() -> None:
    kept = Trace()
    kept.record(round_of("deployment-controller"))
    kept.record(round_of(key=Key("default", "other")))
    kept.record(round_of())
    assert [line.split()[1:3] for line in kept.story(WEB)] == [
        ["deployment", "default/web:"],
        ["replicaset", "default/web:"],
    ]
    assert len(kept.story(WEB, "replicaset-controller")) == 1


def test_json_says_everything_a_round_knows() -> None:
    said = json.loads(encode(round_of(steps=(Step("read", "Conflict", 0.1 + 0.2),), ending=Failure("x"))))
    assert said == {
        "controller": "replicaset-controller",
        "namespace": "default",
        "name": "web",
        "causes": [{"type": "other", "text": "Pod default/web-x changed"}],
        "waited": 0.002,
        "started": "2026-01-02T12:00:03.120999Z",
        "took": 0.01,
        "steps": [{"action": "read", "outcome": "Conflict", "seconds": 0.3}],
        "ending": {"failure": "x", "code": 500, "retryAfter": 0.0},
        "next": "2026-01-02T12:00:03.130999Z",
    }
    assert json.loads(encode(round_of()))["ending"] == {"rest": "3 of 3 ready"}
    wakes = round_of(ending=Wake(timedelta(milliseconds=1500), "soon"))
    assert json.loads(encode(wakes))["ending"] == {"wake": 1.5, "because": "soon"}


PROGRAM = """
import sys
from datetime import UTC, datetime
from steersman.api.scheme import Key
from steersman.intent.verdict import Rest
from steersman.runtime.trace import Round, Step, Trace
kept = Trace()
for number in range(20):
    name = f"controller-{number % 3}"
    step = Step("create 1 pods", "", number / 7)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    kept.record(Round(name, Key("a", str(number)), ("x", "y"), 0.5, at, 0.1, (step,), Rest("ok")))
sys.stdout.buffer.write(kept.json())
"""


def test_equal_rounds_give_equal_bytes_under_any_hash_seed() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].count(b"\n") == 20
