"""JSONPath as custom resources use it in their columns: ``.status.conditions[?(@.type=="Ready")].status``.

Fields, indexes, slices, unions, wildcards, filters and recursive descent, in kubectl's dialect. A field that
is absent gives no result. An index out of bounds or a comparison of unlike types raises `ValueError`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[list[Any]], list[Any]]

_FIELD = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9.]*")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_FILTER = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Path:
    """A compiled path."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: tuple[Step, ...]) -> None:
        self.text = text
        self._steps = steps

    def find(self, document: Any) -> list[Any]:
        """The values at the path, in order. Raises `ValueError` where an index or a comparison is impossible."""
        nodes = [document]
        for step in self._steps:
            nodes = step(nodes)
        return nodes


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """Compiles a path. Raises `ValueError` where its syntax is invalid."""
    return Path(text, _Parser(text).steps())


class _Parser:
    """Parses the text of a path into steps, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def steps(self) -> tuple[Step, ...]:
        nodes: list[Step] = []
        while self._position < len(self._text):
            steps = self._next()
            # A second descent would only repeat the results of the first.
            if nodes[-1:] == steps[:1] == [_recursive_descent]:
                raise ValueError(f"invalid multiple recursive descent in path {self._text!r}")
            nodes += steps
        return tuple(nodes)

    def _next(self) -> list[Step]:
        if self._take("[?("):
            return [self._filter()]
        if self._take(".."):
            name = self._match(_FIELD)
            return [_recursive_descent, *([_field(name)] if name else ())]
        char = self._text[self._position]
        self._position += 1
        if char in " @$":
            return []
        if char == "[":
            return self._brackets()
        if char in "\"'":
            return [_constant(self._quoted(char))]
        if char == ".":
            return [_field(self._match(_FIELD))]
        self._position -= 1
        if char in "+-" or char.isdecimal():
            return [_constant(_parse_number(self._match(_NUMBER)))]
        name = self._match(_FIELD)
        if name in ("true", "false"):
            return [_constant(name == "true")]
        raise ValueError(f"unrecognized {name or char!r} in path {self._text!r}")

    def _take(self, prefix: str) -> bool:
        nodes = self._text.startswith(prefix, self._position)
        self._position += len(prefix) if nodes else 0
        return nodes

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        assert match is not None  # these patterns match the empty text
        self._position = match.end()
        return match[0]

    def _until(self, end: str) -> str:
        position = self._text.find(end, self._position)
        if position < 0:
            raise ValueError(f"no {end!r} in path {self._text!r}")
        text = self._text[self._position : position]
        self._position = position + len(end)
        return text

    def _quoted(self, quote: str) -> str:
        text = ""
        while True:
            text += self._until(quote)
            if not text.endswith("\\"):
                return re.sub(r"\\(.)", r"\1", text)
            text += quote

    def _brackets(self) -> list[Step]:
        return _parse_brackets(self._until("]"))

    def _filter(self) -> Step:
        """Parses ``[?(left operator right)]``, which selects the items for which the comparison holds."""
        start = self._position
        quote, end = "", -1
        for position in range(start, len(self._text)):
            char = self._text[position]
            if quote:
                if char == quote and self._text[position - 1] != "\\":
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == ")":
                end = position
                break
        if end < 0 or not self._text.startswith(")]", end):
            raise ValueError(f"unterminated filter in path {self._text!r}")
        self._position = end + 2
        inside = self._text[start:end]
        match = _FILTER.fullmatch(inside)
        if match is None:
            return _exists_filter(compile_path(inside))
        if match[2] not in _COMPARISONS:
            raise ValueError(f"unrecognized filter operator {match[2]}")
        return _comparison_filter(compile_path(match[1]), match[2], compile_path(match[3]))


def _parse_brackets(text: str) -> list[Step]:
    """Parses the content of brackets: a union, a wildcard, a key, an index or a slice."""
    if "," in text:
        parts = [_parse_brackets(part.strip(" ")) for part in text.split(",")]
        return [_union(parts)]
    if text == "*":
        text = ":"
    if (key := _KEY.fullmatch(text)) is not None:
        return list(_Parser(f".{key[1]}").steps())
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"invalid array index {text}")
    first, last, step = (
        None if part in (None, "", ":") else int(part.lstrip(":")) for part in match.groups()
    )
    if match[2] is None:
        return [_item(first or 0)]
    return [_slice(first, last, 1 if step is None else step)]


def _parse_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


# -- steps ------------------------------------------------------------------------------------


def _field(name: str) -> Step:
    if name == "*":
        return _children
    name = name.replace("\\", "")
    return lambda nodes: [value[name] for value in nodes if isinstance(value, Mapping) and name in value]


def _children(nodes: list[Any]) -> list[Any]:
    return [child for value in nodes for child in _children_of(value)]


def _children_of(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _recursive_descent(nodes: list[Any]) -> list[Any]:
    """All objects and lists that are not empty, outer ones first."""
    result, stack = [], nodes[::-1]
    while stack:
        value = stack.pop()
        if children := _children_of(value):
            result.append(value)
            stack += children[::-1]
    return result


def _require_lists(nodes: list[Any]) -> list[Any]:
    lists = [value for value in nodes if value is not None]
    if not all(isinstance(value, (list, tuple)) for value in lists):
        raise ValueError("not an array")
    return lists


def _item(index: int) -> Step:
    def step(nodes: list[Any]) -> list[Any]:
        lists = _require_lists(nodes)
        if not all(-len(value) <= index < len(value) for value in lists):
            raise ValueError(f"array index out of bounds: index {index}")
        return [value[index] for value in lists]

    return step


def _slice(first: int | None, last: int | None, by: int) -> Step:
    def cut(values: list[Any]) -> list[Any]:
        size = len(values)
        start = 0 if first is None else first + size if first < 0 else first
        end = size if last is None else last + size if last < 0 else last
        if start == end:
            return []
        if not (0 <= start < size and start < end <= size and by > 0):
            raise ValueError(f"array index out of bounds: [{start}:{end}:{by}] of {size}")
        return list(values[start:end:by])

    return lambda nodes: [item for value in _require_lists(nodes) for item in cut(value)]


def _union(parts: list[list[Step]]) -> Step:
    def step(nodes: list[Any]) -> list[Any]:
        result: list[Any] = []
        for part in parts:
            values = nodes
            for value in part:
                values = value(values)
            result += values
        return result

    return step


def _constant(value: Any) -> Step:
    return lambda nodes: [value]


def _exists_filter(path: Path) -> Step:
    return lambda nodes: [item for value in _require_lists(nodes) for item in value if path.find(item)]


def _comparison_filter(left: Path, char: str, right: Path) -> Step:
    compare = _COMPARISONS[char]

    def holds(item: Any) -> bool:
        left_values = left.find(item)
        right_values = right.find(item) if left_values else []
        if not right_values:
            return False
        if len(left_values) > 1 or len(right_values) > 1:
            raise ValueError("can only compare one element at a time")
        if type(left_values[0]) is not type(right_values[0]) or type(left_values[0]) not in (
            str,
            int,
            float,
            bool,
        ):
            raise ValueError("incompatible types for comparison")
        return compare(left_values[0], right_values[0])

    return lambda nodes: [item for value in _require_lists(nodes) for item in value if holds(item)]
