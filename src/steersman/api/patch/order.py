"""Merge keys and order of the items in merged lists."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from steersman.api.patch.values import PatchError, format_as_go, wrong_type


def elements_are_objects(*lists: list[Any]) -> bool:
    """Report whether the items are objects, as opposed to scalars.

    Raises `PatchError` if their types differ, or if there are no items.
    """
    kind: type | None = None
    for items in lists:
        for item in items:
            kind = kind or type(item)
            if kind is list:
                raise PatchError("lists of lists are not supported")
            if type(item) is not kind or item is None:
                raise PatchError(f"list element types are not identical: {format_as_go(list(lists))}")
    if kind is None:
        raise PatchError("no elements in any of the given slices")
    return kind is dict


def key_of(item: Any, key: str) -> Any:
    """Return the value of an item's merge key, or the item itself if it is a scalar."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise wrong_type(dict, item)
    if key not in item:
        raise PatchError(f"map: {format_as_go(item)} does not contain declared merge key: {key}")
    return item[key]


def token(value: Any) -> Hashable:
    """Return a hashable key of a value; keys are equal exactly if the JSON is."""
    if isinstance(value, dict | list):
        return (type(value), msgspec.json.encode(value, order="sorted"))
    return (type(value), value)


def positions(items: list[Any], key: str) -> dict[Hashable, int]:
    """Return the position of each item by the `token` of its key; of duplicates the first."""
    found: dict[Hashable, int] = {}
    for i, item in enumerate(items):
        if not key:
            found.setdefault(token(item), i)
        elif not isinstance(item, dict):
            raise PatchError(f"value for key {i} is not a map")
        elif key in item:
            found.setdefault(token(item[key]), i)
    return found


def unique(items: list[Any]) -> list[Any]:
    """Return scalars without duplicates."""
    return list({token(item): item for item in reversed(items)}.values())[::-1]


def sort_like(merged: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Sort a merged list: items in ``order`` as given there, the others as in ``live``.

    The two are interleaved according to ``live``; where it does not tell, items in ``order`` come first.
    """
    wanted, before = positions(order, key), positions(live, key)
    named: list[tuple[int, int | None, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        name = token(key_of(item, key))
        was = before.get(name)
        if name in wanted:
            named.append((wanted[name], was, item))
        else:
            others.append((len(live) if was is None else was, item))
    named.sort(key=lambda entry: entry[0])
    others.sort(key=lambda entry: entry[0])
    result: list[Any] = []
    waiting = 0
    for _, was, item in named:
        while was is not None and waiting < len(others) and others[waiting][0] < was:
            result.append(others[waiting][1])
            waiting += 1
        result.append(item)
    return result + [item for _, item in others[waiting:]]
