"""What changed from one document to another, as sets of fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.server.apply.field_set import LEAF, FieldSet
from steersman.server.apply.schema import List, Map, Shape, facet


class Comparison(NamedTuple):
    """No path is in two of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def changed(self) -> bool:
        return bool(self.removed or self.modified or self.added)


def compare(old: Any, new: Any, shape: Shape) -> Comparison:
    """The fields that are gone, different and new."""
    found = Comparison({}, {}, {})
    _compare(old, new, shape, found)
    return found


def _compare(old: Any, new: Any, shape: Shape, found: Comparison) -> None:
    # Typed fields cannot turn from true to 1.
    # differs: fields without a type can, and upstream calls that a change
    if old is new or old == new:
        return
    before, after = facet(shape, old), facet(shape, new)
    _as(before, old, new, found)
    if after is not before:
        _as(after, old, new, found)


def _as(handled: Map | List | None, old: Any, new: Any, found: Comparison) -> None:
    if isinstance(handled, Map):
        left, right = _dict(old), _dict(new)
        if not handled.atomic and (left or right):
            _maps(handled, left, right, found)
            return
    elif isinstance(handled, List):
        listed, relisted = _list(old), _list(new)
        if not handled.atomic and (listed or relisted):
            _lists(handled, listed, relisted, found)
            return
    found.modified["."] = {}


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _maps(handled: Map, old: dict[str, Any], new: dict[str, Any], found: Comparison) -> None:
    for name, value in old.items():
        if name in new:
            other = new[name]
            if value is not other and value != other:
                _below(f"f:{name}", value, other, handled.at(name), found)
        else:
            found.removed[f"f:{name}"] = everything(value, handled.at(name))
    for name, value in new.items():
        if name not in old:
            found.added[f"f:{name}"] = everything(value, handled.at(name))


def _below(element: str, old: Any, new: Any, shape: Shape, found: Comparison) -> None:
    inner = compare(old, new, shape)
    for whole, part in zip(found, inner, strict=True):
        if part:
            whole[element] = part


def _lists(handled: List, old: list[Any], new: list[Any], found: Comparison) -> None:
    before, after = indexed(handled, old), indexed(handled, new)
    shape = handled.item
    for element in dict.fromkeys((*before, *after)):
        left, right = before.get(element, []), after.get(element, [])
        if len(left) <= 1 and len(right) <= 1:
            if not right:
                found.removed[element] = everything(left[0], shape)
            elif not left:
                found.added[element] = everything(right[0], shape)
            else:
                _below(element, left[0], right[0], shape, found)
            continue
        # Items that are there several times are owned together, by their key alone.
        if len(left) > 1 and len(right) > 1:
            if left != right:
                found.modified[element] = LEAF
        elif len(left) > 1:
            found.removed[element] = LEAF
            if right:
                found.added[element] = everything(right[0], shape)
        else:
            if left:
                found.removed[element] = everything(left[0], shape)
            found.added[element] = LEAF


def indexed(handled: List, items: list[Any]) -> dict[str, list[Any]]:
    """The items of a list by what tells them apart. Raises `ShapeError` where nothing does."""
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(handled.element(item), []).append(item)
    return found


def everything(value: Any, shape: Shape) -> FieldSet:
    """All paths of a value, its own included: what is added with it, or goes with it."""
    handled = facet(shape, value)
    if isinstance(handled, Map):
        if handled.atomic or not value or type(value) is not dict:
            return LEAF
        made: FieldSet = {".": {}}
        for name, part in value.items():
            made[f"f:{name}"] = everything(part, handled.at(name))
        return made
    if isinstance(handled, List):
        if handled.atomic or not value or type(value) is not list:
            return LEAF
        made = {".": {}}
        for element, items in indexed(handled, value).items():
            made[element] = everything(items[0], handled.item) if len(items) == 1 else LEAF
        return made
    return LEAF
