"""The page of one object: its explanation, owner graph, timeline, events, conditions and YAML."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from steersman.client.api import Api
from steersman.dashboard import graph, timeline
from steersman.dashboard.kinds import without_managed_fields
from steersman.dashboard.summaries import summarize
from steersman.explain import render
from steersman.explain.asking import Question, investigate
from steersman.explain.model import Document

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a whole manifest, with the data of a Secret."""


async def object_page(api: Api, question: Question, now: datetime) -> dict[str, Any]:
    """The page of an object. Raises `steersman.explain.collect.UnknownKind`, `NotFound` or another `ApiError`."""
    told, document, snapshot = await investigate(api, question, now)
    around = graph.build(snapshot, document)
    return {
        "summary": summarize(document),
        "explanation": render.document(told),
        "text": render.text(told),
        "graph": around.json(),
        "timeline": timeline.build(snapshot, document, around.documents.keys()),
        "events": timeline.events(snapshot, document),
        "conditions": timeline.conditions(document),
        "yaml": to_yaml(document),
    }


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
    annotations = dict(meta.get("annotations") or {})
    if LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = f"({len(str(annotations[LAST_APPLIED]))} bytes)"
        meta["annotations"] = annotations
        found["metadata"] = meta
    return found


def _size(value: object, encoded: bool) -> int:
    text = value if isinstance(value, str) else str(value)
    try:
        return len(b64decode(text)) if encoded else len(text.encode())
    except (Error, ValueError):
        return len(text)
