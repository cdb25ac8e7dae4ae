"""The last-applied annotation of client-side ``kubectl apply``.

A user who moves from client-side to server-side apply, as manager ``kubectl``, does not conflict with their own
earlier applies. The annotation is kept up to date, so that the user can move back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.server.apply import field_set
from steersman.server.apply.compare import compare
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.fields import to_field_set
from steersman.server.apply.ownership import Conflicts, Document, ResourceSchema
from steersman.server.apply.schema import SchemaError
from steersman.server.apply.validate import validate

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
_MAX_ANNOTATIONS_BYTES = 256 * 1024


def without_last_applied(conflicts: Conflicts, live: Document, resource: ResourceSchema) -> Conflicts | None:
    """The conflicts without fields the annotation shows as applied by kubectl; None if none is left."""
    mine = _still_as_last_applied(live, resource)
    left = {manager: field_set.difference(fields, mine) for manager, fields in conflicts.fields.items()}
    left = {manager: fields for manager, fields in left.items() if fields}
    return Conflicts(left) if left else None


def _still_as_last_applied(live: Document, resource: ResourceSchema) -> FieldSet:
    """The fields of the last-applied configuration whose live values are the same."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return {}
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != resource.api_version:
            return {}
        validate(last, resource.schema)
        found = to_field_set(last, resource.schema)
        for changed in compare(last, live, resource.schema):
            found = field_set.difference(found, changed)
    except (msgspec.DecodeError, SchemaError):
        return {}
    return found


def update_annotation(document: Document, patch: Document) -> Document:
    """The document with its last-applied annotation, if it has one, set to the patch."""
    annotations = _annotations(document)
    if not annotations.get(ANNOTATION):
        return document
    annotations = {**annotations, ANNOTATION: _text(patch)}
    if (
        sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
        > _MAX_ANNOTATIONS_BYTES
    ):
        del annotations[ANNOTATION]
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def _annotations(document: Document) -> dict[str, Any]:
    metadata = document.get("metadata") or {}
    return metadata.get("annotations") or {}


def _text(patch: Document) -> str:
    metadata = patch.get("metadata") or {}
    if metadata.get("annotations"):
        others = {name: value for name, value in metadata["annotations"].items() if name != ANNOTATION}
        patch = {**patch, "metadata": {**metadata, "annotations": others}}
    text = msgspec.json.encode(patch, order="sorted").decode()
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text + "\n"
