"""Parses and evaluates label selectors.

`compile_selector` takes the selector of an API object, `parse_selector` a query string. A missing selector (None)
selects nothing; an empty one selects everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.label_syntax import invalid, key_errors, value_errors

_BINARY_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_SYMBOLS = {"in": " in ", "notin": " notin ", "gt": ">", "lt": "<"}


class RequirementLike(Protocol):
    """A LabelSelectorRequirement, of the generated types or of the views."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Iterable[str]: ...


class LabelSelectorLike(Protocol):
    """A LabelSelector, of the generated types or of the views."""

    @property
    def matchLabels(self) -> Mapping[str, str]: ...  # noqa: N802  (as on the wire)
    @property
    def matchExpressions(self) -> Iterable[RequirementLike]: ...  # noqa: N802


class Requirement(msgspec.Struct, frozen=True):
    """One requirement on one label. Operators are those of upstream's ``selection`` package."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "=" | "==" | "in":
                return labels.get(self.key) in self.values
            case "!=" | "notin":
                return labels.get(self.key) not in self.values
            case "exists":
                return self.key in labels
            case "!":
                return self.key not in labels
        number, bound = _integer(labels.get(self.key, "")), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


class Selector:
    """A compiled selector: all of its requirements must match."""

    __slots__ = ("_pairs", "_rest", "nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.nothing = nothing
        """The selector selects no object: it was None."""
        # Nearly all selectors are plain key=value, and are evaluated for every pod of a namespace.
        plain = [r for r in self.requirements if r.operator in ("=", "==")]
        self._pairs = tuple((r.key, r.values[0]) for r in plain)
        self._rest = tuple(r for r in self.requirements if r.operator not in ("=", "=="))
        if nothing:
            self._rest = (Requirement("", "in"),)  # without values, matches nothing

    @property
    def empty(self) -> bool:
        """The selector selects everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether an object with these labels is selected."""
        for key, value in self._pairs:
            if labels.get(key) != value:
                return False
        return not self._rest or all(requirement.matches(labels) for requirement in self._rest)

    def exact(self, key: str) -> str | None:
        """Return the one value that the selector requires of a label, for an index lookup, or None."""
        for requirement in self.requirements:
            if requirement.key == key:
                only = requirement.operator in ("=", "==", "in") and len(requirement.values) == 1
                return requirement.values[0] if only else None
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self.nothing == other.nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "<Selector of nothing>" if self.nothing else f"<Selector {str(self)!r}>"


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelectorLike | Mapping[str, str] | None) -> Selector:
    """Compile the selector of an API object: a LabelSelector, or the plain map of a ReplicationController.

    Short selectors are cached. Raises `ValueError` with upstream's message.
    """
    if selector is None:
        return NOTHING
    if isinstance(selector, Mapping):
        key: _Content = tuple(selector.items()), ()
    else:
        expressions = selector.matchExpressions
        key = (
            tuple(selector.matchLabels.items()),
            tuple([(e.key, e.operator, tuple(e.values)) for e in expressions]) if expressions else (),
        )
    compiled = _compiled.get(key)
    if compiled is None:
        compiled = _compile(*key)
        if _text_length(key) <= _MAX_CACHED_TEXT:
            _compiled.put(key, compiled)
    return compiled


_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Expressions: TypeAlias = tuple[tuple[str, str, tuple[str, ...]], ...]
_Content: TypeAlias = tuple[_Labels, _Expressions]

_MAX_CACHED_TEXT = 512
"""Characters of the longest selector that is cached, where each separator counts as 16.

