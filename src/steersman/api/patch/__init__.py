"""Applies and computes patches of plain documents: merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch.

::

    merge.apply(document, patch)                merge.diff(old, new)
    json.apply(document, operations)
    strategic.apply(document, patch, schema)    strategic.diff(old, new, schema)

Arguments are never modified; results may share parts with them.
"""

from steersman.api.patch import json, merge, strategic
from steersman.api.patch.schema import Field, Schema, schema_of
from steersman.api.patch.values import Document, PatchError, PatchTestFailed, TooManyOperations

__all__ = [
    "Document",
    "Field",
    "PatchError",
    "PatchTestFailed",
    "Schema",
    "TooManyOperations",
    "json",
    "merge",
    "schema_of",
    "strategic",
]
