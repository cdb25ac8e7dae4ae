"""Names nobody chose."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated_names import ALPHANUMS, child, fnv32, fnv32a, fnv128a, generate, safe_encode


def test_a_generated_name_is_the_base_and_five_characters() -> None:
    name = generate("web-", Random(1))
    assert name.startswith("web-")
    assert len(name) == 9
    assert set(name[4:]) <= set(ALPHANUMS)
    assert name == generate("web-", Random(1))
    assert name != generate("web-", Random(2))


@given(st.text("abc-", max_size=300), st.integers())
def test_a_generated_name_fits_into_a_label(base: str, seed: int) -> None:
    name = generate(base, Random(seed))
    assert len(name) <= 63
    assert name[:-5] == base[:58]


@pytest.mark.parametrize(("data", "hash"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_the_hash_is_fnv_1a(data: bytes, hash: int) -> None:
    assert fnv32a(data) == hash


@given(st.binary(), st.binary())
def test_hashing_goes_on_where_it_stopped(first: bytes, second: bytes) -> None:
    assert fnv32a(second, fnv32a(first)) == fnv32a(first + second)


def test_encoding_maps_digits_as_upstream_does() -> None:
    assert safe_encode("0123456789") == "456789bcdf"


@given(st.text())
def test_an_encoded_text_has_only_characters_of_names(text: str) -> None:
    assert len(safe_encode(text)) == len(text)
    assert all(char in ALPHANUMS for char in safe_encode(text))


def test_a_child_is_named_after_its_parent_as_far_as_there_is_room() -> None:
    assert child("web", "6d4b75cb6d") == "web-6d4b75cb6d"
    assert child("w" * 253, "6d4b75cb6d") == "w" * 242 + "-6d4b75cb6d"
    assert len(child("w" * 300, "x", longest=63)) == 63


@pytest.mark.parametrize(("data", "hash"), [(b"", 0x811C9DC5), (b"a", 0x050C5D7E), (b"foobar", 0x31F0B262)])
def test_the_other_order_of_steps_gives_the_published_hashes_too(data: bytes, hash: int) -> None:
    assert fnv32(data) == hash


@pytest.mark.parametrize(
    ("data", "hash"),
    [
        (b"", 0x6C62272E07BB014262B821756295C58D),
        (b"a", 0xD228CB696F1A8CAF78912B704E4A8964),
        (b"foobar", 0x343E1662793C64BF6F0D3597BA446F18),
    ],
)
def test_the_long_hash_is_fnv_1a_of_128_bits(data: bytes, hash: int) -> None:
    assert fnv128a(data) == hash
