"""Coming from ``kubectl apply`` on the client's side: its last-applied annotation.

Whoever applied an object that way and now applies it here, as ``kubectl``, does not conflict with himself;
and the annotation is kept up to date, so that he can go back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.server.apply import field_set
from steersman.server.apply.compare import compare
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.fields import fields_in
from steersman.server.apply.ownership import Conflicts, Document, Terms
from steersman.server.apply.schema import ShapeError
from steersman.server.apply.validate import validate

NAME = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
_MOST = 256 * 1024


def tolerated(conflicts: Conflicts, live: Document, terms: Terms) -> Conflicts | None:
    """What is left of conflicts when those with one's former self do not count; None if nothing is."""
    mine = _formerly(live, terms)
    left = {who: field_set.difference(fields, mine) for who, fields in conflicts.fields.items()}
    left = {who: fields for who, fields in left.items() if fields}
    return Conflicts(left) if left else None


def _formerly(live: Document, terms: Terms) -> FieldSet:
    """What was last applied and is so still."""
    text = _annotations(live).get(NAME)
    if not text:
        return {}
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != terms.api_version:
            return {}
        validate(last, terms.shape)
        found = fields_in(last, terms.shape)
        for changed in compare(last, live, terms.shape):
            found = field_set.difference(found, changed)
    except (msgspec.DecodeError, ShapeError):
        return {}
    return found


def refreshed(document: Document, patch: Document) -> Document:
    """The document with its annotation saying what was applied now, where it has one."""
    annotations = _annotations(document)
    if not annotations.get(NAME):
        return document
    annotations = {**annotations, NAME: _text(patch)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _MOST:
        del annotations[NAME]
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def _annotations(document: Document) -> dict[str, Any]:
    metadata = document.get("metadata") or {}
    return metadata.get("annotations") or {}


def _text(patch: Document) -> str:
    metadata = patch.get("metadata") or {}
    if metadata.get("annotations"):
        others = {name: value for name, value in metadata["annotations"].items() if name != NAME}
        patch = {**patch, "metadata": {**metadata, "annotations": others}}
    text = msgspec.json.encode(patch, order="sorted").decode()
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text + "\n"
