"""JSONPath as custom resources use it in their columns: ``.status.conditions[?(@.type=="Ready")].status``.

Fields, indexes, slices, unions, wildcards, filters and recursive descent, in kubectl's dialect. What a
document does not have is no result; what cannot be (the third item of two, a map compared with a number)
is a `ValueError`.
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
        """All the path leads to, in order. Raises `ValueError` for what cannot be."""
        found = [document]
        for step in self._steps:
            found = step(found)
        return found


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """A path from its text. Raises `ValueError` for what is none."""
    return Path(text, _Reader(text).steps())


class _Reader:
    """Turns a text into steps, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        while self._place < len(self._text):
            steps = self._next()
            # Descending from all there is below leads nowhere new, and there again and again.
            if found[-1:] == steps[:1] == [_descend]:
                raise ValueError(f"invalid multiple recursive descent in path {self._text!r}")
            found += steps
        return tuple(found)

    def _next(self) -> list[Step]:
        if self._take("[?("):
            return [self._filter()]
        if self._take(".."):
            word = self._match(_FIELD)
            return [_descend, *([_field(word)] if word else ())]
        sign = self._text[self._place]
        self._place += 1
        if sign in " @$":
            return []
        if sign == "[":
            return self._brackets()
        if sign in "\"'":
            return [_constant(self._quoted(sign))]
        if sign == ".":
            return [_field(self._match(_FIELD))]
        self._place -= 1
        if sign in "+-" or sign.isdecimal():
            return [_constant(_number(self._match(_NUMBER)))]
        word = self._match(_FIELD)
        if word in ("true", "false"):
            return [_constant(word == "true")]
        raise ValueError(f"unrecognized {word or sign!r} in path {self._text!r}")

    def _take(self, prefix: str) -> bool:
        found = self._text.startswith(prefix, self._place)
        self._place += len(prefix) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._place)
        assert match is not None  # these patterns match the empty text
        self._place = match.end()
        return match[0]

    def _until(self, end: str) -> str:
        place = self._text.find(end, self._place)
        if place < 0:
            raise ValueError(f"no {end!r} in path {self._text!r}")
        text = self._text[self._place : place]
        self._place = place + len(end)
        return text

    def _quoted(self, quote: str) -> str:
        text = ""
        while True:
            text += self._until(quote)
            if not text.endswith("\\"):
                return re.sub(r"\\(.)", r"\1", text)
            text += quote

    def _brackets(self) -> list[Step]:
        return _inside(self._until("]"))

    def _filter(self) -> Step:
        """``[?(left operator right)]``: the items for which it holds."""
        start = self._place
        quote, end = "", -1
        for place in range(start, len(self._text)):
            sign = self._text[place]
            if quote:
                if sign == quote and self._text[place - 1] != "\\":
                    quote = ""
            elif sign in "\"'":
                quote = sign
            elif sign == ")":
                end = place
                break
        if end < 0 or not self._text.startswith(")]", end):
            raise ValueError(f"unterminated filter in path {self._text!r}")
        self._place = end + 2
        inside = self._text[start:end]
        match = _FILTER.fullmatch(inside)
        if match is None:
            return _having(compile_path(inside))
        if match[2] not in _COMPARISONS:
            raise ValueError(f"unrecognized filter operator {match[2]}")
        return _where(compile_path(match[1]), match[2], compile_path(match[3]))


def _inside(text: str) -> list[Step]:
    """What stands between brackets."""
    if "," in text:
        parts = [_inside(part.strip(" ")) for part in text.split(",")]
        return [_union(parts)]
    if text == "*":
        text = ":"
    if (key := _KEY.fullmatch(text)) is not None:
        return list(_Reader(f".{key[1]}").steps())
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"invalid array index {text}")
    first, last, step = (
        None if part in (None, "", ":") else int(part.lstrip(":")) for part in match.groups()
    )
    if match[2] is None:
        return [_item(first or 0)]
    return [_slice(first, last, 1 if step is None else step)]


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


# -- steps ------------------------------------------------------------------------------------


def _field(name: str) -> Step:
    if name == "*":
        return _children
    name = name.replace("\\", "")
    return lambda found: [each[name] for each in found if isinstance(each, Mapping) and name in each]


def _children(found: list[Any]) -> list[Any]:
    return [child for each in found for child in _below(each)]


def _below(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _descend(found: list[Any]) -> list[Any]:
    """All objects and lists that are not empty, outer before inner."""
    reached, todo = [], found[::-1]
    while todo:
        value = todo.pop()
        if below := _below(value):
            reached.append(value)
            todo += below[::-1]
    return reached


def _lists(found: list[Any]) -> list[Any]:
    lists = [each for each in found if each is not None]
    if not all(isinstance(each, (list, tuple)) for each in lists):
        raise ValueError("not an array")
    return lists


def _item(index: int) -> Step:
    def step(found: list[Any]) -> list[Any]:
        lists = _lists(found)
        if not all(-len(each) <= index < len(each) for each in lists):
            raise ValueError(f"array index out of bounds: index {index}")
        return [each[index] for each in lists]

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

    return lambda found: [item for each in _lists(found) for item in cut(each)]


def _union(parts: list[list[Step]]) -> Step:
    def step(found: list[Any]) -> list[Any]:
        reached: list[Any] = []
        for part in parts:
            values = found
            for each in part:
                values = each(values)
            reached += values
        return reached

    return step


def _constant(value: Any) -> Step:
    return lambda found: [value]


def _having(path: Path) -> Step:
    return lambda found: [item for each in _lists(found) for item in each if path.find(item)]


def _where(left: Path, sign: str, right: Path) -> Step:
    compare = _COMPARISONS[sign]

    def holds(item: Any) -> bool:
        ours = left.find(item)
        theirs = right.find(item) if ours else []
        if not theirs:
            return False
        if len(ours) > 1 or len(theirs) > 1:
            raise ValueError("can only compare one element at a time")
        if type(ours[0]) is not type(theirs[0]) or type(ours[0]) not in (str, int, float, bool):
            raise ValueError("incompatible types for comparison")
        return compare(ours[0], theirs[0])

    return lambda found: [item for each in _lists(found) for item in each if holds(item)]
