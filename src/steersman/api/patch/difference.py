"""Computes the strategic merge patch between two documents."""

from __future__ import annotations

from typing import Any

from steersman.api.patch.order import elements_are_objects, key_of, positions, token, unique
from steersman.api.patch.schema import DELETE_FROM, DIRECTIVE, ORDER, RETAIN, Field, Schema, find_field
from steersman.api.patch.values import Document, PatchError, format_as_go, json_equal, limits_nesting


@limits_nesting
def diff(old: Document, new: Document, schema: Schema) -> Document:
    """Return the patch from ``old`` to ``new``; empty if they are equal.

    A patch cannot set a field to null, nor a merged list with duplicate items. Raises `PatchError` if the documents
    differ in a field that the schema does not have.
    """
    return _difference(old, new, schema)


def _difference(old: Document, new: Document, schema: Schema | None, *, retain: bool = False) -> Document:
    patch: Document = {}
    for key, value in new.items():
        before: Any = old.get(key)
        if key not in old or type(before) is not type(value):
            patch[key] = value
        elif json_equal(before, value):
            continue
        elif isinstance(value, dict):
            field = find_field(schema, key)
            if field.replaces:
                patch[key] = value
            else:
                patch[key] = _difference(before, value, field.schema, retain=field.retains)
        elif isinstance(value, list) and (field := find_field(schema, key)).merges:
            patch.update(_list_difference(key, before, value, field))
        else:
            patch[key] = value
    patch.update((key, None) for key in old if key not in new)
    if retain and patch and (kept := sorted(key for key, value in new.items() if value is not None)):
        patch[RETAIN] = kept
    return patch


def _list_difference(name: str, old: list[Any], new: list[Any], field: Field) -> Document:
    """Return the patch of a merged list."""
    if not old:
        return {name: new}
    if elements_are_objects(old, new):
        if not field.key:
            raise PatchError("cannot merge lists without merge key for struct")
        changes = [*_changed(old, new, field), *_deleted(old, new, field.key)]
        gone: list[Any] = []
        order: list[Any] = [{field.key: item[field.key]} for item in new]
    else:
        before, after = positions(old, ""), positions(new, "")
        changes = [item for item in new if token(item) not in before]
        gone = sorted(unique([item for item in old if token(item) not in after]), key=format_as_go)
        order = new
    parts = {name: changes, f"{DELETE_FROM}/{name}": gone, f"{ORDER}/{name}": order}
    return {key: value for key, value in parts.items() if value}


def _changed(old: list[Any], new: list[Any], field: Field) -> list[Document]:
    """Return the patches of new and changed items, in their new order."""
    changes, before = [], positions(old, field.key)
    for item in new:
        value = key_of(item, field.key)
        was = before.get(token(value))
        if was is None:
            changes.append(item)
        elif patch := _difference(old[was], item, field.schema, retain=field.retains):
            changes.append({**patch, field.key: value})
    return changes


def _deleted(old: list[Any], new: list[Any], key: str) -> list[Document]:
    after = positions(new, key)
    values = sorted(
        (value for item in old if token(value := key_of(item, key)) not in after), key=format_as_go
    )
    return [{key: value, DIRECTIVE: "delete"} for value in values]
