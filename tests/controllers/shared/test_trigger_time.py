"""The trigger times of endpoints: upstream's TriggerTimeTracker in rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.kinds import Condition, ObjectMeta, Pod, PodStatus
from steersman.api.kinds.services import Service
from steersman.api.scheme import Key
from steersman.controllers.shared.trigger_time import (
    LAST_CHANGE_TRIGGER_TIME,
    TriggerTimes,
    observed_times,
    rfc3339_nano,
    trigger_time,
    with_trigger_time,
)

START = datetime(2019, 1, 1, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def pod(name: str, ready: int | None) -> Pod:
    since = None if ready is None else at(ready)
    condition = Condition(type="Ready", status="True", lastTransitionTime=since)
    return Pod(metadata=ObjectMeta(name=name), status=PodStatus(conditions=(condition,)))


Sync = tuple[int, Mapping[str, int | None], int | None]
"""Seconds of the Service's creation, of the readiness of its pods, and of the trigger time."""


@pytest.mark.parametrize(
    "syncs",
    [
        pytest.param([(2, {}, 2)], id="new Service without pods"),
        pytest.param([(3, {"a": 0, "b": 1, "c": 5}, 3)], id="new Service, existing pods"),
        pytest.param([(0, {}, 0), (0, {"a": 2, "b": 1}, 1)], id="pods added"),
        pytest.param([(0, {"a": 1, "b": 2, "c": 3}, 0), (0, {"a": 5, "b": 4, "c": 3}, 4)], id="pods updated"),
        pytest.param(
            [(0, {"a": 1, "b": 2, "c": 3}, 0), (0, {"a": 1, "b": 2, "c": 3}, None)], id="nothing changed"
        ),
        pytest.param(
            [(0, {"a": 1, "b": 2}, 0), (0, {"a": 1}, None), (0, {"a": 1, "b": 4}, 4)],
            id="pod deleted, then added",
        ),
        pytest.param([(0, {"a": 1}, 0), (3, {"a": 1}, 3)], id="a later Service of the same name"),
        pytest.param([(0, {}, 0), (0, {"a": None}, None)], id="a pod that was never ready"),
    ],
)
def test_the_trigger_time_is_the_earliest_change_since_the_last_sync(syncs: list[Sync]) -> None:
    times, key = TriggerTimes(), Key("ns", "svc")
    for created, pods, expected in syncs:
        service = Service(metadata=ObjectMeta(name="svc", namespace="ns", creationTimestamp=at(created)))
        observed = observed_times(service, [pod(name, ready) for name, ready in pods.items()])
        assert trigger_time(times.get(key), observed) == (None if expected is None else at(expected))
        times.record(key, observed)


def test_a_service_that_is_gone_is_forgotten() -> None:
    times, key = TriggerTimes(), Key("ns", "svc")
    times.record(key, observed_times(Service(), [pod("a", 1)]))
    times.forget(key)
    assert times.get(key) is None
    assert not len(times)


def test_the_annotation_is_written_replaced_and_removed() -> None:
    written = with_trigger_time({"a": "b"}, at(1))
    assert written == {"a": "b", LAST_CHANGE_TRIGGER_TIME: "2019-01-01T00:00:01Z"}
    assert with_trigger_time(written, at(2))[LAST_CHANGE_TRIGGER_TIME] == "2019-01-01T00:00:02Z"
    assert with_trigger_time(written, None) == {"a": "b"}


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0, ""), (500_000, ".5"), (120, ".00012"), (123_456, ".123456")]
)
def test_a_fraction_of_a_second_has_no_trailing_zeros(microseconds: int, text: str) -> None:
    assert rfc3339_nano(START + timedelta(microseconds=microseconds)) == f"2019-01-01T00:00:00{text}Z"
