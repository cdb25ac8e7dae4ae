"""Applies and computes JSON merge patches (RFC 7386), in which null deletes a field."""

from __future__ import annotations

from typing import Any

from steersman.api.patch.values import Document, PatchError, json_equal, limits_nesting, without_nulls


@limits_nesting
def apply(document: Document, patch: Any) -> Document:
    """Return the document with a patch applied. Lists are replaced. Raises `PatchError` if the patch is no object."""
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch")
    return _merged(document, patch)


def _merged(document: Document, patch: Document) -> Document:
    result = dict(document)
    for key, value in patch.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif not isinstance(old, dict):
            # Upstream drops nulls at every depth of a new value, also from items of lists; the RFC keeps those.
            result[key] = without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merged(old, value)
        else:
            result[key] = value
    return result


@limits_nesting
def diff(old: Document, new: Document) -> Document:
    """Return the patch from ``old`` to ``new``; empty if they are equal.

    A merge patch cannot set a field to null: nulls of ``new`` become absent.
    """
    return _difference(old, new)


def _difference(old: Document, new: Document) -> Document:
    patch: Document = {}
    for key, value in new.items():
        before = old.get(key)
        if key not in old:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(before, dict):
            if inner := _difference(before, value):
                patch[key] = inner
        elif not json_equal(before, value):
            patch[key] = value
    patch.update((key, None) for key in old if key not in new)
    return patch
