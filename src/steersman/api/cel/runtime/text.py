"""CEL's functions on strings: of the standard library, of cel-go's strings extension, and Kubernetes' regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.bounded_cache import BoundedCache
from steersman.api.cel.runtime.formatting import format_string
from steersman.api.cel.runtime.operators import MAX_SIZE
from steersman.api.cel.runtime.values import EvaluationError, NoOverload
from steersman.api.go_regexp import InvalidPattern, Pattern, compile_pattern

_patterns: BoundedCache[str, Pattern | InvalidPattern] = BoundedCache(512)


def pattern_of(text: str) -> Pattern:
    """A compiled pattern. Raises `InvalidPattern`."""
    found = _patterns.get(text)
    if found is None:
        try:
            found = compile_pattern(text)
        except InvalidPattern as error:
            found = error
        _patterns.put(text, found)
    if isinstance(found, InvalidPattern):
        raise found
    return found


def matches(text: str, pattern: str) -> bool:
    """``x.matches(pattern)``."""
    try:
        return pattern_of(pattern).search(text) is not None
    except InvalidPattern as error:
        raise EvaluationError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    try:
        found: Any = pattern_of(pattern).search(text)
    except InvalidPattern as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    return "" if found is None else str(found.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    try:
        compiled: Any = pattern_of(pattern)
    except InvalidPattern as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    found: list[str] = []
    if limit == 0:
        return found
    last_end = -1
    for match in compiled.finditer(text):
        # As Go: an empty match right after a match does not count.
        if match.start() == match.end() == last_end:
            continue
        found.append(match.group())
        last_end = match.end()
        if 0 <= limit <= len(found):
            break
    return found


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return -1 if offset >= len(text) else text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if part == "":
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    return text[start:end]


_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    times = text.count(old) if old else len(text) + 1
    if times and len(text) + times * (len(new) - len(old)) > MAX_SIZE:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvaluationError(f"join: invalid input: {item}")
    return separator.join(items)


_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _takes(function: Callable[..., Any], *kinds: tuple[type, ...], bare: bool = False) -> Callable[..., Any]:
    """A function that refuses arguments of other types. The last ones may be left out where the function allows it."""

    def call(*args: Any) -> Any:
        if len(args) > len(kinds):
            raise NoOverload(bare=bare)
        for arg, accepted in zip(args, kinds, strict=False):
            if type(arg) not in accepted:
                raise NoOverload(bare=bare)
        return function(*args)

    return call


_TEXT, _INT, _LIST = (str,), (int,), (list, tuple)

TEXT: dict[str, Callable[..., Any]] = {
    "contains": _takes(lambda text, part: part in text, _TEXT, _TEXT, bare=True),
    "startsWith": _takes(str.startswith, _TEXT, _TEXT, bare=True),
    "endsWith": _takes(str.endswith, _TEXT, _TEXT, bare=True),
    "matches": _takes(matches, _TEXT, _TEXT, bare=True),
    "find": _takes(_find, _TEXT, _TEXT),
    "findAll": _takes(_find_all, _TEXT, _TEXT, _INT),
    "charAt": _takes(_char_at, _TEXT, _INT),
    "lowerAscii": _takes(lambda text: text.translate(_LOWER), _TEXT),
    "upperAscii": _takes(lambda text: text.translate(_UPPER), _TEXT),
    "trim": _takes(lambda text: text.strip(_WHITE_SPACE), _TEXT),
    "replace": _takes(_replace, _TEXT, _TEXT, _TEXT, _INT),
    "split": _takes(_split, _TEXT, _TEXT, _INT),
    "substring": _takes(_substring, _TEXT, _INT, _INT),
    "join": _takes(_join, _LIST, _TEXT),
    "format": _takes(format_string, _TEXT, _LIST),
    "strings.quote": _takes(_quote, _TEXT),
    "jsonpatch.escapeKey": _takes(lambda key: key.replace("~", "~0").replace("/", "~1"), _TEXT),
}
index_of_text = _takes(_index_of, _TEXT, _TEXT, _INT)
last_index_of_text = _takes(_last_index_of, _TEXT, _TEXT, _INT)
