"""What happened, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.generated import apps_v1, core_v1
from steersman.api.scheme import Key
from steersman.intent.verdict import Rest, Wake
from steersman.runtime.trace import Ending, Failure, Round, Step
from steersman.testing.narration import about, describe_round, differences, is_idle, verdict_of_round
from steersman.testing.waiting import describe, source


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 -> 2"]),
        ({}, {"a": {"b": 1}}, ['a = {"b":1}']),
        ({"a": {"b": 1}}, {"a": {}}, ["a.b removed"]),
        ({"metadata": {"uid": "x"}}, {"metadata": {"uid": "y"}}, []),
        ({"a": ["x"]}, {"a": ["x", "y"]}, ['a: ["x"] -> ["x","y"]']),
        ({"c": [{"name": "w", "i": 1}]}, {"c": [{"name": "w", "i": 2}]}, ["c[w].i: 1 -> 2"]),
        ({"c": [{"name": "w"}]}, {"c": []}, ["c[w] removed"]),
        ({"a": "x" * 99}, {"a": None}, ["a removed"]),
        ({"a": None}, {"a": "x" * 99}, ["a = " + "x" * 59 + "…"]),
    ],
)
def test_what_tells_two_documents_apart(old: Any, new: Any, words: list[str]) -> None:
    assert list(differences(old, new)) == words


def test_conditions_are_told_by_type_and_only_when_they_turn() -> None:
    old = {
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Slow"}, {"type": "Old"}]}
    }
    new = {
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Old", "message": "another"},
                {"type": "New", "status": "True", "reason": "Born"},
            ]
        }
    }
    assert list(differences(old, new)) == ["Ready is True", "New is True (Born)"]


def made(ending: Ending, *steps: Step) -> Round:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Round(
        "web-controller", Key("default", "web"), ("Pod a added", "Pod b added"), 0.0, at, 0.0, steps, ending
    )


READ, WRITE = Step("read pod default/web", "", 0.0), Step("create pod default/web-*", "", 0.0)
REFUSED = Step("create pod default/web-*", "Forbidden: no", 0.0)


@pytest.mark.parametrize(
    ("round_", "words", "idle"),
    [
        (made(Rest("done")), "rests: done (caused by Pod a added)", True),
        (made(Rest("done"), READ), "rests: done (caused by Pod a added)", True),
        (made(Wake(timedelta(minutes=2), "more")), "wakes in 2 min: more (caused by Pod a added)", True),
        (made(Rest("done"), WRITE), "rests: done (caused by Pod a added)", False),
        (made(Failure("oh")), "failed: oh (caused by Pod a added)", False),
        (
            made(Rest("done"), REFUSED),
            "create pod default/web-* (Forbidden: no); rests: done (caused by Pod a added)",
            False,
        ),
    ],
)
def test_rounds(round_: Round, words: str, idle: bool) -> None:
    assert describe_round(round_) == words
    assert is_idle(round_) is idle


def test_where_a_controller_stands() -> None:
    assert verdict_of_round(made(Rest("done"))) == "web-controller default/web rests: done"


@pytest.mark.parametrize(
    ("kind", "version", "resource"),
    [
        ("Pod", "v1", "pods"),
        ("Endpoints", "v1", "endpoints"),
        ("Deployment", "apps/v1", "deployments.apps"),
        ("Ingress", "networking.k8s.io/v1", "ingresses.networking.k8s.io"),
        ("CronTab", "stable.example.com/v1", "crontabs.stable.example.com"),
    ],
)
def test_what_an_event_is_about(kind: str, version: str, resource: str) -> None:
    named = core_v1.ObjectReference(kind=kind, apiVersion=version, namespace="default", name="web")
    assert about(core_v1.Event(involvedObject=named)) == (resource, Key("default", "web"))


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (core_v1.ConfigMap(), "exists"),
        ({"spec": {}}, "exists"),
        ({"status": {}}, "no status"),
        ({"status": {"phase": "Up", "n": 2, "deep": {"x": 1}}}, "phase Up, n 2"),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]}},
            "Ready=False (R: m)",
        ),
        (
            {"status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "Pull"}}}]}},
            "container c waiting: Pull",
        ),
        (apps_v1.Deployment(status=apps_v1.DeploymentStatus(replicas=2)), "replicas 2"),
    ],
)
def test_what_matters_of_an_object(obj: Any, words: str) -> None:
    assert describe(obj) == words


def test_a_predicate_is_shown_as_it_is_written_where_that_is_known() -> None:
    assert "1 + 1" in source(lambda: 1 + 1)
    assert source(len) == "len"
