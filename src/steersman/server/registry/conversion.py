"""Built-in resources that are served in two versions and stored in one.

`CONVERTED_VERSIONS` has the version that is not stored, and the functions that convert its objects to the stored
version and back. Conversion loses nothing: a field that a version lacks is kept in an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steersman.api.generated import core_v1, events_v1, load
from steersman.server.registry import autoscaling_conversion

# -- events -----------------------------------------------------------------------------------

_SAME_FIELDS = ("metadata", "eventTime", "reportingInstance", "action", "reason", "related", "type")
_RENAMED_FIELDS = {
    "reportingComponent": "reportingController",
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""Field names of core/v1 Events and of events.k8s.io/v1 Events."""


def to_events_v1(event: core_v1.Event) -> events_v1.Event:
    """Converts a core/v1 Event to events.k8s.io/v1."""
    fields: dict[str, Any] = {name: getattr(event, name) for name in _SAME_FIELDS}
    fields |= {there: getattr(event, here) for here, there in _RENAMED_FIELDS.items()}
    series = event.series
    if series is not None:
        fields["series"] = events_v1.EventSeries(count=series.count, lastObservedTime=series.lastObservedTime)
    return events_v1.Event(**fields)


def to_core_v1(event: events_v1.Event) -> core_v1.Event:
    """Converts an events.k8s.io/v1 Event to core/v1."""
    fields: dict[str, Any] = {name: getattr(event, name) for name in _SAME_FIELDS}
    fields |= {here: getattr(event, there) for here, there in _RENAMED_FIELDS.items()}
    series = event.series
    if series is not None:
        fields["series"] = core_v1.EventSeries(count=series.count, lastObservedTime=series.lastObservedTime)
    return core_v1.Event(**fields)


# -- versions ---------------------------------------------------------------------------------


class ConvertedVersion(msgspec.Struct, frozen=True):
    """A served version whose objects are stored in another version."""

    table: str
    serve: Callable[[Any], Any]
    """Converts a stored object to this version."""
    store: Callable[[Any], Any]
    """Converts an object of this version to the stored one."""
    stored_as: tuple[str, str, str]
    """The group, version and plural of the stored version."""
    written_as_stored: bool = False
    """Whether writes follow the strategy of the stored version."""


CONVERTED_VERSIONS: Mapping[tuple[str, str, str], ConvertedVersion] = {
    ("autoscaling", "v1", "horizontalpodautoscalers"): ConvertedVersion(
        "horizontalpodautoscalers.autoscaling",
        autoscaling_conversion.to_v1,
        autoscaling_conversion.to_v2,
        ("autoscaling", "v2", "horizontalpodautoscalers"),
        written_as_stored=True,
    ),
    ("events.k8s.io", "v1", "events"): ConvertedVersion(
        "events", to_events_v1, to_core_v1, ("", "v1", "events")
    ),
}
"""Converted versions by group, version and plural."""


class OtherVersion(msgspec.Struct, frozen=True):
    """The other version of a resource that is served in two."""

    api_version: str
    kind: str
    type: type[Any]
    convert: Callable[[Any], Any]
    """Converts an object to this version."""


def other_version(group: str, version: str, plural: str, kind: str) -> OtherVersion | None:
    """The other version of a resource; None if it has one only.

    Versions in two groups (Events) do not count: upstream does not convert their managed fields.
    """
    for (group_, version_, plural_), converted in CONVERTED_VERSIONS.items():
        if not converted.written_as_stored:
            continue
        if (group, version, plural) == converted.stored_as:
            return _other_version(group_, version_, kind, converted.serve)
        if (group, version, plural) == (group_, version_, plural_):
            return _other_version(converted.stored_as[0], converted.stored_as[1], kind, converted.store)
    return None


def _other_version(group: str, version: str, kind: str, convert: Callable[[Any], Any]) -> OtherVersion:
    api_version = f"{group}/{version}" if group else version
    return OtherVersion(api_version, kind, load(group, version, kind).type, convert)
