"""Base64 as Go decodes it: texts that Python decodes, too, and the byte at which Go stops reading others."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.go_base64 import CorruptBase64, canonical


@given(st.binary(), st.integers(0, 9))
def test_what_was_encoded_is_canonical_also_with_line_breaks(data: bytes, width: int) -> None:
    text = b64encode(data).decode()
    broken = "\r\n".join(text[at : at + width] for at in range(0, len(text), width)) if width else text
    assert canonical(broken) == text
    assert b64decode(canonical(broken)) == data


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        ("!!!!", 0),
        ("abc", 0),
        ("abcde", 4),
        ("ab=c", 2),
        ("ab=", 3),
        ("a===", 1),
        ("====", 0),
        ("YWI=YWI=", 4),
        ("YWJj ZGVm", 4),
        ("YWJj\n!", 5),
        ("YQ=\n=\nx", 6),
        ("_-_-", 0),
        ("é", 0),
    ],
)
def test_an_error_names_the_byte_that_go_names(text: str, byte: int) -> None:
    with pytest.raises(CorruptBase64, match=f"^illegal base64 data at input byte {byte}$"):
        canonical(text)
