"""Times with microseconds keep all six digits, or Go clients refuse the object."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.coordination_v1 import Lease, LeaseSpec
from steersman.api.generated.core_v1 import Event, EventSeries, Pod
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.codec.convert import micro_time_paths
from steersman.server.codec.encoding import encode_items, encode_object, with_micro_times

WHOLE = datetime(2026, 1, 1, 12, tzinfo=UTC)


@given(st.integers(0, 999_999))
def test_a_lease_always_has_six_digits(micro: int) -> None:
    at = WHOLE + timedelta(microseconds=micro)
    lease = Lease(spec=LeaseSpec(renewTime=at, acquireTime=WHOLE))
    spec = msgspec.json.decode(encode_object("coordination.k8s.io/v1", "Lease", lease))["spec"]
    assert spec == {
        "renewTime": f"2026-01-01T12:00:00.{micro:06}Z",
        "acquireTime": "2026-01-01T12:00:00.000000Z",
    }


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_lease_of_any_year_is_read_back_as_it_was(at: datetime) -> None:
    lease = Lease(spec=LeaseSpec(renewTime=at))
    spec = msgspec.json.decode(encode_object("coordination.k8s.io/v1", "Lease", lease))["spec"]
    assert len(spec["renewTime"]) == len("2026-01-01T12:00:00.000000Z")
    assert datetime.fromisoformat(spec["renewTime"]) == at


def test_events_have_them_in_lists_and_in_their_series() -> None:
    event = Event(
        metadata=ObjectMeta(name="e", creationTimestamp=WHOLE),
        eventTime=WHOLE,
        series=EventSeries(count=2, lastObservedTime=WHOLE),
    )
    (told,) = msgspec.json.decode(encode_items("v1", "Event", [event]))
    assert told["eventTime"] == told["series"]["lastObservedTime"] == "2026-01-01T12:00:00.000000Z"
    assert told["metadata"]["creationTimestamp"] == "2026-01-01T12:00:00Z"


@pytest.mark.parametrize("obj", [Pod(), Lease(), Event()])
def test_what_has_no_such_time_is_left_as_it_is(obj: object) -> None:
    assert with_micro_times(obj) is obj


def test_the_places_are_found_in_the_types() -> None:
    assert micro_time_paths(Lease) == (("spec", "acquireTime"), ("spec", "renewTime"))
    assert micro_time_paths(Pod) == ()
