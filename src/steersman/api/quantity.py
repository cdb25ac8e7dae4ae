"""`Quantity`: exact fixed-point numbers with a suffix, parsed and formatted as upstream's resource.Quantity.

An amount is an integer number of nanos, the finest resolution of the API, so all arithmetic is exact. A quantity
keeps the suffix family it was parsed with and is formatted in the same family.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

import msgspec

NANO = 10**9
"""Nanos per unit."""

_MAX = (2**63 - 1) * NANO

# differs: upstream accepts any exponent, and then computes with billions of digits.
_MAX_DIGITS = 1000


_MAX_CACHED_TEXT = 64
"""Characters of the longest quantity that is cached, so the cache takes up to 2 MiB."""


class Format(Enum):
    """A family of suffixes."""

    DECIMAL_EXPONENT = "DecimalExponent"
    """``12e6``"""
    BINARY_SI = "BinarySI"
    """``12Mi``"""
    DECIMAL_SI = "DecimalSI"
    """``12M``"""


_SHAPE = re.compile(
    # Possessive, so that no text is looked at twice, and with DOTALL, so that every text matches.
    r"(?P<sign>[+-]?+)(?P<zeros>0*+)(?P<whole>[0-9]*+)(?P<point>\.(?P<part>[0-9]*+))?+(?P<suffix>.*)",
    re.DOTALL,
)
_SUFFIX = re.compile(r"[eEinumkKMGTP]*[-+]?[0-9]*")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES = ("", *_BINARY)

_WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"

# Upstream keeps the text of a quantity that is short enough for its 64-bit fast path. For binary suffixes this is
# a number of digits; Pi and Ei never qualify.
_ECHOED_BINARY_DIGITS = {10: 11, 20: 8, 30: 5, 40: 2}
_ECHOED_DECIMAL_DIGITS = 18


class Quantity(msgspec.Struct, frozen=True, eq=False):
    """An exact amount. Compares and hashes by amount alone: ``1Gi == 1024Mi``."""

    nanos: int
    format: Format = Format.DECIMAL_SI
    text: str = ""
    """The text it was parsed from, if upstream formats it the same way; else empty."""

    @staticmethod
    def parse(value: str | float) -> Quantity:
        """Parse a quantity, given as a string or a number. Raises `ValueError` that names the input."""
        if isinstance(value, str):
            text = value.strip()
            # Long texts are not cached: zeros in front make a number as long as a body can be.
            return _parse(text) if len(text) <= _MAX_CACHED_TEXT else _parse.__wrapped__(text)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _malformed(str(value), "not a string or a number")
        return _parse(repr(value))

    @staticmethod
    def of(value: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of an integer."""
        return Quantity(value * NANO, format)

    @staticmethod
    def of_milli(value: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of an integer number of thousandths."""
        return Quantity(value * 10**6, format)

    def value(self) -> int:
        """Return the amount as an integer, rounded away from zero.

        differs: exact where upstream overflows 64 bits.
        """
        return _divide(self.nanos, NANO)

    def milli(self) -> int:
        """Return the amount in thousandths, rounded away from zero."""
        return _divide(self.nanos, 10**6)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nanos > 0) - (self.nanos < 0)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self._format_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self._format_with(other))

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def _format_with(self, other: Quantity) -> Format:
        # A sum that starts from zero takes the format of what is added.
        return self.format if self.nanos else other.format

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __float__(self) -> float:
        """Return the nearest float; infinite on overflow."""
        try:
            return self.nanos / NANO
        except OverflowError:
            return float("inf") * self.sign

    def __str__(self) -> str:
        return self.text or canonical(self.nanos, self.format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO = Quantity(0)


def storage_of(resources: Mapping[str, str | int | float]) -> Quantity:
    """Return the amount of storage in a list of resources; zero where there is none, or it cannot be parsed."""
    amount = resources.get("storage")
    try:
        return ZERO if amount is None else Quantity.parse(amount)
    except ValueError:
        return ZERO


def canonical(nanos: int, format: Format) -> str:
    """Format an amount with the largest suffix of its family that leaves no fraction.

    Fractions and amounts below 1024 are formatted with decimal suffixes even in the binary family.
    """
    if nanos == 0:
        return "0"
    if format is Format.BINARY_SI and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        number, step = nanos // NANO, 0
        while number % 1024 == 0 and step < 6:
            number, step = number // 1024, step + 1
        return f"{number}{_BINARY_NAMES[step]}"
    number, exponent = nanos, -9
    # differs: upstream formats a number beyond E, which has no suffix, without any: 1000E as "1".
    while number % 1000 == 0 and (exponent < 18 or format is Format.DECIMAL_EXPONENT):
        number, exponent = number // 1000, exponent + 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else f"{number}"
    return f"{number}{_DECIMAL_NAMES[exponent]}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _SHAPE.fullmatch(text)
    if not text or match is None or not _SUFFIX.fullmatch(match["suffix"]):
        raise _malformed(text, _WRONG_FORM)
    whole, part = match["whole"] or "0", match["part"] or ""
    exponent, format = _interpret(text, match["suffix"])
    digits = whole + part
    if len(digits) > _MAX_DIGITS:
        raise _malformed(text, f"quantities of more than {_MAX_DIGITS} digits are not supported")
    mantissa = int(digits)
    if format is Format.BINARY_SI:
        short = not part and len(whole) <= _ECHOED_BINARY_DIGITS.get(exponent, -1)
        echoed = short and mantissa % 8 != 0
        nanos = _divide((mantissa << exponent) * NANO, 10 ** len(part))
        if not short:
            nanos = min(nanos, _MAX)
            if 0 < nanos < NANO:
                format = Format.DECIMAL_SI
    else:
        scale = exponent - len(part)
        short = len(digits) <= _ECHOED_DECIMAL_DIGITS and scale >= -9
        echoed = short and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
        nanos = _shift(text, mantissa, scale + 9)
    if not short and not (match["zeros"] or match["whole"] or part):
        # Upstream reads a number without digits as zero, but only on its 64-bit fast path.
        raise _malformed(text, _WRONG_NUMBER)
    return Quantity(-nanos if match["sign"] == "-" else nanos, format, text if echoed or text == "0" else "")


def _interpret(text: str, suffix: str) -> tuple[int, Format]:
    """Return the exponent (of ten or of two) of a suffix, and its family."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], Format.BINARY_SI
    if len(suffix) > 1 and suffix[0] in "eE" and re.fullmatch(r"[-+]?[0-9]{1,20}", suffix[1:]):
        exponent = int(suffix[1:])
        if -(2**63) <= exponent < 2**63:
            return exponent, Format.DECIMAL_EXPONENT
    raise _malformed(text, _WRONG_SUFFIX)


def _shift(text: str, mantissa: int, places: int) -> int:
    """Return ``mantissa * 10**places``, rounded up, without building a needlessly long number."""
    digits = len(str(mantissa))
    if mantissa == 0 or places <= -digits:
        return 1 if mantissa else 0
    if places < 0:
        return _divide(mantissa, 10**-places)
    if digits + places > _MAX_DIGITS:
        raise _malformed(text, f"quantities of more than {_MAX_DIGITS} digits are not supported")
    return int(mantissa * 10**places)


def _divide(number: int, by: int) -> int:
    """Divide, rounding away from zero."""
    return -(-number // by) if number > 0 else number // by


def _malformed(text: str, why: str) -> ValueError:
    return ValueError(f"cannot parse {text!r}: {why}")
