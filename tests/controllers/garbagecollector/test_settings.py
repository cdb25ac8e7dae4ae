"""What can be set about the garbage collector."""

from __future__ import annotations

from steersman.controllers.garbagecollector import controller
from steersman.intent.controller import Flag, Settings


def test_it_runs_unless_it_is_told_not_to() -> None:
    assert controller.configured(Settings()) is not None
    assert controller.configured(Settings(flags={"enable-garbage-collector": True})) is not None
    assert controller.configured(Settings(flags={"enable-garbage-collector": False})) is None


def test_twenty_objects_are_looked_at_at_once_and_twice_as_fast_as_by_others() -> None:
    assert controller.workers == Flag("concurrent-gc-syncs", 20)
    assert (controller.qps_factor, controller.burst_factor) == (2.0, 1.0)


def test_events_are_never_followed() -> None:
    roams = controller.follows_all
    assert roams is not None
    assert roams.verbs == ("delete", "list", "watch")
    assert roams.excluded == ("events", "events.events.k8s.io")
