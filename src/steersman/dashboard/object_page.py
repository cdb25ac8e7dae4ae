"""The page of one object: its explanation, owner graph, timeline, events, conditions and YAML."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ApiError
from steersman.api.manifest_annotations import may_hold_manifest
from steersman.client.api import Api
from steersman.dashboard import graph, timeline
from steersman.dashboard.feed import Feed
from steersman.dashboard.kinds import without_managed_fields
from steersman.dashboard.live_objects import LiveSnapshot
from steersman.dashboard.problems import needed
from steersman.dashboard.summaries import summarize
from steersman.dashboard.time_slices import TimeSlices
from steersman.explain import render
from steersman.explain.collect import KINDS_BY_NAME, Target, read_extra, read_rounds
from steersman.explain.explanation import explain_in_steps
from steersman.explain.model import Decision, Document, Explanation

MAX_EVENTS = 200
"""Events about the object that are read."""


async def object_page(
    api: Api, feed: Feed, target: Target, document: Document, now: datetime
) -> dict[str, Any]:
    """The page of an object, from the objects of a feed, in time slices."""
    slices = TimeSlices()
    snapshot = await _snapshot(api, feed, target, document, now)
    live = feed.objects.by_uid.get(str(document.get("metadata", {}).get("uid", "")))
    for entry in needed(feed.objects, live) if live is not None else ():
        snapshot.document(entry)
        await slices.pause()
    told = await slices.run(explain_in_steps(snapshot, document))
    told = replace(told, decisions=await _decisions(api, told, now))
    around = await graph.build(snapshot, document, slices)
    entries = timeline.build(snapshot, document, around.documents.keys())
    await slices.pause()
    return {
        "summary": summarize(document),
        "explanation": render.document(told),
        "text": render.text(told),
        "graph": around.json(),
        "timeline": entries,
        "events": timeline.events(snapshot, document),
        "conditions": timeline.conditions(document),
        "yaml": to_yaml(document),
    }


async def _snapshot(api: Api, feed: Feed, target: Target, document: Document, now: datetime) -> LiveSnapshot:
    """The objects of the feed, and what it does not follow: the object itself, all events about it, the Lease, the trace."""
    unread = dict(feed.unread)
    rounds = await read_rounds(api, target, unread)
    others = [document, *await feed.lease(), *await read_extra(api, target, unread)]
    events = KINDS_BY_NAME["Event"]
    about = f"involvedObject.name={target.name},involvedObject.kind={target.kind.name}"
    try:
        page = await api.list(events, target.namespace, field_selector=about, limit=MAX_EVENTS)
        others += [{**each, "kind": "Event"} for each in page.items if isinstance(each, dict)]
    except ApiError as error:
        unread["Event"] = error.message
    return LiveSnapshot(now, feed.objects, unread, rounds, others)


async def _decisions(api: Api, told: Explanation, now: datetime) -> tuple[Decision, ...]:
    """The decisions of the controllers about the objects that are not well."""
    subjects = [each.subject for each in told.tree if not each.well]
    if not subjects:
        return ()
    # The controllers' types take a moment to import.
    from steersman.controllers import CONTROLLERS
    from steersman.explain.decisions import ask_controllers

    return await ask_controllers(api, CONTROLLERS, subjects, now)


def to_yaml(document: Document) -> str:
    """The YAML of an object, without its managed fields and without the data of a Secret."""
    # Takes a moment to import, and only the page of an object needs it.
    import yaml

    text: str = yaml.safe_dump(
        redacted(without_managed_fields(document)), sort_keys=False, allow_unicode=True, width=120
    )
    return text


def redacted(document: dict[str, Any]) -> dict[str, Any]:
    """A document without what a Secret holds: the sizes of its values are left."""
    if document.get("kind") != "Secret":
        return document
    found = dict(document)
    for field in ("data", "stringData"):
        if isinstance(found.get(field), Mapping):
            encoded = field == "data"
            found[field] = {key: f"({_size(value, encoded)} bytes)" for key, value in found[field].items()}
    meta = dict(found.get("metadata") or {})
    if isinstance(meta.get("annotations"), Mapping):
        meta["annotations"] = {key: _annotation(key, value) for key, value in meta["annotations"].items()}
        found["metadata"] = meta
    return found


def _annotation(name: str, value: object) -> str:
    text = str(value)
    return f"({len(text.encode())} bytes)" if may_hold_manifest(name, value) else text


def _size(value: object, encoded: bool) -> int:
    text = value if isinstance(value, str) else str(value)
    try:
        return len(b64decode(text)) if encoded else len(text.encode())
    except (Error, ValueError):
        return len(text)
