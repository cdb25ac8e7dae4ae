"""Parses function signatures, written as one line each.

::

    size(string): int                  a function
    string::startsWith(string): bool   a method
    _[_](map<K, V>, K): V              an operator; single capitals are parameters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from steersman.api.cel import types
from steersman.api.cel.types import Sort, Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function."""

    args: tuple[Type, ...]
    """The argument types; for a method, the receiver is the first."""
    result: Type
    method: bool
    parameters: tuple[str, ...]


_LINE = re.compile(r"(?:(?P<on>[^:]+?)::)?(?P<name>[^(]+)\((?P<args>.*)\): (?P<result>.+)")
_WORD = re.compile(r"\s*([A-Za-z_.]+|[<>,])")
_KNOWN = {
    "dyn": types.DYN,
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "duration": types.DURATION,
    "int": types.INT,
    "string": types.STRING,
    "timestamp": types.TIMESTAMP,
    "uint": types.UINT,
}
_MADE: Mapping[str, Callable[..., Type]] = {
    "list": types.list_of,
    "map": types.map_of,
    "optional": types.optional_of,
    "type": types.type_of,
}


def signatures(
    *texts: str, named: Mapping[str, Type] | None = None, templates: Mapping[str, Iterable[str]] | None = None
) -> dict[str, tuple[Overload, ...]]:
    """Parse signatures into overloads by function name, in the order of the text.

    ``named`` are types beyond CEL's own. A line with ``{comparable}`` is repeated for each type in ``templates``.
    """
    found: dict[str, list[Overload]] = {}
    for text in texts:
        for line in filter(None, map(str.strip, text.splitlines())):
            for one in _spread(line, templates or {}):
                match = _LINE.fullmatch(one)
                if match is None:
                    raise ValueError(f"not a signature: {one}")
                on, name, args, result = match.group("on", "name", "args", "result")
                reader = _Reader(named or {})
                taken = (*(reader.all(on) if on else ()), *reader.all(args))
                given = reader.all(result)[0]
                overload = Overload(taken, given, bool(on), tuple(reader.parameters))
                found.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


def _spread(line: str, templates: Mapping[str, Iterable[str]]) -> Iterable[str]:
    for name, each in templates.items():
        if f"{{{name}}}" in line:
            return [line.replace(f"{{{name}}}", one) for one in each]
    return [line]


class _Reader:
    """Parses types, and records their type parameters."""

    def __init__(self, named: Mapping[str, Type]) -> None:
        self._named = named
        self.parameters: dict[str, None] = {}

    def all(self, text: str) -> tuple[Type, ...]:
        """Parse types separated by commas."""
        words = _WORD.findall(text)
        made: list[Type] = []
        while words:
            made.append(self._one(words))
            if words and words.pop(0) != ",":
                raise ValueError(f"not a list of types: {text}")
        return tuple(made)

    def _one(self, words: list[str]) -> Type:
        name = words.pop(0)
        if name in _MADE and words[:1] == ["<"]:
            words.pop(0)
            inner = [self._one(words)]
            while words.pop(0) == ",":
                inner.append(self._one(words))
            return _MADE[name](*inner)
        if len(name) == 1:
            self.parameters[name] = None
            return Type(Sort.PARAMETER, name)
        return self._named.get(name) or _KNOWN[name]


def merged(*libraries: Mapping[str, tuple[Overload, ...]]) -> dict[str, tuple[Overload, ...]]:
    """Merge libraries. Functions of the same name have the overloads of both."""
    functions: dict[str, tuple[Overload, ...]] = {}
    for library in libraries:
        for name, overloads in library.items():
            functions[name] = (*functions.get(name, ()), *overloads)
    return functions
