"""Quantities: what upstream reads, what it writes, and that nothing is ever lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.quantity import NANO, ZERO, Format, Quantity, _parse, canonical

SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2")

numbers = st.builds(
    lambda sign, whole, part, suffix: f"{sign}{whole}{part}{suffix}",
    st.sampled_from(("", "-", "+")),
    st.integers(0, 10**20).map(str),
    st.integers(0, 10**12).map(lambda n: f".{n}") | st.just(""),
    st.sampled_from(SUFFIXES),
)
quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(Format))


@pytest.mark.parametrize(
    ("text", "amount", "written", "format"),
    [
        ("0", 0, "0", Format.DECIMAL_SI),
        ("100m", NANO // 10, "100m", Format.DECIMAL_SI),
        ("0.5", NANO // 2, "500m", Format.DECIMAL_SI),
        ("1.5Gi", 1536 * 2**20 * NANO, "1536Mi", Format.BINARY_SI),
        ("1024Mi", 2**30 * NANO, "1Gi", Format.BINARY_SI),
        ("1000m", NANO, "1", Format.DECIMAL_SI),
        ("1000k", 10**6 * NANO, "1M", Format.DECIMAL_SI),
        ("12e6", 12 * 10**6 * NANO, "12e6", Format.DECIMAL_EXPONENT),
        ("1200e4", 12 * 10**6 * NANO, "12e6", Format.DECIMAL_EXPONENT),
        ("1E", 10**18 * NANO, "1E", Format.DECIMAL_SI),
        ("1E3", 1000 * NANO, "1E3", Format.DECIMAL_EXPONENT),
        ("-5Ki", -5120 * NANO, "-5Ki", Format.BINARY_SI),
        ("999n", 999, "999n", Format.DECIMAL_SI),
    ],
)
def test_a_quantity_is_read_exactly_and_written_in_its_own_family(
    text: str, amount: int, written: str, format: Format
) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.nanos, str(quantity), quantity.format) == (amount, written, format)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.5Ki", "512"),  # too small for a binary suffix
        ("0.1Ki", "102400m"),  # a fraction has no binary form
        ("100Ei", "9223372036854775807"),  # binary amounts are capped
        ("1e-10", "1e-9"),  # what is asked for is never rounded to nothing
        ("-0.0000000001", "-1n"),
        ("1e100", "10e99"),
    ],
)
def test_amounts_without_a_form_of_their_own_are_written_as_upstream_does(text: str, written: str) -> None:
    assert str(Quantity.parse(text)) == written


@pytest.mark.parametrize("text", ["+1", "1.500", "1.", "010Ki", "1E3"])
def test_a_text_upstream_echoes_is_echoed_until_the_amount_changes(text: str) -> None:
    quantity = Quantity.parse(text)
    assert str(quantity) == text
    assert str(quantity + ZERO) == canonical(quantity.nanos, quantity.format)


@pytest.mark.parametrize("text", ["+", ".", "Ki", "e3", "-0", "0Gi", "00"])
def test_what_has_no_digits_or_only_zeros_is_zero(text: str) -> None:
    assert Quantity.parse(text) == ZERO
    assert str(Quantity.parse(text)) == "0"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "regular expression"),
        ("1x", "regular expression"),
        ("1 Gi", "regular expression"),
        ("1.1.1", "regular expression"),
        ("1_0", "regular expression"),
        ("\u0661", "regular expression"),  # a digit, but not an ASCII one
        ("1K", "suffix"),
        ("1ki", "suffix"),
        ("1e", "suffix"),
        ("1e+", "suffix"),
        ("1e99999999999999999999", "suffix"),
        ("e-10", "numeric part"),
        ("1e2147483647", "digits"),
        ("1" * 2000, "digits"),
    ],
)
def test_a_malformed_text_is_a_value_error_that_names_it(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        Quantity.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("value", "written"), [(2, "2"), (0.25, "250m"), (1e22, "10e21"), (" 1Gi ", "1Gi")])
def test_numbers_and_padded_strings_of_a_document_are_read_too(value: str | float, written: str) -> None:
    assert str(Quantity.parse(value)) == written


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), None, []])
def test_what_is_neither_text_nor_number_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match="cannot parse"):
        Quantity.parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1u", 1, 1), ("0", 0, 0), ("2k", 2000, 2000000)],
)
def test_whole_numbers_are_rounded_away_from_zero(text: str, value: int, milli: int) -> None:
    assert (Quantity.parse(text).value(), Quantity.parse(text).milli()) == (value, milli)


def test_a_sum_takes_the_family_of_the_first_amount_that_is_not_zero() -> None:
    assert str(ZERO + Quantity.parse("1024Ki")) == "1Mi"
    assert str(Quantity.parse("1Mi") + Quantity.parse("1024")) == "1025Ki"
    assert str(Quantity.parse("1024") + Quantity.parse("1Ki")) == "2048"


def test_beyond_the_last_suffix_nothing_is_lost() -> None:
    assert str(Quantity.parse("1000000E")) == "1000000E"
    assert str(Quantity.of(2**70, Format.BINARY_SI)) == "1024Ei"


def test_a_quantity_is_also_a_float() -> None:
    assert float(Quantity.parse("1500m")) == 1.5
    assert float(Quantity.parse("-1e400")) == float("-inf")


@given(numbers)
def test_writing_and_reading_again_changes_nothing(text: str) -> None:
    first = Quantity.parse(text)
    again = Quantity.parse(str(first))
    assert again == first
    assert str(again) == str(first)


@given(quantities)
def test_the_canonical_form_reads_as_the_same_amount(quantity: Quantity) -> None:
    read = Quantity.parse(str(quantity))
    capped = quantity.format is Format.BINARY_SI and abs(quantity.nanos) > (2**63 - 1) * NANO
    assert read == quantity or capped


@given(quantities, quantities)
def test_arithmetic_is_exact(a: Quantity, b: Quantity) -> None:
    assert (a + b) - b == a
    assert -(a - b) == b - a
    assert (a < b, a <= b, a > b, a >= b) == (
        (a - b).sign < 0,
        (a - b).sign <= 0,
        (a - b).sign > 0,
        (a - b).sign >= 0,
    )
    assert a * 3 == a + a + a
    if a == b:
        assert hash(a) == hash(b)


@given(quantities)
def test_rounding_never_loses_what_was_asked_for(quantity: Quantity) -> None:
    assert abs(quantity.value()) * NANO >= abs(quantity.nanos) > (abs(quantity.value()) - 1) * NANO
    assert abs(quantity.milli()) * 10**6 >= abs(quantity.nanos) > (abs(quantity.milli()) - 1) * 10**6


def test_a_text_is_looked_at_once_however_long_it_is() -> None:
    # Backtracking over zeros, digits and fraction took time with the cube of the length.
    for text in ("0" * 30_000 + "\n1", "1" * 30_000 + "\nx", "0" * 30_000 + "." + "0" * 30_000 + "\n1"):
        with pytest.raises(ValueError, match="cannot parse"):
            Quantity.parse(text)


def test_long_texts_are_not_remembered() -> None:
    _parse.cache_clear()
    assert Quantity.parse("0" * 100_000 + "7") == Quantity.of(7)
    assert _parse.cache_info().currsize == 0
