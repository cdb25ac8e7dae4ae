"""The timeline of an object: causes, decisions, writes, events and conditions, in the order in which they happened.

Rounds are those of ``/debug/rounds``. A round has a number; the cause that led to it names the round whose write it was, so a
chain can be followed: cause, decision, write, and the rounds that the write caused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from steersman.explain.collect import KINDS
from steersman.explain.model import Document, Ref, Snapshot, event_time, message_of, ref_of
from steersman.explain.owners import controller_of_kind
from steersman.explain.words import brief, duration

MOST = 400
"""Entries of one timeline: the latest."""
MAX_WRITES = 20
"""Writes of one round that are listed."""
MAX_EVENTS = 200


class Entry(msgspec.Struct, frozen=True):
    """An entry of the timeline: a cause, decision, write, event or condition."""

    at: str
    kind: Literal["cause", "decision", "write", "event", "condition"]
    who: str
    text: str
    subject: str
    """``Kind/namespace/name``."""
    round: int | None = None
    caused: tuple[int, ...] = ()
    """The numbers of the rounds that it led to."""


def build(snapshot: Snapshot, document: Document, around: Collection[Ref]) -> list[Entry]:
    """The timeline of an object and of those around it."""
    rounds: list[dict[str, Any]] = list((snapshot.rounds or {}).get("rounds") or ())
    refs = {ref_of(document), *around}
    entries = [*_rounds(rounds, refs), *_conditions(document)]
    for ref in refs:
        found = snapshot.get(*ref)
        if found is not None:
            entries += map(_event, snapshot.events(found)[:MAX_EVENTS])
    order = {"cause": 0, "decision": 1, "write": 2, "event": 3, "condition": 4}
    entries.sort(key=lambda entry: (_instant(entry.at), entry.round or 0, order[entry.kind]))
    return entries[-MOST:]


def _rounds(rounds: Iterable[Mapping[str, Any]], refs: Collection[Ref]) -> Iterator[Entry]:
    places = {(ref.namespace, ref.name) for ref in refs}
    chosen = [each for each in rounds if _concerns(each, refs, places)]
    caused: dict[int, dict[int, None]] = {}
    for each in chosen:
        for cause in each.get("causes") or ():
            if cause.get("round"):
                caused.setdefault(cause["round"], {})[each["number"]] = None
    for each in chosen:
        yield from _round(each, tuple(caused.get(each["number"], ())))


def _concerns(round_: Mapping[str, Any], refs: Collection[Ref], places: Collection[tuple[str, str]]) -> bool:
    """Whether a round is about one of some objects, or writes one of them."""
    if (round_.get("namespace", ""), round_.get("name", "")) in places:
        own = [ref for ref in refs if (ref.namespace, ref.name) == (round_["namespace"], round_["name"])]
        # Two kinds may share a name: what caused the round, or the name of its controller, tells which it is.
        kinds = {ref.kind for ref in own}
        named = {cause.get("kind") for cause in round_.get("causes") or ()} & kinds
        return bool(named) or any(controller_of_kind(kind) == round_.get("controller") for kind in kinds)
    return any(
        (write.get("namespace", ""), write.get("name", "")) in places
        for step in round_.get("steps") or ()
        for write in step.get("writes") or ()
    )


def _round(round_: Mapping[str, Any], caused: tuple[int, ...]) -> Iterator[Entry]:
    who, number = str(round_.get("controller", "")), int(round_.get("number", 0))
    subject = _subject(round_)
    started = msgspec.convert(round_["started"], datetime)
    for cause in round_.get("causes") or ():
        yield Entry(_time(started), "cause", who, str(cause.get("text", "")), subject, number, (number,))
    ended = _time(started + timedelta(seconds=float(round_.get("took", 0.0))))
    steps = [step for step in round_.get("steps") or () if step]
    yield Entry(ended, "decision", who, _verdict(round_.get("ending") or {}), subject, number, caused)
    shown = 0
    for step in steps:
        if step.get("outcome") and not step.get("writes"):
            text = f"{step.get('action')}: {brief(str(step['outcome']))}"
            yield Entry(ended, "write", who, text, subject, number)
        for write in step.get("writes") or ():
            shown += 1
            if shown > MAX_WRITES:
                break
            place = "/".join(filter(None, (write.get("namespace"), write.get("name"))))
            sub = f"/{write['subresource']}" if write.get("subresource") else ""
            text = f"{write.get('verb')} {write.get('resource')}{sub} {place}"
            kind = _KIND_OF_RESOURCE.get(str(write.get("resource")), str(write.get("resource")))
            target = f"{kind}/{write.get('namespace', '')}/{write.get('name', '')}"
            yield Entry(ended, "write", who, text, target, number, caused)
    if shown > MAX_WRITES:
        more = (
            sum(len(step.get("writes") or ()) + int(step.get("moreWrites", 0)) for step in steps) - MAX_WRITES
        )
        yield Entry(ended, "write", who, f"{more} more writes", subject, number, caused)


def _verdict(ending: Mapping[str, Any]) -> str:
    if "rest" in ending:
        return f"rests: {ending['rest']}"
    if "wake" in ending:
        after = duration(timedelta(seconds=float(ending["wake"])))
        return f"wakes in {after}: {ending.get('because', '')}"
    again = duration(timedelta(seconds=float(ending.get("retryAfter", 0.0))))
    return f"failed, tries again in {again}: {brief(str(ending.get('failure', '')))}"


def _subject(round_: Mapping[str, Any]) -> str:
    kinds = [
        str(cause["kind"])
        for cause in round_.get("causes") or ()
        if (cause.get("namespace"), cause.get("name")) == (round_.get("namespace"), round_.get("name"))
    ]
    kind = kinds[0] if kinds else _KIND_OF.get(str(round_.get("controller", "")), "")
    return f"{kind}/{round_.get('namespace', '')}/{round_.get('name', '')}"


_KIND_OF = {
    controller_of_kind(kind): kind
    for kind in (
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "Node",
        "Namespace",
        "Service",
    )
}

_KIND_OF_RESOURCE = {kind.resource: kind.name for kind in KINDS}


def _event(event: Document) -> Entry:
    about = event.get("involvedObject") or {}
    subject = f"{about.get('kind', '')}/{about.get('namespace', '')}/{about.get('name', '')}"
    text = f"{event.get('reason', '')}: {message_of(event)}"
    return Entry(event_time(event), "event", _reporter(event), text, subject)


def _reporter(event: Document) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent") or "")


def _conditions(document: Document) -> Iterator[Entry]:
    kind, namespace, name = ref_of(document)
    for each in conditions(document):
        if each["since"]:
            text = f"{each['type']} is {each['status']}" + (f": {each['reason']}" if each["reason"] else "")
            yield Entry(each["since"], "condition", "", text, f"{kind}/{namespace}/{name}")


def conditions(document: Document) -> list[dict[str, Any]]:
    """The conditions of an object, for its page."""
    status = document.get("status")
    found = status.get("conditions") if isinstance(status, Mapping) else ()
    return [
        {
            "type": str(each.get("type", "")),
            "status": str(each.get("status", "")),
            "reason": str(each.get("reason") or ""),
            "message": str(each.get("message") or ""),
            "since": each.get("lastTransitionTime") or None,
        }
        for each in found or ()
        if isinstance(each, Mapping)
    ]


def events(snapshot: Snapshot, document: Document) -> list[dict[str, Any]]:
    """The events about an object, latest first."""
    return [
        {
            "at": event_time(each),
            "type": str(each.get("type") or "Normal"),
            "reason": str(each.get("reason") or ""),
            "message": message_of(each),
            "count": int((each.get("series") or {}).get("count") or each.get("count") or 1),
            "from": _reporter(each),
        }
        for each in snapshot.events(document)[:MAX_EVENTS]
    ]


def _instant(text: str) -> float:
    """A time as seconds, to sort by. A time in whole seconds has lost its fraction, so it counts as the end of its second."""
    try:
        at = msgspec.convert(text, datetime)
    except (msgspec.ValidationError, ValueError):
        return 0.0
    return at.timestamp() + (0.0 if at.microsecond or "." in text else 0.999)


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
