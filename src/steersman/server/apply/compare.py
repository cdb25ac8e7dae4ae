"""Compares two documents: the removed, modified and added fields, as field sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.server.apply.field_set import LEAF, FieldSet
from steersman.server.apply.schema import List, Map, TypedSchema, deduce


class Comparison(NamedTuple):
    """The result of comparing two documents. No path is in two of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def changed(self) -> bool:
        return bool(self.removed or self.modified or self.added)


def compare(old: Any, new: Any, schema: TypedSchema) -> Comparison:
    """The fields that were removed, modified and added."""
    found = Comparison({}, {}, {})
    _compare(old, new, schema, found)
    return found


def _compare(old: Any, new: Any, schema: TypedSchema, found: Comparison) -> None:
    if same_value(old, new):
        return
    before, after = deduce(schema, old), deduce(schema, new)
    _compare_as(before, old, new, found)
    if after is not before:
        _compare_as(after, old, new, found)


def _compare_as(typed: Map | List | None, old: Any, new: Any, found: Comparison) -> None:
    if isinstance(typed, Map):
        left, right = _dict(old), _dict(new)
        if not typed.atomic and (left or right):
            _compare_maps(typed, left, right, found)
            return
    elif isinstance(typed, List):
        listed, relisted = _list(old), _list(new)
        if not typed.atomic and (listed or relisted):
            _compare_lists(typed, listed, relisted, found)
            return
    found.modified["."] = {}


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, but true, which equals both in Python, is another."""
    return one is other or (one == other and not _differing_flags(one, other))


def _differing_flags(one: Any, other: Any) -> bool:
    """Whether two values that are equal in Python have true where the other has 1, or false where it has 0."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if isinstance(one, dict):
            pairs.extend((value, other[name]) for name, value in one.items())
        elif isinstance(one, (list, tuple)):
            pairs.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) is not isinstance(other, bool):
            return True
    return False


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _compare_maps(typed: Map, old: dict[str, Any], new: dict[str, Any], found: Comparison) -> None:
    for name, value in old.items():
        if name in new:
            other = new[name]
            if not same_value(value, other):
                _compare_child(f"f:{name}", value, other, typed.at(name), found)
        else:
            found.removed[f"f:{name}"] = all_paths(value, typed.at(name))
    for name, value in new.items():
        if name not in old:
            found.added[f"f:{name}"] = all_paths(value, typed.at(name))


def _compare_child(element: str, old: Any, new: Any, schema: TypedSchema, found: Comparison) -> None:
    inner = compare(old, new, schema)
    for whole, part in zip(found, inner, strict=True):
        if part:
            whole[element] = part


def _compare_lists(typed: List, old: list[Any], new: list[Any], found: Comparison) -> None:
    before, after = items_by_element(typed, old), items_by_element(typed, new)
    schema = typed.item
    for element in dict.fromkeys((*before, *after)):
        left, right = before.get(element, []), after.get(element, [])
        if len(left) <= 1 and len(right) <= 1:
            if not right:
                found.removed[element] = all_paths(left[0], schema)
            elif not left:
                found.added[element] = all_paths(right[0], schema)
            else:
                _compare_child(element, left[0], right[0], schema, found)
            continue
        # Duplicate items are owned together, by their path element alone.
        if len(left) > 1 and len(right) > 1:
            if not same_value(left, right):
                found.modified[element] = LEAF
        elif len(left) > 1:
            found.removed[element] = LEAF
            if right:
                found.added[element] = all_paths(right[0], schema)
        else:
            if left:
                found.removed[element] = all_paths(left[0], schema)
            found.added[element] = LEAF


def items_by_element(typed: List, items: list[Any]) -> dict[str, list[Any]]:
    """The items of a list by path element. Raises `SchemaError` for an item that has none."""
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(typed.element(item), []).append(item)
    return found


def all_paths(value: Any, schema: TypedSchema) -> FieldSet:
    """All paths of a value, its own included: the fields added or removed with it."""
    typed = deduce(schema, value)
    if isinstance(typed, Map):
        if typed.atomic or not value or type(value) is not dict:
            return LEAF
        made: FieldSet = {".": {}}
        for name, part in value.items():
            made[f"f:{name}"] = all_paths(part, typed.at(name))
        return made
    if isinstance(typed, List):
        if typed.atomic or not value or type(value) is not list:
            return LEAF
        made = {".": {}}
        for element, items in items_by_element(typed, value).items():
            made[element] = all_paths(items[0], typed.item) if len(items) == 1 else LEAF
        return made
    return LEAF
