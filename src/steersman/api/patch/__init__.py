"""Patches, on plain documents: merge (RFC 7386), JSON (RFC 6902) and strategic merge.

::

    merge.apply(document, patch)                merge.diff(old, new)
    json.apply(document, operations)
    strategic.apply(document, patch, schema)    strategic.diff(old, new, schema)

Nothing given is ever changed; results may share parts with what was given.
"""

from steersman.api.patch import json, merge, strategic
from steersman.api.patch.schema import Field, Schema, schema_of
from steersman.api.patch.values import Document, PatchError, TooManyOperations

__all__ = [
    "Document",
    "Field",
    "PatchError",
    "Schema",
    "TooManyOperations",
    "json",
    "merge",
    "schema_of",
    "strategic",
]
