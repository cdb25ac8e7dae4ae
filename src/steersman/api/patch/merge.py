"""Merge patch (RFC 7386): a document like the one to change, in which null means gone."""

from __future__ import annotations

from typing import Any

from steersman.api.patch.values import Document, PatchError, json_equal, limits_nesting, without_nulls


@limits_nesting
def apply(document: Document, patch: Any) -> Document:
    """The document with the patch applied; neither is changed.

    Lists are replaced whole. Raises `PatchError` if the patch is not an object.
    """
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
            # Upstream drops nulls from what is new all through, in the items of lists as well; the
            # RFC would keep those.
            result[key] = without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merged(old, value)
        else:
            result[key] = value
    return result


@limits_nesting
def diff(old: Document, new: Document) -> Document:
    """The patch that makes ``new`` of ``old``; empty if they are alike.

    A merge patch cannot say that a field is null: nulls of ``new`` come out as absent.
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
