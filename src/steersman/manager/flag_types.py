"""Flag types: how values are parsed and formatted, in the syntax and with the errors of Go's pflag."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Literal

import msgspec

from steersman.api.go_duration import format_duration, parse_duration
from steersman.api.go_quote import quote
from steersman.api.quantity import Quantity
from steersman.manager.version import KUBERNETES


class Type(msgspec.Struct, frozen=True):
    """A flag type: its parser, its formatter and its name in the help."""

    name: str
    read: Callable[[str], Any]
    """Raises ValueError with Go's error message."""
    write: Callable[[Any], str] = str
    bare: str | None = None
    """The value of a flag given without one; None where a value is required."""
    many: bool = False
    """A repeated flag appends to the list instead of replacing it."""
    choices: tuple[str, ...] = ()
    """All values there are; empty where they are not known."""
    completion: Literal["", "file", "directory"] = ""
    """The kind of path that a shell completes a value to, besides the choices."""


def choice(*names: str) -> Type:
    """The type of a flag that takes one of a few words."""

    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text

    return Type("|".join(names), read, choices=names)


def read_bool(text: str) -> bool:
    """Parse a bool in the spellings of Go's strconv.ParseBool."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")


def write_bool(value: bool) -> str:
    return "true" if value else "false"


def _integer(low: int, high: int, base: int = 0) -> Callable[[str], int]:
    """A parser of integers from low to high. Base 0: Go's literal syntax."""
    call = "strconv.ParseUint" if low == 0 else "strconv.ParseInt"

    def read(text: str) -> int:
        octal = base == 0 and re.fullmatch(r"[+-]?0[0-7_]+", text)
        try:
            if text != text.strip() or (low == 0 and text[:1] in "+-"):
                raise ValueError
            value = int(text, 8 if octal else base)
        except ValueError:
            raise ValueError(f"{call}: parsing {quote(text)}: invalid syntax") from None
        if not low <= value <= high:
            raise ValueError(f"{call}: parsing {quote(text)}: value out of range")
        return value

    return read


def _float(largest: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            if text != text.strip():
                raise ValueError
            value = float(text)
        except ValueError:
            raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: invalid syntax") from None
        if value not in (float("inf"), float("-inf")) and abs(value) > largest:
            raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range")
        return value

    return read


def _write_float(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _read_ip(text: str) -> str:
    text = text.strip()
    try:
        # A blank address means every interface, as the default does.
        return str(ip_address(text)) if text else "0.0.0.0"
    except ValueError:
        raise ValueError(f"failed to parse IP: {quote(text)}") from None


def _read_strings(text: str) -> tuple[str, ...]:
    if '"' not in text:
        return tuple(text.split(",")) if text else ()
    import csv

    try:
        return tuple(next(csv.reader([text], strict=True)))
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _write_strings(values: tuple[str, ...]) -> str:
    return f"[{','.join(_cell(value) for value in values)}]"


def _cell(text: str) -> str:
    """A list element, quoted where it would be parsed differently without quotes."""
    if any(mark in text for mark in ',"\n') or text[:1] == " ":
        return '"' + text.replace('"', '""') + '"'
    return text


def _read_numbers(text: str) -> tuple[int, ...]:
    return tuple(map(_integer(-(2**31), 2**31 - 1), text.split(",")))


def _write_numbers(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``key=value`` pairs; commas in a single pair belong to its value."""
    words = (text.strip('"'),) if text.count("=") == 1 else _read_strings(text)
    for word in words:
        if "=" not in word:
            raise ValueError(f"{word} must be formatted as key=value")
    return tuple((word.partition("=")[0], word.partition("=")[2]) for word in words)


def _write_pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    last = dict(pairs)
    return _write_strings(tuple(f"{key}={value}" for key, value in last.items()))


def _read_components(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``component:word`` pairs; the component may be missing."""
    words = (word if ":" in word else f":{word}" for word in text.split(",") if word)
    return tuple((word.partition(":")[0].strip(), word.partition(":")[2].strip()) for word in words)


def _write_components(pairs: tuple[tuple[str, str], ...]) -> str:
    by_component = sorted(pairs, key=lambda pair: pair[0])
    return ",".join(f"{component}:{word}" for component, word in by_component)


_read_level = _integer(0, 2**31 - 1, base=10)


def _read_modules(text: str) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for word in filter(None, text.split(",")):
        pattern, _, level = word.partition("=")
        if not pattern or not level or "=" in level:
            raise ValueError(f"{quote(word)} does not have the pattern=N format")
        try:
            found.append((pattern, _read_level(level)))
        except ValueError as error:
            raise ValueError(f"parsing verbosity in {quote(word)}: {error}") from None
    return tuple(found)


def _write_modules(modules: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{pattern}={level}" for pattern, level in modules)


def _read_quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        # The error of the flag itself already contains the text.
        raise ValueError(str(error).removeprefix(f"cannot parse '{text}': ")) from None


class NamedPair(msgspec.Struct, frozen=True):
    """A certificate file, its key file, and the host names it is for; no names: those in the certificate."""

    cert: str
    key: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f":{','.join(self.names)}" if self.names else ""
        return f"{self.cert},{self.key}{names}"


def _read_named(text: str) -> tuple[NamedPair]:
    files, colon, names = (part.strip() for part in text.partition(":"))
    if colon and not names:
        raise ValueError("empty names list is not allowed")
    cert, comma, key = (part.strip() for part in files.partition(","))
    if not comma or "," in key:
        raise ValueError("expected comma separated certificate and key file paths")
    return (NamedPair(cert, key, tuple(name.strip() for name in names.split(",") if colon)),)


def _write_named(pairs: tuple[NamedPair, ...]) -> str:
    return f"[{';'.join(map(str, pairs))}]"


def _read_version(text: str) -> str:
    """Parse ``raw``, a bool, or a version to report, which may only add a suffix to the default."""
    if text == "raw":
        return text
    if not text.startswith("v"):
        return write_bool(read_bool(text))
    if re.fullmatch(re.escape(KUBERNETES) + r"(?:[-+].*)?", text):
        return text
    raise ValueError(
        f"version {quote(text)} must match major/minor/patch of default version {quote(KUBERNETES)}"
    )


BOOL = Type("bool", read_bool, write_bool, bare="true")
STRING = Type("string", str)
FILE = Type("file", str, completion="file")
DIRECTORY = Type("directory", str, completion="directory")
INT = Type("int", _integer(-(2**63), 2**63 - 1))
INT32 = Type("int32", _integer(-(2**31), 2**31 - 1))
FLOAT = Type("float", _float(1.7976931348623157e308), _write_float)
FLOAT32 = Type("float32", _float(3.4028235677973366e38), _write_float)
DURATION = Type("duration", parse_duration, format_duration)
STRINGS = Type("strings", _read_strings, _write_strings, many=True)
GATES = Type("colonSeparatedMultimapStringString", _read_components, _write_components, many=True)
TYPES = (
    *(BOOL, STRING, INT, INT32, FLOAT, FLOAT32, DURATION, STRINGS, GATES),
    Type("ip", _read_ip),
    Type("int32Slice", _read_numbers, _write_numbers, many=True),
    Type("stringToString", _read_pairs, _write_pairs, many=True),
    Type("namedCertKey", _read_named, _write_named, many=True),
    Type("quantity", _read_quantity),
    Type("Level", _read_level),
    Type("pattern=N,...", _read_modules, _write_modules, many=True),
    Type("version", _read_version, bare="true"),
)
