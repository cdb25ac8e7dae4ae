"""Helpers of defaulting: missing fields, shared structs and canonical quantities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.core_v1 import Probe, SecretVolumeSource
from steersman.api.quantity import Quantity
from steersman.server.defaulting.missing_fields import (
    MalformedValue,
    canonical_quantities,
    canonical_quantity,
    default_if_none,
    default_if_zero,
    map_items,
    map_optional,
    put,
)

quantities = st.builds(
    lambda sign, whole, part, suffix: f"{sign}{whole}{part}{suffix}",
    st.sampled_from(("", "-", "+")),
    st.integers(0, 10**12).map(str),
    st.integers(0, 10**9).map(lambda n: f".{n}") | st.just(""),
    st.sampled_from(("n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e3")),
)


def test_zero_is_a_choice_where_none_is_missing_and_missing_where_zero_means_it() -> None:
    source = SecretVolumeSource(defaultMode=0)
    assert default_if_none(source, defaultMode=420) is source
    assert default_if_none(SecretVolumeSource(), defaultMode=420).defaultMode == 420
    probe = Probe(periodSeconds=0, timeoutSeconds=5)
    assert default_if_zero(probe, periodSeconds=10, timeoutSeconds=1) == Probe(
        periodSeconds=10, timeoutSeconds=5
    )


def test_what_has_nothing_missing_is_not_copied() -> None:
    probe = Probe(periodSeconds=1)
    items = (probe, Probe(periodSeconds=2))
    assert default_if_zero(probe, periodSeconds=10) is probe
    assert put(probe, periodSeconds=1) is probe
    assert map_items(items, lambda item: default_if_zero(item, periodSeconds=10)) is items
    assert map_optional(None, lambda item: item) is None


def test_of_many_only_those_are_copied_that_have_something_missing() -> None:
    whole, bare = Probe(periodSeconds=1), Probe()
    made = map_items((whole, bare), lambda item: default_if_zero(item, periodSeconds=10))
    assert made[0] is whole
    assert made[1].periodSeconds == 10


@given(quantities)
def test_an_amount_is_written_in_one_way_and_says_the_same(text: str) -> None:
    written = canonical_quantity(text)
    assert canonical_quantity(written) == written
    assert Quantity.parse(written) == Quantity.parse(text)


@given(st.dictionaries(st.sampled_from(("cpu", "memory", "x.io/y")), quantities))
def test_amounts_of_resources_are_whole_thousandths_and_never_less_than_asked_for(
    asked: dict[str, str],
) -> None:
    written = canonical_quantities(asked)
    assert list(written) == list(asked)
    assert canonical_quantities(written) is written
    for name, text in asked.items():
        exact, stored = Quantity.parse(text), Quantity.parse(written[name])
        assert stored.nanos % 10**6 == 0
        assert abs(stored.nanos) - abs(exact.nanos) < 10**6
        if exact.nanos >= 0:
            assert stored.nanos >= exact.nanos


@pytest.mark.parametrize("text", ["", "much", "1.2.3", "1 Gi", "--1"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(MalformedValue):
        canonical_quantity(text)
