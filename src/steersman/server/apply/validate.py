"""Whether a document has the shape it should, in the words of upstream's structured merge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.server.apply import path_element
from steersman.server.apply.schema import List, Map, Scalar, Shape, ShapeError, facet


def validate(document: Any, shape: Shape, *, duplicates: bool = False) -> None:
    """Raises `ShapeError` for a document of another shape.

    ``duplicates`` allows several items of one key, which live objects may have and applied ones may not.
    """
    wrong = list(_wrong(document, shape, "", duplicates))
    if wrong:
        raise ShapeError(wrong[0] if len(wrong) == 1 else "\n  ".join(("errors:", *wrong)))


def _wrong(value: Any, shape: Shape, path: str, duplicates: bool) -> Iterator[str]:
    handled = facet(shape, value)
    says = ""
    if handled is None:
        says = _scalar(shape.scalar, value)
    elif value is None:
        return
    elif isinstance(handled, Map):
        if type(value) is dict:
            yield from _map(handled, value, path, duplicates)
            return
        says = f"expected map, got &{{{_shown(value)}}}"
    elif type(value) is list:
        yield from _list(handled, value, path, duplicates)
        return
    else:
        says = f"expected list, got &{{{_shown(value)}}}"
    if says:
        yield f"{path}: {says}" if path else says


def _map(handled: Map, value: dict[str, Any], path: str, duplicates: bool) -> Iterator[str]:
    for name, part in value.items():
        if not handled.takes(name):
            yield f"{path}.{name}: field not declared in schema"
            return
        yield from _wrong(part, handled.at(name), f"{path}.{name}", duplicates)


def _list(handled: List, value: list[Any], path: str, duplicates: bool) -> Iterator[str]:
    seen: dict[str, None] = {}
    where = f"{path}: " if path else ""
    for index, item in enumerate(value):
        if handled.atomic:
            yield from _wrong(item, handled.item, f"{path}[{index}]", duplicates)
            continue
        try:
            element = handled.element(item)
        except ShapeError as error:
            yield f"{where}element {index}: {error}"
            return
        if element in seen and not duplicates:
            yield f"{where}duplicate entries for key {path_element.shown(element)}"
        seen[element] = None
        yield from _wrong(item, handled.item, path + path_element.shown(element), duplicates)


def _scalar(sort: Scalar, value: Any) -> str:
    if value is None:
        return ""
    if sort == "numeric" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return f"expected numeric (int or float), got {_type(value)}"
    if sort == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_shown(value)}}}"
    if sort == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{_shown(value)}}}"
    if sort == "untyped" and isinstance(value, (dict, list)):
        return f"expected any scalar, got &{{{_shown(value)}}}"
    return ""


def _type(value: Any) -> str:
    """The Go type of a value, as upstream's messages have it."""
    for sort, name in _GO_TYPES:
        if isinstance(value, sort):
            return name
    return "<nil>"


_GO_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
    (str, "string"),
    (dict, "map[string]interface {}"),
    (list, "[]interface {}"),
)


def _shown(value: Any) -> str:
    """A value as Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_shown(part)}' for name, part in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    return "<nil>" if value is None else str(value)
