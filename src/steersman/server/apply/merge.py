"""Merges an applied document into the live one, and removes fields from a document."""

from __future__ import annotations

from collections import deque
from typing import Any

from steersman.server.apply.compare import items_by_element
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.schema import List, Map, SchemaError, TypedSchema, deduce


def merge(live: Any, applied: Any, schema: TypedSchema) -> Any:
    """The live value with all applied fields merged in; no field is removed.

    An explicit null replaces a scalar, but leaves the contents of a map or a list.
    """
    typed = deduce(schema, applied)
    if isinstance(typed, Map) and not typed.atomic:
        old = live if type(live) is dict else {}
        new = applied if type(applied) is dict else {}
        if old or new:
            return _merge_maps(typed, old, new)
    elif isinstance(typed, List) and not typed.atomic:
        listed = live if type(live) is list else []
        relisted = applied if type(applied) is list else []
        if listed or relisted:
            return _merge_lists(typed, listed, relisted)
    return applied


def _merge_maps(typed: Map, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    made = dict(live)
    for name, value in applied.items():
        made[name] = merge(live[name], value, typed.at(name)) if name in live else value
    return made


def _merge_lists(typed: List, live: list[Any], applied: list[Any]) -> list[Any]:
    """The items of both lists: shared items in applied order, live items in their place."""
    new = {element: items[0] for element, items in items_by_element(typed, applied).items()}
    if len(new) != len(applied):
        raise SchemaError("duplicate entries in an applied list")
    old = items_by_element(typed, live)
    before = [(typed.element(item), item) for item in live]
    after = list(new)
    shared = deque(element for element in after if element in old)
    made: list[Any] = []
    done: dict[str, None] = {}

    def put(element: str) -> None:
        done[element] = None
        mine = old.get(element)
        # An applied item replaces duplicate live items; it is not merged into them.
        made.append(merge(mine[0], new[element], typed.item) if mine and len(mine) == 1 else new[element])
        if shared and shared[0] == element:
            shared.popleft()

    left = right = 0
    while left < len(before) or right < len(after):
        if left < len(before):
            element, item = before[left]
            if element not in new:
                made.append(item)
                left += 1
                continue
            if right < len(after):
                if element == after[right]:
                    put(element)
                    left += 1
                    right += 1
                    continue
                if shared and shared[0] != element:
                    left += 1
                    continue
            if element in done:
                left += 1
        if right < len(after):
            put(after[right])
            right += 1
    return made


def remove(value: Any, removed: FieldSet, schema: TypedSchema) -> Any:
    """A value without some of its fields and items; None if nothing is left."""
    typed = deduce(schema, value)
    if isinstance(typed, Map):
        if typed.atomic or not value or type(value) is not dict:
            return None
        kept: dict[str, Any] = {}
        for name, part in value.items():
            marked = removed.get(f"f:{name}")
            if marked is None:
                kept[name] = part
            elif "." not in marked:
                kept[name] = remove(part, marked, typed.at(name))
        return kept or None
    if isinstance(typed, List):
        if typed.atomic or not value or type(value) is not list:
            return None
        left: list[Any] = []
        for item in value:
            marked = removed.get(typed.element(item))
            if marked is None:
                left.append(item)
            elif "." not in marked:
                left.append(remove(item, marked, typed.item))
        return left or None
    return value
