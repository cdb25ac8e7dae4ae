"""The correlator: rows of events and times -> what should be on the server."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import ObjectReference
from steersman.runtime.event_correlator import (
    BURST,
    COMBINED,
    REFILL,
    SERIES_ENDS,
    SIMILAR,
    SIMILAR_BUSY,
    SIMILAR_WITHIN,
    Correlator,
    SeriesCorrelator,
)
from steersman.runtime.events import Event, Scribe, SeriesEvent

DAWN = datetime(2026, 1, 1, tzinfo=UTC)
web = ObjectReference(kind="ReplicaSet", apiVersion="apps/v1", namespace="default", name="web", uid="u1")


class Source:
    """Feeds a correlator, as a recorder would."""

    def __init__(self, correlator: Correlator | None = None) -> None:
        self.correlator = correlator or Correlator()
        self.scribe = Scribe("replicaset-controller", "", random.Random(0))

    def say(
        self,
        message: str,
        at: float = 0.0,
        *,
        about: ObjectReference = web,
        type: str = "Normal",
        reason: str = "Made",
        busy: bool = False,
    ) -> Event | None:
        event = self.scribe.event(about, type, reason, message, DAWN + timedelta(seconds=at))
        found = self.correlator.take(event, at, busy=busy)
        if found is None:
            return None
        assert isinstance(found.event, Event)
        return found.event


def test_a_first_event_passes_as_it_is() -> None:
    source = Source()
    event = source.say("made a")
    assert event is not None
    assert (event.count, event.message, event.repeated) == (1, "made a", False)
    assert event.metadata.name == f"web.{1767225600 * 10**9 + source.scribe._offset:x}"


def test_an_equal_event_counts_the_first_one_up() -> None:
    source = Source()
    first = source.say("made a")
    again = source.say("made a", 61)
    assert first is not None
    assert again is not None
    assert again.metadata == first.metadata
    assert (again.count, again.repeated) == (2, True)
    assert (again.firstTimestamp, again.lastTimestamp) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:01Z")
    assert again.change() == {"count": 2, "lastTimestamp": "2026-01-01T00:01:01Z", "message": "made a"}


@pytest.mark.parametrize(
    "other",
    [
        {
            "about": ObjectReference(
                kind="ReplicaSet", apiVersion="apps/v1", namespace="default", name="web", uid="u2"
            )
        },
        {
            "about": ObjectReference(
                kind="ReplicaSet", apiVersion="apps/v1", namespace="other", name="web", uid="u1"
            )
        },
        {"about": ObjectReference(kind="Pod", apiVersion="v1", namespace="default", name="web", uid="u1")},
        {"type": "Warning"},
        {"reason": "Unmade"},
        {"message": "made b"},
    ],
)
def test_an_event_that_differs_in_any_way_is_another_event(other: dict[str, object]) -> None:
    source = Source()
    source.say("made a")
    event = source.say(**{"message": "made a", "at": 1.0, **other})  # type: ignore[arg-type]
    assert event is not None
    assert event.count == 1


def test_a_newer_version_of_the_object_does_not_make_it_another_event() -> None:
    source = Source()
    newer = ObjectReference(
        kind="ReplicaSet",
        apiVersion="apps/v1",
        namespace="default",
        name="web",
        uid="u1",
        resourceVersion="7",
    )
    source.say("made a")
    event = source.say("made a", about=newer)
    assert event is not None
    assert (event.count, event.involvedObject.resourceVersion) == (2, "7")


def test_the_tenth_different_message_is_combined_and_so_are_the_next() -> None:
    source = Source()
    said = [source.say(f"made {n}", n) for n in range(14)]
    events = [event for event in said if event is not None]
    assert [event.count for event in events] == [1] * SIMILAR + [2, 3, 4, 5]
    assert [event.message for event in events[: SIMILAR - 1]] == [f"made {n}" for n in range(SIMILAR - 1)]
    assert [event.message for event in events[SIMILAR - 1 :]] == [
        COMBINED + f"made {n}" for n in range(9, 14)
    ]
    combined = events[SIMILAR - 1 :]
    assert {event.metadata.name for event in combined} == {combined[0].metadata.name}
    assert combined[0].metadata.name not in [event.metadata.name for event in events[: SIMILAR - 1]]
    assert combined[0].source.component == "replicaset-controller"
    assert combined[0].reportingComponent == ""


def test_while_many_wait_the_fifth_is_combined_but_no_message_with_an_event_of_its_own() -> None:
    source = Source()
    shown = [source.say(f"made {n}", busy=True) for n in range(SIMILAR_BUSY + 2)]
    combined = [event is not None and event.message.startswith(COMBINED) for event in shown]
    assert combined == [False] * (SIMILAR_BUSY - 1) + [True] * 3
    again = source.say("made 0", busy=True)
    assert again is not None
    assert (again.message, again.count) == ("made 0", 2)
    calm = source.say("made 9")
    assert calm is not None
    assert calm.message == "made 9", "with nothing waiting, the tenth counts again"


def test_messages_that_have_their_own_event_keep_it_while_others_are_combined() -> None:
    source = Source()
    for n in range(12):
        source.say(f"made {n}")
    event = source.say("made 0")
    assert event is not None
    assert (event.message, event.count) == ("made 0", 2)


@pytest.mark.parametrize(("quiet", "combined"), [(SIMILAR_WITHIN, True), (SIMILAR_WITHIN + 1, False)])
def test_similar_events_are_new_again_after_ten_quiet_minutes(quiet: float, combined: bool) -> None:
    source = Source()
    for n in range(SIMILAR):
        source.say(f"made {n}")
    event = source.say("made something else", quiet)
    assert event is not None
    assert event.message.startswith(COMBINED) is combined


def test_a_source_may_say_25_things_about_an_object_and_then_one_every_five_minutes() -> None:
    source = Source()
    said = [source.say("made a") for _ in range(BURST + 5)]
    assert [event is not None for event in said] == [True] * BURST + [False] * 5
    assert source.say("made a", REFILL - 1) is None
    event = source.say("made a", REFILL)
    # What was not sent was counted all the same.
    assert event is not None
    assert event.count == BURST + 7
    assert source.say("made a", REFILL + 1) is None


def test_spam_about_one_object_or_of_one_type_does_not_silence_the_others() -> None:
    source = Source()
    for _ in range(BURST + 1):
        source.say("made a")
    assert source.say("made a") is None
    assert source.say("made a", type="Warning") is not None
    assert source.say("made a", about=ObjectReference(kind="Pod", name="web")) is not None


def test_the_bucket_never_holds_more_than_the_burst() -> None:
    source = Source()
    source.say("made a")
    said = [source.say("made a", 10 * BURST * REFILL) for _ in range(BURST + 1)]
    assert sum(event is not None for event in said) == BURST


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    source = Source(Correlator(capacity=2))
    objects = [ObjectReference(kind="Pod", name=name) for name in "abc"]
    source.say("x", about=objects[0])
    source.say("x", about=objects[1])
    source.say("x", about=objects[0])
    source.say("x", about=objects[2])  # pushes out b
    again = [source.say("x", about=objects[0]), source.say("x", about=objects[1])]
    assert [event and event.count for event in again] == [3, 1]


def test_a_forgotten_event_starts_anew_under_another_name() -> None:
    source = Source()
    found = source.correlator.take(source.scribe.event(web, "Normal", "Made", "a", DAWN), 0)
    assert found is not None
    source.correlator.forget(found.key)
    event = source.say("a")
    assert event is not None
    assert event.count == 1
    assert event.metadata.name != found.event.metadata.name


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.integers(0, 14),
            st.floats(0, 400, allow_nan=False),
        ),
        max_size=120,
    )
)
def test_no_event_is_lost_counted_twice_or_renamed(said: list[tuple[str, int, float]]) -> None:
    """Counts of one event object go up by one at a time, but for those that spam swallowed."""
    source = Source()
    now, swallowed = 0.0, 0
    counts: dict[str, int] = {}
    for name, message, wait in said:
        now += wait
        event = source.say(f"made {message}", now, about=ObjectReference(kind="Pod", name=name))
        if event is None:
            swallowed += 1
            continue
        assert event.count > counts.get(event.metadata.name, 0)
        counts[event.metadata.name] = event.count
    assert len(said) - swallowed <= sum(counts.values()) <= len(said)


# -- series -------------------------------------------------------------------------------------


class SeriesSource:
    def __init__(self) -> None:
        self.correlator = SeriesCorrelator()
        self.scribe = Scribe("scheduler", "host", random.Random(0))

    def say(self, note: str, at: float = 0.0, about: ObjectReference = web) -> SeriesEvent | None:
        when = DAWN + timedelta(seconds=at)
        event = self.scribe.series_event(about, "Normal", "Bound", note, when, "Binding")
        found = self.correlator.take(event, at)
        if found is None:
            return None
        assert isinstance(found.event, SeriesEvent)
        return found.event


def test_the_second_event_makes_a_series_and_further_ones_are_only_counted() -> None:
    source = SeriesSource()
    first, second, third = (source.say("bound", at) for at in (0, 1, 2))
    assert first is not None
    assert first.series is None
    assert second is not None
    assert second.metadata == first.metadata
    assert second.change() == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    assert third is None


def test_a_series_is_written_when_refreshed_and_a_last_time_when_over() -> None:
    source = SeriesSource()
    for at in (0, 1, 2):
        source.say("bound", at)
    single = ObjectReference(kind="Pod", name="single")
    source.say("bound", 2, single)
    assert source.correlator.sweep(10, refresh=False) == []
    refreshed = source.correlator.sweep(10, refresh=True)
    assert [found.event.change() for found in refreshed] == [
        {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:02.000000Z"}}
    ]
    over = source.correlator.sweep(2 + SERIES_ENDS + 1, refresh=False)
    assert over == refreshed
    assert source.correlator.sweep(10_000, refresh=True) == []
    event = source.say("bound", 10_000)
    assert event is not None
    assert event.series is None


def test_a_note_too_long_for_the_server_is_cut_between_characters() -> None:
    event = SeriesSource().say("ä" * 600 + "x")
    assert event is not None
    assert event.note == "ä" * 512
