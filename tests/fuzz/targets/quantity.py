"""Quantities: equal to exact decimal arithmetic, rounded up to nanos; printed and parsed again they are the same."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import strategies as st

from steersman.api.quantity import NANO, Format, Quantity, canonical
from tests.fuzz.target import Target

_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([A-Za-z]*)([+-]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LARGEST = 2**63 - 1


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        quantity = Quantity.parse(text)
    except ValueError:
        return
    _agrees(text.strip(), quantity)
    printed = str(quantity)
    again = Quantity.parse(printed)
    assert again == quantity
    assert str(again) == printed
    for format in Format:
        if format is Format.BINARY_SI and abs(quantity.nanos) > _LARGEST * NANO:
            # Parsing caps amounts of this family.
            continue
        assert Quantity.parse(canonical(quantity.nanos, format)) == quantity
    assert quantity + quantity == quantity * 2
    assert (quantity - quantity).sign == 0
    assert (
        quantity.value() * NANO >= quantity.nanos
        if quantity.sign >= 0
        else quantity.value() * NANO <= quantity.nanos
    )
    assert abs(quantity.milli()) * 10**6 >= abs(quantity.nanos)


def _agrees(text: str, quantity: Quantity) -> None:
    match = _TEXT.fullmatch(text)
    assert match is not None, text
    sign, whole, part, suffix, exponent = match.groups(default="")
    digits = int(f"0{whole}{part}")
    amount = Fraction(digits, 10 ** len(part)) if digits else Fraction(0)
    if suffix in ("e", "E") and exponent:
        # Whatever is parsed has at most a thousand digits, unless it is rounded up to one nano.
        amount = amount * Fraction(10) ** max(int(exponent), -2000) if amount else amount
    else:
        assert not exponent
        amount *= Fraction(10) ** _DECIMAL[suffix] if suffix in _DECIMAL else 2 ** _BINARY[suffix]
    nanos = -(-amount * NANO // 1)
    if suffix in _BINARY and nanos > _LARGEST * NANO:
        nanos = _LARGEST * NANO
    assert quantity.nanos == (-nanos if sign == "-" else nanos), text


_numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**9), max_value=10**9).map(
        "{:f}".format
    ),
    st.text(st.sampled_from("0123456789.+-"), max_size=25),
)
_suffixes = st.one_of(
    st.sampled_from((*_DECIMAL, *_BINARY, "K", "i", "e", "ee")),
    st.integers(-30, 30).map("e{}".format),
    st.integers(-(10**20), 10**20).map("E{}".format),
)

TARGET = Target(
    name="quantity",
    check=check,
    seeds=(
        b"100m", b"1.5Gi", b"-0.000000001", b"1e3", b"+12E", b"9223372036854775807", b"1e999999999", b"0e999999999999", b"1E-999999999",
        b".5", b"5.", b"1024Ki", b"0.5Ei", b"00001000", b" 3u ", b"8Ei",
    ),
    strategy=st.builds("{}{}".format, _numbers, _suffixes).map(str.encode),
    dictionary=(b"Ki", b"Ei", b"e", b"E", b"n", b"m", b".", b"+", b"-", b"0" * 20, b"9" * 20, b"\n", b"e9999999999"),
)  # fmt: skip
