"""Regular expressions of schemas: written for Go's RE2, translated to Python's ``re``.

Syntax that Python has and RE2 lacks (look-around, backreferences, possessive repetition) is refused with RE2's
error; syntax with another meaning (``$``, ``\\s``, ``\\z``, flags in the middle, POSIX classes) is rewritten. Syntax
that Python lacks, such as scripts (``\\p{Greek}``) and ungreedy flags, raises `UnsupportedPattern`: such a pattern is
not checked, and the author of the definition gets a warning.

differs: RE2 takes linear time; ``re`` may take exponential time on patterns made for that.
"""

from __future__ import annotations

import re
from functools import lru_cache

from steersman.server.crd.char_classes import (
    POSIX,
    ascii_complement,
    category,
    class_members,
    complement,
    escape_member,
)

_MAX_REPEATS = 1000
_SPACE = "\\t\\n\\f\\r "
_REPEAT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_NAMED = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_OCTAL = re.compile("[1-7][0-7]{1,2}|0[0-7]{0,2}")
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_UNICODE = re.compile(r"[pP](?:\{(\^?)([A-Za-z_]+)\}|([A-Z]))")


class InvalidPattern(ValueError):
    """A pattern RE2 refuses. The message is RE2's."""

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{where}`")


class UnsupportedPattern(ValueError):
    """A valid RE2 pattern that Python's ``re`` cannot express."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compiles an RE2 pattern. Raises `InvalidPattern` or `UnsupportedPattern`."""
    translated = _Translation(pattern).result()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnsupportedPattern(f"{pattern}: {error}") from None


class _Translation:
    """Translates one RE2 pattern to Python's syntax."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._open: list[tuple[list[str], bool]] = []
        """For each open group: the flags set in it, and whether ``$`` matches at line ends."""
        self._flags: list[str] = []
        self._lines = False
        self._repeatable = False
        """Whether the previous element may be repeated."""
        self._repeated = -1
        """The start of the previous repetition; -1 if the previous element is none."""

    def result(self) -> str:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._open:
            raise InvalidPattern("missing closing )", self._text)
        return "".join(self._out) + ")" * len(self._flags)

    def _step(self, char: str) -> None:
        match char:
            case "\\":
                self._escape()
            case "[":
                self._put(self._class())
            case "(":
                self._begin()
            case ")":
                self._end()
            case "|":
                self._out += [")" * len(self._flags), "|", *self._flags]
                self._skip(1, repeatable=False)
            case "*" | "+" | "?":
                self._repeat(char, 1)
            case "{" if found := _REPEAT.match(self._text, self._at):
                self._count(found)
            case "^":
                self._out.append("^")
                self._skip(1)
            case "$":
                self._out.append("$" if self._lines else "\\Z")
                self._skip(1)
            case ".":
                self._put(".", 1)
            case _:
                self._put(re.escape(char), 1)

    def _put(self, text: str, length: int = 0) -> None:
        self._out.append(text)
        self._skip(length)

    def _skip(self, length: int, *, repeatable: bool = True) -> None:
        self._at += length
        self._repeatable, self._repeated = repeatable, -1

    # -- repetition ---------------------------------------------------------------------------

    def _repeat(self, operator: str, length: int) -> None:
        start = self._at
        self._at += length
        if self._text.startswith("?", self._at):
            self._at += 1
            operator += "?"
        if self._repeated >= 0:
            raise InvalidPattern("invalid nested repetition operator", self._text[self._repeated : self._at])
        if not self._repeatable:
            raise InvalidPattern("missing argument to repetition operator", self._text[start : self._at])
        if self._out[-1] in ("^", "$", "\\Z", "\\A", "\\b", "\\B"):
            # Python cannot repeat elements without width.
            self._out[-1] = f"(?:{self._out[-1]})"
        self._out.append(operator)
        self._repeated = start

    def _count(self, found: re.Match[str]) -> None:
        least, comma, most = int(found[1]), found[2], found[3]
        if max(least, int(most or 0)) > _MAX_REPEATS or (most and int(most) < least):
            raise InvalidPattern("invalid repeat count", found[0])
        self._repeat(f"{{{least},{most}}}" if comma else f"{{{least}}}", len(found[0]))

    # -- groups -------------------------------------------------------------------------------

    def _begin(self) -> None:
        text, at = self._text, self._at
        if not text.startswith("(?", at):
            self._enter("(", 1)
        elif named := _NAMED.match(text, at):
            self._enter("(", len(named[0]))
        elif found := _FLAGS.match(text, at):
            self._switch(found)
        elif text.startswith(("(?P<", "(?<"), at):
            end = text.find(">", at)
            raise InvalidPattern("invalid named capture", text[at:] if end < 0 else text[at : end + 1])
        else:
            known = re.compile(r"\(\?[imsU-]*").match(text, at)
            assert known is not None
            raise InvalidPattern("invalid or unsupported Perl syntax", text[at : known.end() + 1])

    def _switch(self, found: re.Match[str]) -> None:
        on, off, mark = found[1], found[2] or "", found[3]
        if "U" in on + off:
            raise UnsupportedPattern(f"{self._text}: ungreedy flags")
        if not on and not off:
            if mark == ")":
                raise InvalidPattern("missing argument to repetition operator", found[0])
            self._enter("(?:", len(found[0]))
            return
        lines = ("m" in on or self._lines) and "m" not in off
        # Python refuses a flag that is both set and cleared.
        begin = f"(?{''.join(dict.fromkeys(flag for flag in on if flag not in off))}{off}:"
        if mark == ":":
            self._enter(begin, len(found[0]))
        else:
            self._out.append(begin)
            self._flags.append(begin)
            self._skip(len(found[0]), repeatable=False)
        self._lines = lines

    def _enter(self, begin: str, length: int) -> None:
        self._open.append((self._flags, self._lines))
        self._flags = []
        self._out.append(begin)
        self._skip(length, repeatable=False)

    def _end(self) -> None:
        if not self._open:
            raise InvalidPattern("unexpected )", self._text)
        self._out.append(")" * len(self._flags) + ")")
        self._flags, self._lines = self._open.pop()
        self._skip(1)

    # -- escapes ------------------------------------------------------------------------------

    def _escape(self) -> None:
        text, at = self._text, self._at + 1
        if at == len(text):
            raise InvalidPattern("trailing backslash at end of expression", "")
        match text[at]:
            case "Q":
                end = text.find("\\E", at)
                literal = text[at + 1 :] if end < 0 else text[at + 1 : end]
                for char in literal:
                    self._put(re.escape(char))
                self._at = len(text) if end < 0 else end + 2
            case "A" | "b" | "B":
                self._put(text[at - 1 : at + 1], 2)
            case "z":
                self._put("\\Z", 2)
            case "s":
                self._put(f"[{_SPACE}]", 2)
            case "S":
                self._put(f"[^{_SPACE}]", 2)
            case "d" | "D" | "w" | "W":
                self._put(text[at - 1 : at + 1], 2)
            case "p" | "P":
                self._put(f"[{self._unicode()}]")
            case _:
                self._put(re.escape(self._char()))

    def _char(self) -> str:
        """The character of an escape; moves behind it."""
        text, at = self._text, self._at + 1
        char = text[at : at + 1]
        simple = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}.get(char)
        length = 2
        if simple is not None:
            made = simple
        elif char == "x" and (found := _HEX.match(text, at)) and int(found[1] or found[2], 16) <= 0x10FFFF:
            made, length = chr(int(found[1] or found[2], 16)), 1 + len(found[0])
        elif char.isdigit() and (found := _OCTAL.match(text, at)):
            made, length = chr(int(found[0], 8)), 1 + len(found[0])
        elif char and char.isascii() and not char.isalnum():
            made = char
        elif not char:
            raise InvalidPattern("trailing backslash at end of expression", "")
        else:
            raise InvalidPattern("invalid escape sequence", text[self._at : at + 1])
        self._at += length
        return made

    def _unicode(self) -> str:
        """The members of a Unicode category class."""
        found = _UNICODE.match(self._text, self._at + 1)
        if found is None:
            raise InvalidPattern("invalid character class range", self._text[self._at : self._at + 3])
        negated = (found[0][0] == "P") != bool(found[1])
        self._at += 1 + len(found[0])
        ranges = category(found[2] or found[3])
        if ranges is None:
            raise UnsupportedPattern(f"{self._text}: \\{found[0]}")
        return class_members(complement(ranges) if negated else ranges)

    # -- classes ------------------------------------------------------------------------------

    def _class(self) -> str:
        text, start = self._text, self._at
        self._at += 1
        out = ["["]
        if text.startswith("^", self._at):
            out.append("^")
            self._at += 1
        first = True
        while first or not text.startswith("]", self._at):
            if self._at >= len(text):
                raise InvalidPattern("missing closing ]", text[start:])
            out.append(self._member(start))
            first = False
        self._at += 1
        return "".join([*out, "]"])

    def _member(self, start: int) -> str:
        text, at = self._text, self._at
        if text.startswith("[:", at) and (end := text.find(":]", at)) > 0:
            return self._posix(text[at + 2 : end], end + 2)
        if text[at] == "\\" and text[at + 1 : at + 2] in "dDwWsSpP" and at + 1 < len(text):
            kind = text[at + 1]
            if kind in "pP":
                return self._unicode()
            self._at += 2
            return {"s": _SPACE, "S": ascii_complement(_SPACE)}.get(kind, f"\\{kind}")
        low = self._one(start)
        following = text[self._at : self._at + 2]
        if not following.startswith("-") or following == "-]":
            return escape_member(low)
        self._at += 1
        high = self._one(start)
        if high < low:
            raise InvalidPattern("invalid character class range", text[at : self._at])
        return f"{escape_member(low)}-{escape_member(high)}"

    def _one(self, start: int) -> str:
        if self._at >= len(self._text):
            raise InvalidPattern("missing closing ]", self._text[start:])
        char = self._text[self._at]
        if char == "\\":
            return self._char()
        self._at += 1
        return char

    def _posix(self, name: str, end: int) -> str:
        known = POSIX.get(name.removeprefix("^"))
        if known is None:
            raise InvalidPattern("invalid character class range", f"[:{name}:]")
        self._at = end
        return ascii_complement(known) if name.startswith("^") else known
