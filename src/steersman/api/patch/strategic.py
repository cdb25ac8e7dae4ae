"""Applies strategic merge patches: merge patches that merge lists by the schema, and have directives.

The directives are ``$patch: replace | delete`` in an object or a list item, ``$retainKeys`` in an object, and
``$deleteFromPrimitiveList/<list>`` and ``$setElementOrder/<list>`` beside a list.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from steersman.api.patch.difference import diff
from steersman.api.patch.order import elements_are_objects, key_of, positions, sort_like, token, unique
from steersman.api.patch.schema import DELETE_FROM, DIRECTIVE, ORDER, RETAIN, Field, Schema, find_field
from steersman.api.patch.values import (
    Document,
    PatchError,
    format_as_go,
    limits_nesting,
    type_name,
    wrong_type,
)

__all__ = ["apply", "diff"]

BAD_RETAIN = "invalid patch format of retainKeys"
BAD_DELETE = "invalid patch format of primitive list"
BAD_ORDER = "invalid patch format of setElementOrder list"


@limits_nesting
def apply(document: Document, patch: Document, schema: Schema) -> Document:
    """Return the document with a patch applied. Raises `PatchError` for a patch that does not fit the schema."""
    return _merged(document, patch, schema)


def _merged(document: Document, patch: Document, schema: Schema | None) -> Document:
    if DIRECTIVE in patch:
        match patch[DIRECTIVE]:
            case "replace":
                return dict(
                    _without_directives({key: value for key, value in patch.items() if key != DIRECTIVE})
                )
            case "delete":
                return {}
            case other:
                raise _unknown(other, patch)
    result, patch = _retained(document, patch)
    # Additions come first, so that an item that is both added and removed is removed.
    result, patch = _ordered(result, patch, schema)
    removals: Document = {}
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            removals[_listed(key, DELETE_FROM, BAD_DELETE)] = value
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            field = find_field(schema, key)
            result[key] = (
                _without_directives(value) if field.replaces else _merged(result[key], value, field.schema)
            )
        elif isinstance(value, list) and isinstance(result.get(key), list):
            result[key] = _merged_list(result[key], value, find_field(schema, key))
        elif _has_directive(value):
            result.pop(key, None)
        else:
            result[key] = _without_directives(value)
    for key, value in removals.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list) and isinstance(result.get(key), list):
            result[key] = _removed(result[key], value)
    return result


def _without_directives(value: Any) -> Any:
    """Return a value of a patch without nulls and directives.

    differs: upstream leaves some of them in, and relies on types that drop them.
    """
    if isinstance(value, dict):
        return {
            key: _without_directives(child)
            for key, child in value.items()
            if child is not None
            and not _has_directive(child)
            and key != RETAIN
            and not key.startswith((DELETE_FROM, ORDER))
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _retained(document: Document, patch: Document) -> tuple[Document, Document]:
    """Apply ``$retainKeys``: return the document with the retained keys, and the patch without the directive."""
    if RETAIN not in patch:
        return dict(document), patch
    keys = patch[RETAIN]
    patch = {key: value for key, value in patch.items() if key != RETAIN}
    if not isinstance(keys, list):
        raise PatchError(BAD_RETAIN)
    retained = {key for key in keys if isinstance(key, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, ORDER)) and key not in retained:
            raise PatchError(BAD_RETAIN)
    return {key: value for key, value in document.items() if key in retained}, patch


# -- lists ------------------------------------------------------------------------------------


def _ordered(document: Document, patch: Document, schema: Schema | None) -> tuple[Document, Document]:
    """Apply ``$setElementOrder``: return the document with those lists patched, and the rest of the patch."""
    orders = {key: value for key, value in patch.items() if key.startswith(ORDER)}
    if not orders:
        return document, patch
    patch = {key: value for key, value in patch.items() if key not in orders}
    for directive, order in orders.items():
        if not isinstance(order, list):
            raise wrong_type(list, order)
        name = _listed(directive, ORDER, BAD_ORDER)
        for holder in (document, patch):
            if name in holder and not isinstance(holder[name], list):
                raise wrong_type(list, holder[name])
        field = find_field(schema, name)
        live, change = document.get(name), patch.pop(name, None)
        if change is not None:
            _check_order(change, order, field.key)
        if live is None and change is None:
            continue
        for item in order:
            key_of(item, field.key)
        if change is None:
            merged = live or []
        elif live is None:
            merged = _without_directives(change)
        else:
            merged = _merged_list(live, change, field)
        elements_are_objects(live or [], change or [])
        document[name] = sort_like(merged, order, live or [], field.key)
    return document, patch


def _check_order(change: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of a patch are part of ``$setElementOrder``, in the same order."""
    if not order or not change:
        return
    ordered = iter(order)
    for item in change:
        if key and not isinstance(item, dict):
            raise wrong_type(dict, item)
        if _has_directive(item):
            continue
        name = token(key_of(item, key))
        if not any(token(key_of(place, key)) == name for place in ordered):
            raise PatchError(
                f"The order in patch list:\n{format_as_go(change)}\n doesn't match {ORDER} list:\n{format_as_go(order)}\n"
            )


def _merged_list(live: list[Any], change: list[Any], field: Field) -> list[Any]:
    if not field.merges:
        return list(_without_directives(change))
    if not live and not change:
        return live
    if not elements_are_objects(live, change):
        return sort_like(unique([*live, *change]), change, live, "")
    if not field.key:
        raise PatchError("cannot merge lists without merge key for struct")
    live, change = _directed(live, change, field.key)
    merged, at = list(live), positions(live, field.key)
    for item in change:
        found = at.setdefault(token(key_of(item, field.key)), len(merged))
        if found == len(merged):
            merged.append(_without_directives(item))
        else:
            merged[found] = _merged(merged[found], item, field.schema)
    return sort_like(merged, change, live, field.key)


def _directed(live: list[Any], change: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply ``$patch`` of list items: return the live items that are left, and the changes without directives."""
    plain: list[Any] = []
    gone: set[Hashable] = set()
    replace = False
    for item in change:
        match item.get(DIRECTIVE):
            case None if DIRECTIVE not in item:
                plain.append(item)
            case "delete":
                gone.add(token(key_of(item, key)))
            case "replace":
                replace = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case other:
                raise _unknown(other, item)
    if replace:
        return plain, []
    return [item for item in live if key not in item or token(item[key]) not in gone], plain


def _removed(live: list[Any], removed: list[Any]) -> list[Any]:
    if (live or removed) and elements_are_objects(live, removed):
        raise PatchError(BAD_DELETE)
    gone = positions(removed, "")
    return [item for item in live if token(item) not in gone]


def _listed(directive: str, prefix: str, error: str) -> str:
    """Return the list that a directive beside it names."""
    head, slash, name = directive.partition("/")
    if head != prefix or not slash:
        raise PatchError(error)
    return name


def _unknown(directive: Any, patch: Document) -> PatchError:
    name = (
        directive if isinstance(directive, str) else f"%!s({type_name(directive)}={format_as_go(directive)})"
    )
    return PatchError(f"unknown patch type: {name} in map: {format_as_go(patch)}")
