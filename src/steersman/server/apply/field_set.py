"""Sets of fields: who owns what.

A set is a trie. Elements (see `elements`) lead from node to node, and where a path ends the node has the
element ``.``: ``{"f:spec": {"f:replicas": {".": {}}}}`` has the one path ``spec.replicas``. No node is ever
empty, so an empty set is ``{}``. Sets are values: nothing here changes one that it was given.

On the wire (``fieldsV1``) a node with nothing but its ``.`` is written without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.server.apply import path_element
from steersman.server.lru import Recent

FieldSet: TypeAlias = "dict[str, FieldSet]"

_NOTHING: FieldSet = {}
LEAF: FieldSet = {".": _NOTHING}
"""The node where one path ends and no other goes on. Shared, so never to be changed."""


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of both."""
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
    """The paths that are in both."""
    if len(other) < len(one):
        one, other = other, one
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            continue
        if element == ".":
            made["."] = _NOTHING
        elif shared := intersection(node, theirs):
            made[element] = shared
    return made


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one that are not in the other. What lies below a path is another path, and stays."""
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


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one that are neither in the other nor below a path of it."""
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            made[element] = node
        elif "." not in theirs and (rest := without(node, theirs)):
            made[element] = rest
    return made


def within(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of one that are on the way to a path of the other, or below it. ``*`` is any element."""
    made: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element, other.get("*"))
        if element == ".":
            made["."] = _NOTHING
        elif theirs is None:
            continue
        elif "." in theirs:
            made[element] = node
        elif kept := within(node, theirs):
            made[element] = kept
    return made


def of(*paths: str) -> FieldSet:
    """A set of fields by their dotted names; ``*`` is any element."""
    made: FieldSet = {}
    for path in paths:
        node = made
        for name in path.split("."):
            node = node.setdefault("*" if name == "*" else f"f:{name}", {})
        node["."] = _NOTHING
    return made


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Every path as messages write it: those that end here, then those that go on."""
    inner = [element for element in _sorted(fields) if element != "."]
    for element in inner:
        if "." in fields[element]:
            yield prefix + path_element.shown(element)
    for element in inner:
        yield from paths(fields[element], prefix + path_element.shown(element))


def has(fields: FieldSet, path: str) -> bool:
    """Whether a field, by its dotted name, is in the set."""
    node: FieldSet | None = fields
    for name in path.split("."):
        node = node.get(f"f:{name}") if node else None
    return node is not None and "." in node


# -- the wire ---------------------------------------------------------------------------------


def read(wire: Mapping[str, Any]) -> FieldSet:
    """A set from its ``fieldsV1``. Raises `ValueError` for what is none."""
    made = _node(wire)
    made.pop(".", None)  # nobody owns the object as a whole
    return made


def _node(wire: Mapping[str, Any]) -> FieldSet:
    made: FieldSet = {}
    for text, node in wire.items():
        if text == ".":
            made["."] = _NOTHING
            continue
        if not isinstance(node, Mapping):
            raise ValueError(f"no fields: {text}")
        element = path_element.normal(text)
        if element is not None:
            # What leads only to elements nobody knows counts as ending there, as upstream has it.
            made[element] = (_node(node) if node else None) or LEAF
    return made


def write(fields: FieldSet) -> dict[str, Any]:
    """The ``fieldsV1`` of a set, in order. Not to be changed: the same set is written once."""
    known = _written.get(id(fields))
    # It holds the set, so nothing else can have come to live at its address.
    if known is not None:
        return known[1]
    made = _wire(fields)
    _written.put(id(fields), (fields, made))
    return made


_written: Recent[int, tuple[FieldSet, dict[str, Any]]] = Recent(1024)
"""Of most objects one manager's fields change, and the others' are written again as they were."""


_encode = msgspec.json.Encoder().encode
_shared: Recent[bytes, FieldSet] = Recent(1024)


def shared(fields: FieldSet) -> FieldSet:
    """A set that is equal; of late ones there is one in memory, and it is written once.

    What somebody owns of one object he mostly owns of many, and a set has a dict for every step of its paths.
    """
    key = _encode(fields)
    known = _shared.get(key)
    if known is None:
        _shared.put(key, fields)
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
    # Fields are in the order of their texts and come before all others; of items there is often one.
    if not ordered or ordered[-1] < "g" or len(ordered) == 1 + ("." in fields):
        return ordered
    return sorted(fields, key=path_element.order)
