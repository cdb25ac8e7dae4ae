"""CEL's functions on lists and maps: sizes, Kubernetes' lists, cel-go's lists and sets extensions, and optionals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from steersman.api.cel.runtime.operators import ABSENT, ADD, MAX_SIZE, compare, contains, equal, find
from steersman.api.cel.runtime.text import index_of_text, last_index_of_text
from steersman.api.cel.runtime.values import (
    NONE,
    Duration,
    EvaluationError,
    NoOverload,
    Optional,
    Uint,
    show,
)


def size(value: Any) -> int:
    """``size(x)``."""
    if isinstance(value, str | bytes | list | tuple | Mapping):
        return len(value)
    raise NoOverload("no such overload: size", bare=True)


def _list(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    raise NoOverload


def _is_sorted(items: Any) -> bool:
    items = _list(items)
    return all(compare(one, other) <= 0 for one, other in pairwise(items))


_ZEROS: Mapping[str, object] = {
    "int": 0,
    "uint": Uint(0),
    "double": 0.0,
    "google.protobuf.Duration": Duration(0),
}


def sum_from(zero: object) -> Callable[[Any], Any]:
    """``x.sum()`` of a list whose elements have a type with this zero."""

    def function(items: Any) -> Any:
        total: Any = None
        for each in _list(items):
            if total is None:
                total = each
                if type(each) not in (int, Uint, float, Duration):
                    raise NoOverload(bare=True)
                continue
            add = ADD.get((type(total), type(each)))
            if add is None:
                raise NoOverload(bare=True)
            total = add(total, each)
        return zero if total is None else total

    return function


def zero_of(type_name: str) -> object:
    """The zero of a type by its name; that of int where elements may have any type."""
    return _ZEROS.get(type_name, 0)


def _extreme(name: str, sign: int) -> Callable[[Any], Any]:
    def function(items: Any) -> Any:
        items = _list(items)
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        found = items[0]
        for each in items[1:]:
            if compare(found, each) == -sign:
                found = each
        return found

    return function


def _index_of(items: Any, value: Any, *rest: Any) -> int:
    if isinstance(items, str):
        return int(index_of_text(items, value, *rest))
    return next((index for index, each in enumerate(_list(items)) if equal(each, value)), -1)


def _last_index_of(items: Any, value: Any, *rest: Any) -> int:
    if isinstance(items, str):
        return int(last_index_of_text(items, value, *rest))
    items = _list(items)
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], value)), -1)


# -- cel-go's lists -------------------------------------------------------------------------------


def _slice(items: Any, start: Any, end: Any) -> Any:
    items = _list(items)
    if type(start) is not int or type(end) is not int:
        raise NoOverload
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: Any, depth: Any = 1) -> list[Any]:
    if type(depth) is not int:
        raise NoOverload
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    made: list[Any] = []
    for each in _list(items):
        if isinstance(each, list | tuple) and depth > 0:
            made += _flatten(each, depth - 1)
        else:
            made.append(each)
        if len(made) > MAX_SIZE:
            raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return made


def _sort_by(items: Any, keys: Any) -> list[Any]:
    items, keys = _list(items), _list(keys)
    if len(items) != len(keys):
        raise EvaluationError(
            f"@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(items)} and {len(keys)} elements respectively"
        )
    for key in keys:
        if type(key) is not type(keys[0]):
            raise EvaluationError("list elements must have the same type")
        try:
            compare(key, keys[0])
        except NoOverload:
            raise EvaluationError("list elements must be comparable") from None
    order = sorted(range(len(items)), key=cmp_to_key(lambda one, other: compare(keys[one], keys[other])))
    return [items[index] for index in order]


def _range(count: Any) -> list[int]:
    if type(count) is not int:
        raise NoOverload
    if count > MAX_SIZE:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _distinct(items: Any) -> list[Any]:
    made: list[Any] = []
    seen: set[str] = set()
    for each in _list(items):
        if type(each) is str:
            if each not in seen:
                seen.add(each)
                made.append(each)
        elif not contains(made, each):
            made.append(each)
    return made


# -- sets -----------------------------------------------------------------------------------------


def _sets_contain(items: Any, others: Any) -> bool:
    items = _list(items)
    return all(contains(items, each) for each in _list(others))


def _sets_equivalent(items: Any, others: Any) -> bool:
    return _sets_contain(items, others) and _sets_contain(others, items)


def _sets_intersect(items: Any, others: Any) -> bool:
    items = _list(items)
    return any(contains(items, each) for each in _list(others))


# -- maps and optionals ---------------------------------------------------------------------------


def map_insert(into: Any, *entry: Any) -> dict[Any, Any]:
    """Inserts a key and its value, or all entries of another map, for ``transformMap`` and ``transformMapEntry``."""
    made = into if type(into) is dict else dict(into)
    entries = entry[0].items() if len(entry) == 1 else [entry]
    for key, value in entries:
        if find(made, key) is not ABSENT:
            raise EvaluationError(f"insert failed: key {show(key)} already exists")
        made[key] = value
    return made


def _optional(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise NoOverload


def _value(value: Any) -> Any:
    optional = _optional(value)
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _is_zero(value: Any) -> bool:
    if isinstance(value, bool | int | float | str | bytes | list | tuple | Mapping):
        return not value
    if value is None:
        return True
    if isinstance(value, Duration):
        return value.nanos == 0
    return isinstance(value, Optional) and not value.present


def _unwrapped(items: Any) -> list[Any]:
    made = []
    for each in _list(items):
        if type(each) is not Optional:
            raise EvaluationError(f"value {show(each)} is not optional")
        if each.present:
            made.append(each.value)
    return made


LISTS: dict[str, Callable[..., Any]] = {
    "size": size,
    "isSorted": _is_sorted,
    "sum": sum_from(0),
    "max": _extreme("max", 1),
    "min": _extreme("min", -1),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "slice": _slice,
    "flatten": _flatten,
    "sort": lambda items: _sort_by(items, items),
    "@sortByAssociatedKeys": _sort_by,
    "lists.range": _range,
    "reverse": lambda items: list(reversed(_list(items))),
    "distinct": _distinct,
    "sets.contains": _sets_contain,
    "sets.equivalent": _sets_equivalent,
    "sets.intersects": _sets_intersect,
    "cel.@mapInsert": map_insert,
    "optional.of": lambda value: Optional(value, True),
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": lambda value: NONE if _is_zero(value) else Optional(value, True),
    "value": _value,
    "hasValue": lambda value: _optional(value).present,
    "or": lambda one, other: one if _optional(one).present else _optional(other),
    "orValue": lambda one, other: one.value if _optional(one).present else other,
    "first": lambda items: Optional(items[0], True) if _list(items) else NONE,
    "last": lambda items: Optional(items[-1], True) if _list(items) else NONE,
    "optional.unwrap": _unwrapped,
    "unwrapOpt": _unwrapped,
    # Of the environment of device selectors: whether an attribute, which may be a list, has a value.
    "includes": lambda one, other: contains(one, other) if isinstance(one, list) else equal(one, other),
}
