"""Merging an applied document into the live one, and taking fields out of a document."""

from __future__ import annotations

from collections import deque
from typing import Any

from steersman.server.apply.compare import indexed
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.schema import List, Map, Shape, ShapeError, facet


def merge(live: Any, applied: Any, shape: Shape) -> Any:
    """The live value with all that was applied; nothing goes.

    An explicit null takes the place of a scalar, but leaves what is in a map or in a list.
    """
    handled = facet(shape, applied)
    if isinstance(handled, Map) and not handled.atomic:
        old = live if type(live) is dict else {}
        new = applied if type(applied) is dict else {}
        if old or new:
            return _maps(handled, old, new)
    elif isinstance(handled, List) and not handled.atomic:
        listed = live if type(live) is list else []
        relisted = applied if type(applied) is list else []
        if listed or relisted:
            return _lists(handled, listed, relisted)
    return applied


def _maps(handled: Map, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    made = dict(live)
    for name, value in applied.items():
        made[name] = merge(live[name], value, handled.at(name)) if name in live else value
    return made


def _lists(handled: List, live: list[Any], applied: list[Any]) -> list[Any]:
    """Items of both: shared ones in the order they were applied in, others where they stood."""
    new = {element: items[0] for element, items in indexed(handled, applied).items()}
    if len(new) != len(applied):
        raise ShapeError("duplicate entries in an applied list")
    old = indexed(handled, live)
    before = [(handled.element(item), item) for item in live]
    after = list(new)
    shared = deque(element for element in after if element in old)
    made: list[Any] = []
    done: dict[str, None] = {}

    def put(element: str) -> None:
        done[element] = None
        mine = old.get(element)
        # Doubled items are not merged into; the applied one replaces them all.
        made.append(merge(mine[0], new[element], handled.item) if mine and len(mine) == 1 else new[element])
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


def remove(value: Any, doomed: FieldSet, shape: Shape) -> Any:
    """A value without some of its fields and items; None where nothing is left of it."""
    handled = facet(shape, value)
    if isinstance(handled, Map):
        if handled.atomic or not value or type(value) is not dict:
            return None
        kept: dict[str, Any] = {}
        for name, part in value.items():
            going = doomed.get(f"f:{name}")
            if going is None:
                kept[name] = part
            elif "." not in going:
                kept[name] = remove(part, going, handled.at(name))
        return kept or None
    if isinstance(handled, List):
        if handled.atomic or not value or type(value) is not list:
            return None
        left: list[Any] = []
        for item in value:
            going = doomed.get(handled.element(item))
            if going is None:
                left.append(item)
            elif "." not in going:
                left.append(remove(item, going, handled.item))
        return left or None
    return value
