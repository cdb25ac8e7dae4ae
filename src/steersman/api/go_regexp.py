r"""Regular expressions of schemas, matched by RE2 as in Go: in time linear in the text, whatever the pattern is.

The errors for invalid patterns are those of Go's regexp package, which parses the same syntax.

differs: names of Unicode classes are spelled as in the standard; Go 1.25 also finds ``\p{gREEK}`` and ``\p{Letter}``.
"""

from __future__ import annotations

import re
from typing import Protocol

_MAX_MEMORY = 4 << 20
"""Bytes that RE2 may use for one pattern; the library keeps the last 128.

differs: Go's limit for the size of a pattern is higher.
"""

_CODES = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""The errors that Go words in another way than RE2's C++ library."""

_BYTE = "\\C"
"""Matches one byte in C++. Go does not have it, since half a character is no text."""
_HUGE_COUNT = re.compile(r"\{(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*)?)?\}")
_CHARACTER_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?[a-z]+:\]|[^\]])*\]")
_MAX_COUNT_DIGITS = 8
"""Digits of a count; C++ takes a longer one for text, and Go refuses it."""
_ESCAPES_AND_QUOTES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\[^CQ]", re.DOTALL)


class InvalidPattern(ValueError):
    """A pattern that Go refuses. The message is Go's."""

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{where}`")


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str | bytes) -> object | None:
        """The first match; None if there is none. Bytes are those of a text in UTF-8."""


def compile_pattern(pattern: str) -> Pattern:
    """Compiles a pattern. Raises `InvalidPattern`."""
    import re2  # with the first pattern: a control plane without custom resources has none

    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        raise _invalid(pattern, error.args[0]) from None
    if _BYTE in pattern and _BYTE in _ESCAPES_AND_QUOTES.sub("", pattern):
        raise InvalidPattern("invalid escape sequence", _BYTE)
    if (where := _huge_count(pattern)) is not None:
        raise InvalidPattern("invalid repeat count", where)
    return compiled


def _huge_count(pattern: str) -> str | None:
    """The repetition whose count has too many digits for either library."""
    if "{" not in pattern:
        return None
    plain = _CHARACTER_CLASS.sub("", _ESCAPES_AND_QUOTES.sub("", pattern))
    for match in _HUGE_COUNT.finditer(plain):
        if any(len(count) > _MAX_COUNT_DIGITS for count in match[0].strip("{}").split(",")):
            return match[0]
    return None


def _invalid(pattern: str, message: bytes | str) -> InvalidPattern:
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
    if text.startswith("pattern too large"):
        return InvalidPattern("expression too large", pattern)
    code, _, where = text.partition(": ")
    if where in ("(?<=", "(?<!"):
        # For Go, which has no look-behind either, these begin the name of a group.
        rest = pattern[pattern.index(where) :]
        end = rest.find(">")
        return InvalidPattern("invalid named capture", rest if end < 0 else rest[: end + 1])
    return InvalidPattern(_CODES.get(code, code), where)
