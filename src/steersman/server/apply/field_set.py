"""Field sets: sets of paths into a document, such as the fields a manager owns.

A set is a trie. Path elements (see `path_element`) lead from node to node, and where a path ends the node has
the element ``.``: ``{"f:spec": {"f:replicas": {".": {}}}}`` has the one path ``spec.replicas``. No node is ever
empty, so an empty set is ``{}``. Sets are values: functions here never change their arguments.

On the wire (``fieldsV1``) a node with nothing but its ``.`` is written without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.server.apply import path_element

FieldSet: TypeAlias = "dict[str, FieldSet]"

_NOTHING: FieldSet = {}
LEAF: FieldSet = {".": _NOTHING}
"""The node of a path with no longer paths below it. Shared: never change it."""


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths that are in either set."""
    if not one or one is other:
        return other
    if not other:
        return one
    made = dict(one)
    for element, node in other.items():
        mine = made.get(element)
        made[element] = node if mine is None else union(mine, node)
    return made


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths that are in both sets."""
    if len(other) < len(one):
        one, other = other, one
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            continue
        if element == ".":
            made["."] = _NOTHING
        elif interned := intersection(node, theirs):
            made[element] = interned
    return made


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one set that are not in the other. Paths below a removed path stay."""
    if not other:
        return one
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            made[element] = node
        elif element != "." and (rest := difference(node, theirs)):
            made[element] = rest
    return made


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one set that are neither in the other nor below one of its paths."""
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            made[element] = node
        elif "." not in theirs and (rest := recursive_difference(node, theirs)):
            made[element] = rest
    return made


def include(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one set that are a prefix of a path of the other, or below one. ``*`` matches any element."""
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element, other.get("*"))
        if element == ".":
            made["."] = _NOTHING
        elif theirs is None:
            continue
        elif "." in theirs:
            made[element] = node
        elif kept := include(node, theirs):
            made[element] = kept
    return made


def of(*paths: str) -> FieldSet:
    """The set of fields with these dotted names; ``*`` matches any element."""
    made: FieldSet = {}
    for path in paths:
        node = made
        for name in path.split("."):
            node = node.setdefault("*" if name == "*" else f"f:{name}", {})
        node["."] = _NOTHING
    return made


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Every path as messages print it: those of this level, then those below."""
    inner = [element for element in _sorted(fields) if element != "."]
    for element in inner:
        if "." in fields[element]:
            yield prefix + path_element.to_string(element)
    for element in inner:
        yield from paths(fields[element], prefix + path_element.to_string(element))


def has(fields: FieldSet, path: str) -> bool:
    """Whether a field, by its dotted name, is in the set."""
    node: FieldSet | None = fields
    for name in path.split("."):
        node = node.get(f"f:{name}") if node else None
    return node is not None and "." in node


# -- fieldsV1 ---------------------------------------------------------------------------------


def from_fields_v1(wire: Mapping[str, Any]) -> FieldSet:
    """The set of a ``fieldsV1`` value. Raises `ValueError` if it is malformed."""
    made = _node(wire)
    made.pop(".", None)  # the object as a whole has no manager
    return made


def _node(wire: Mapping[str, Any]) -> FieldSet:
    made: FieldSet = {}
    for text, node in wire.items():
        if text == ".":
            made["."] = _NOTHING
            continue
        if not isinstance(node, Mapping):
            raise ValueError(f"not an object of path elements: {text}")
        element = path_element.parse(text)
        if element is not None:
            # A node with unknown elements only counts as a leaf, as upstream has it.
            made[element] = (_node(node) if node else None) or LEAF
    return made


def to_fields_v1(fields: FieldSet) -> dict[str, Any]:
    """The ``fieldsV1`` of a set, in order. The result is cached: never change it."""
    known = _written.get(id(fields))
    # The cache holds the set, so no other set can have its address.
    if known is not None:
        return known[1]
    made = _wire(fields)
    _written.put(id(fields), (fields, made))
    return made


_written: BoundedCache[int, tuple[FieldSet, dict[str, Any]]] = BoundedCache(2048)
"""Encoded sets by address: a write mostly changes one manager's set, and the others are encoded again."""


_encode = msgspec.json.Encoder().encode
_shared: BoundedCache[bytes, FieldSet] = BoundedCache(2048, 4 * 1024 * 1024)


def interned(fields: FieldSet) -> FieldSet:
    """An equal set, shared with the other recent ones that are equal.

    A manager mostly owns the same fields of many objects, and a set has a dict for every element of its paths.
    """
    key = _encode(fields)
    known = _shared.get(key)
    if known is None:
        _shared.put(key, fields, len(key))
        return fields
    return known


def _wire(fields: FieldSet) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for element in _sorted(fields):
        node = fields[element]
        made[element] = {} if node is LEAF or len(node) == ("." in node) else _wire(node)
    return made


def _sorted(fields: FieldSet) -> list[str]:
    ordered = sorted(fields)
    # Field elements sort as text and come before all others; one element alone needs no sorting.
    if not ordered or ordered[-1] < "g" or len(ordered) == 1 + ("." in fields):
        return ordered
    return sorted(fields, key=path_element.sort_key)
