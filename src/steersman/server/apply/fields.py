"""Which fields a document speaks of, and how sets of fields follow its schema."""

from __future__ import annotations

from typing import Any

from steersman.server.apply.compare import indexed
from steersman.server.apply.field_set import LEAF, FieldSet
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, Shape, facet


def fields_in(value: Any, shape: Shape) -> FieldSet:
    """The fields a document speaks of: leaves, items, keys of maps; not the objects around them."""
    handled = facet(shape, value)
    if isinstance(handled, Map):
        return LEAF if handled.atomic else _members(handled, value if type(value) is dict else {})
    if isinstance(handled, List):
        return LEAF if handled.atomic else _items(handled, value if type(value) is list else [])
    return LEAF


def _members(handled: Map, value: dict[str, Any]) -> FieldSet:
    made: FieldSet = {}
    for name, part in value.items():
        inner = fields_in(part, handled.at(name))
        if "." not in inner and (part is None or part == {} or not handled.named(name)):
            inner = {".": {}, **inner}
        if inner:
            made[f"f:{name}"] = inner
    return made


def _items(handled: List, value: list[Any]) -> FieldSet:
    made: FieldSet = {}
    for element, items in indexed(handled, value).items():
        inner = fields_in(items[0], handled.item) if len(items) == 1 else LEAF
        made[element] = inner if "." in inner else {".": {}, **inner}
    return made


def with_named(fields: FieldSet, shape: Shape) -> FieldSet:
    """A set with the named fields that lead to its paths: those belong to nobody otherwise."""
    made: FieldSet = {}
    for element, node in fields.items():
        if element == ".":
            made["."] = node
            continue
        inner = with_named(node, _at(shape, element))
        if "." not in inner and shape.map is not None and element[0] == "f" and shape.map.named(element[2:]):
            inner = {".": {}, **inner}
        made[element] = inner
    return made


def follow(fields: FieldSet, shape: Shape) -> FieldSet:
    """A set as the schema is now: what became one atomic value since is owned as a whole."""
    made: FieldSet = {}
    for element, node in fields.items():
        if element == "." or not _known(shape, element):
            made[element] = node
            continue
        inner = _at(shape, element)
        if node is LEAF or (len(node) == 1 and "." in node):
            made[element] = node
        elif _whole(inner):
            made[element] = LEAF
        elif _open(inner):
            made[element] = node
        else:
            made[element] = follow(node, inner)
    return made


def _whole(shape: Shape) -> bool:
    if shape.map is not None:
        return shape.map.atomic
    return not shape.scalar and shape.list is not None and shape.list.atomic


def _open(shape: Shape) -> bool:
    """Whether nothing is said about a map and about what is in it."""
    return shape.map is not None and not shape.map.names and shape.map.other in (DEDUCED, UNTYPED)


def _known(shape: Shape, element: str) -> bool:
    if element[0] == "f":
        return shape.map is not None and shape.map.takes(element[2:])
    return shape.list is not None


def _at(shape: Shape, element: str) -> Shape:
    """The shape behind an element."""
    if element[0] == "f" and shape.map is not None:
        return shape.map.at(element[2:])
    if element[0] == "k" and shape.list is not None:
        return shape.list.item
    return DEDUCED if element[0] == "f" else Shape("untyped")
