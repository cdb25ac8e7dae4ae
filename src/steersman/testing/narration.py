"""Descriptions of what happens in a cluster: writes, events and rounds of controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated import resource
from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.intent.verdict import Rest, Wake
from steersman.runtime.trace import Failure, Round, span
from steersman.server.codec.convert import to_document
from steersman.server.storage.watch import Commit

SHOWN = 6
"""Maximum number of changed fields shown for a write."""
LONGEST = 60
"""Maximum characters of a value."""
EVENTS = ("events", "events.events.k8s.io")
SECRET = "secrets"
"""The resource whose values are not shown."""
DULL = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")
READS = ("load ", "read ")
REGISTERED = "RegisteredNode"
"""The reason of the event that tells that a manager has seen a node for the first time."""
"""Prefixes of steps that write nothing."""


# -- writes -----------------------------------------------------------------------------------


def describe_write(commit: Commit) -> str:
    """The change that a write made."""
    if commit.event.type is EventType.DELETED:
        return "deleted"
    if commit.old is None:
        return "created"
    if commit.resource == SECRET:
        return "changed"
    changes = list(differences(_plain(commit.old), _plain(commit.obj)))
    more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return "; ".join(changes[:SHOWN]) + more or "written without a change"


def _plain(obj: Any) -> dict[str, Any]:
    return to_document("", "", replace(obj, metadata=replace(obj.metadata, managedFields=())))


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The differences between two documents, field by field; list elements are matched by name or type."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            if name not in DULL:
                yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif old == new:
        return
    elif path.endswith(".conditions"):
        yield from _conditions(old or (), new or ())
    elif (before := _named(old)) is not None and (after := _named(new)) is not None:
        for name in dict.fromkeys((*before, *after)):
            yield from differences(before.get(name), after.get(name), f"{path}[{name}]")
    elif old is None:
        yield f"{path} = {_short(new)}"
    elif new is None:
        yield f"{path} removed"
    elif isinstance(old, list) and isinstance(new, list) and _short(old) == _short(new):
        # Cut to their length they are alike: only the elements that differ tell something.
        yield from (f"{path} without {_short(each)}" for each in old if each not in new)
        yield from (f"{path} with {_short(each)}" for each in new if each not in old)
    else:
        yield f"{path}: {_short(old)} -> {_short(new)}"


def _conditions(old: Any, new: Any) -> Iterator[str]:
    before = {each.get("type"): each for each in old}
    for each in new:
        was = before.get(each.get("type"), {})
        if (was.get("status"), was.get("reason")) != (each.get("status"), each.get("reason")):
            reason = f" ({each['reason']})" if each.get("reason") else ""
            yield f"{each.get('type')} is {each.get('status')}{reason}"


def _named(items: Any) -> dict[str, Any] | None:
    """The elements of a list by their names; None where they have none."""
    if not isinstance(items, list) or not all(isinstance(each, dict) and "name" in each for each in items):
        return None
    return {each["name"]: each for each in items}


def _short(value: Any) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# -- events -----------------------------------------------------------------------------------


def about(event: Any) -> tuple[str, Key]:
    """The resource and key of the object of an event."""
    named = getattr(event, "involvedObject", None) or event.regarding
    group, _, version = named.apiVersion.rpartition("/")
    try:
        plural = resource(group, version, named.kind).plural
    except LookupError:
        plural = f"{named.kind.lower()}s"
    return f"{plural}.{group}" if group else plural, Key(named.namespace, named.name)


def describe_event(event: Any) -> str:
    """The type, reason and message of an event."""
    words = getattr(event, "message", "") or getattr(event, "note", "")
    return f"{event.type} event {event.reason}: {words}"


# -- rounds -----------------------------------------------------------------------------------


def is_idle(round_: Round) -> bool:
    """Whether a round wrote nothing and did not fail."""
    return not isinstance(round_.ending, Failure) and all(
        step.action.startswith(READS) for step in round_.steps
    )


def is_start(record: Commit | Round) -> bool:
    """Whether a round or a write is one that each start of a manager brings."""
    if isinstance(record, Round):
        said = (*READS, f"emit Normal {REGISTERED}")
        return not isinstance(record.ending, Failure) and all(
            step.action.startswith(said) for step in record.steps
        )
    return record.resource in EVENTS and record.obj.reason == REGISTERED


def describe_round(round_: Round) -> str:
    """The verdict of a round, its failed steps and its cause. Its writes have entries of their own."""
    refused = [f"{step.action} ({step.outcome})" for step in round_.steps if step.outcome]
    why = f" (caused by {round_.causes[0]})" if round_.causes else ""
    return "; ".join((*refused, _ending(round_))) + why


def verdict_of_round(round_: Round) -> str:
    """The verdict of a controller about a key."""
    return f"{round_.controller} {round_.key} {_ending(round_)}"


def _ending(round_: Round) -> str:
    match round_.ending:
        case Rest(because):
            return f"rests: {because}"
        case Wake(after, because):
            return f"wakes in {span(after.total_seconds())}: {because}"
        case Failure(error):
            return f"failed: {error}"
