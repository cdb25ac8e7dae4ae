"""The types of events/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import MicroTime, Time
from steersman.api.kinds import Struct


class Event(meta_v1.Object, frozen=True):
    action: str = ""
    deprecatedCount: int = 0
    deprecatedFirstTimestamp: Time | None = msgspec.field(default_factory=NoneType)
    deprecatedLastTimestamp: Time | None = msgspec.field(default_factory=NoneType)
    deprecatedSource: core_v1.EventSource = msgspec.field(default_factory=core_v1.EventSource)
    eventTime: MicroTime | None = msgspec.field(default_factory=NoneType)
    note: str = ""
    reason: str = ""
    regarding: core_v1.ObjectReference = msgspec.field(default_factory=core_v1.ObjectReference)
    related: core_v1.ObjectReference | None = None
    reportingController: str = ""
    reportingInstance: str = ""
    series: EventSeries | None = None
    type: str = ""


class EventSeries(Struct, frozen=True):
    count: int = msgspec.field(default_factory=int)
    lastObservedTime: MicroTime | None = msgspec.field(default_factory=NoneType)
