"""Parses and evaluates field selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from steersman.api.bounded_cache import BoundedCache

_MAX_CACHED_TEXT = 512
"""Characters of the longest selector that is cached, where each comma counts as 16.

A selector of that length takes up to 8 KiB once parsed, so the cache takes up to 8 MiB.
"""
_cache: BoundedCache[str, FieldSelector] = BoundedCache(1024)


class FieldTerm(msgspec.Struct, frozen=True):
    """One requirement of a field selector."""

    field: str
    value: str
    equal: bool = True

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Report whether the fields match. A missing field counts as empty."""
        return (fields.get(self.field, "") == self.value) is self.equal

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """A parsed field selector: all of its terms must match."""

    terms: tuple[FieldTerm, ...] = ()

    @property
    def empty(self) -> bool:
        """The selector selects everything."""
        return not self.terms

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Report whether an object with these fields is selected."""
        return all(term.matches(fields) for term in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that the selector requires of a field, or None."""
        for term in self.terms:
            if term.equal and term.field == field:
                return term.value
        return None

    def translated(self, translate: Callable[[str, str], tuple[str, str]]) -> FieldSelector:
        """Return the selector with translated fields and values. A term with neither is dropped.

        ``translate`` raises `ValueError` for a field that is not selectable.
        """
        pairs = ((translate(term.field, term.value), term.equal) for term in self.terms)
        return FieldSelector(
            tuple(FieldTerm(field, value, equal) for (field, value), equal in pairs if field or value)
        )

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_fields(text: str) -> FieldSelector:
    """Parse a selector such as ``status.phase=Running,spec.nodeName!=``. Raises `ValueError` with upstream's message.

    Short selectors are cached.
    """
    selector = _cache.get(text)
    if selector is None:
        selector = _parse(text)
        if len(text) + 15 * text.count(",") <= _MAX_CACHED_TEXT:
            _cache.put(text, selector)
    return selector


def _parse(text: str) -> FieldSelector:
    terms = []
    for part in sorted(_split(text)):
        if not part:
            continue
        at = next((i for i in range(len(part)) if part.startswith(("!=", "="), i)), None)
        if at is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        width = 2 if part.startswith(("!=", "=="), at) else 1
        terms.append(FieldTerm(part[:at], _unescape(part[at + width :]), part[at] != "!"))
    return FieldSelector(tuple(term for term in terms if term.field or term.value))


def escape(value: str) -> str:
    """Escape a value for use in a selector."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _split(text: str) -> list[str]:
    """Split a selector at commas that are not escaped."""
    parts, start, escaped = [], 0, False
    for i, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _unescape(value: str) -> str:
    plain, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{char}")
            escaped = False
        elif char == "\\":
            escaped = True
            continue
        elif char in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(char)}")
        plain.append(char)
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(plain)