A selector of that length takes up to 8 KiB once compiled, so the two caches take up to 40 MiB.
"""
_compiled: BoundedCache[_Content, Selector] = BoundedCache(4096)
_parsed: BoundedCache[str, Selector] = BoundedCache(1024)


def _text_length(content: _Content) -> int:
    """The characters of a selector, with 16 for each separator."""
    labels, expressions = content
    return sum(len(key) + len(value) + 16 for key, value in labels) + sum(
        len(key) + 16 + sum(len(value) + 16 for value in values) for key, _, values in expressions
    )


def _compile(labels: _Labels, expressions: _Expressions) -> Selector:
    requirements = [_requirement(key, "=", (value,)) for key, value in labels]
    for key, operator, values in expressions:
        if operator not in _OPERATORS:
            raise ValueError(f'"{operator}" is not a valid label selector operator')
        requirements.append(_requirement(key, _OPERATORS[operator], values))
    return Selector(requirements) if requirements else EVERYTHING


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a valid requirement. Raises `ValueError` with all errors."""
    errors = []
    if problems := key_errors(key):
        errors.append(invalid("key", key, "; ".join(problems)))
    if (why := _count_error(operator, values)) is not None:
        errors.append(invalid("values", values or None, why))
    if operator in ("gt", "lt"):
        errors += [
            invalid(f"values[{i}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
            for i, value in enumerate(values)
            if _integer(value) is None
        ]
    for i, value in enumerate(values):
        if problems := value_errors(value):
            errors.append(invalid(f"values[{i}][{key}]", value, "; ".join(problems)))
    if errors:
        messages = list(dict.fromkeys(errors))
        raise ValueError(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
    return Requirement(key, operator, values)


def _count_error(operator: str, values: tuple[str, ...]) -> str | None:
    match operator:
        case "in" | "notin" if not values:
            return "for 'in', 'notin' operators, values set can't be empty"
        case "exists" | "!" if values:
            return "values set must be empty for exists and does not exist"
    return None


_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


def _integer(text: str) -> int | None:
    """Parse a 64-bit integer; None if the text is not one."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# -- query strings ----------------------------------------------------------------------------

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>!=|==|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+)|$)")
_COMPARISONS = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}


def parse_selector(text: str) -> Selector:
    """Parse a query string such as ``a=b,c!=d,e in (x,y),f notin (z),!g,h,i>1``.

    Short selectors are cached. Raises `ValueError` with upstream's message.
    """
    selector = _parsed.get(text)
    if selector is None:
        selector = Selector(_Parser(text).requirements())
        if len(text) + 15 * text.count(",") <= _MAX_CACHED_TEXT:
            _parsed.put(text, selector)
    return selector


class _Parser:
    """A recursive descent parser of selector queries. The empty token marks the end."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        position = 0
        while True:
            match = _TOKEN.match(text, position)
            assert match is not None  # every character is white space, a symbol or part of a word
            token = match["symbol"] or match["word"] or ""
            self._tokens.append((token, match["word"] is not None))
            if not token:
                break
            position = match.end()
        self._position = 0

    @property
    def _token(self) -> str:
        return self._tokens[self._position][0]

    @property
    def _is_word(self) -> bool:
        return self._tokens[self._position][1]

    def _take(self) -> str:
        token = self._token
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if not self._token:
            return found
        if not self._starts:
            raise ValueError(f"found '{self._token}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            token = self._take()
            if not token:
                return found
            if token != ",":
                raise ValueError(f"found '{token}', expected: ',' or 'end of string'")
            if not self._starts:
                raise ValueError(f"found '{self._token}', expected: identifier after ','")

    @property
    def _starts(self) -> bool:
        return self._is_word or self._token == "!"

    def _requirement(self) -> Requirement:
        absent = self._token == "!"
        if absent:
            self._take()
        if not self._is_word:
            raise ValueError(f"found '{self._token}', expected: identifier")
        key = self._take()
        if problems := key_errors(key):
            raise ValueError(invalid("<nil>", key, "; ".join(problems)))
        if absent or self._token in ("", ","):
            return _requirement(key, "!" if absent else "exists", ())
        token = self._take()
        if token not in _COMPARISONS:
            raise ValueError(f"found '{token}', expected: {', '.join(_BINARY_OPERATORS)}")
        operator = _COMPARISONS[token]
        values = self._set() if operator in ("in", "notin") else (self._value(),)
        return _requirement(key, operator, values)

    def _value(self) -> str:
        if self._token in ("", ","):
            return ""
        if not self._is_word:
            raise ValueError(f"found '{self._token}', expected: identifier")
        return self._take()

    def _set(self) -> tuple[str, ...]:
        """Parse values in parentheses and sort them. An empty place is the empty value."""
        if (token := self._take()) != "(":
            raise ValueError(f"found '{token}' expected: '('")
        values: dict[str, None] = {}
        while True:
            if not self._is_word and self._token not in (",", ")"):
                wanted = "',', or identifier" if values else "',', ')' or identifier"
                raise ValueError(f"found '{self._token}', expected: {wanted}")
            values[self._take() if self._is_word else ""] = None
            token = self._take()
            if token == ")":
                return tuple(sorted(values))
            if token != ",":
                raise ValueError(f"found '{token}', expected: ',' or ')'")


def format_as_go(selector: LabelSelectorLike | None) -> str:
    """Format a selector as Go prints the struct, for upstream's messages and tables."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {selector.matchLabels[key]}," for key in sorted(selector.matchLabels))
    rules = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.matchExpressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
