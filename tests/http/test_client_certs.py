"""Reading certificates from a handshake: whatever bytes come, nothing breaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.http.client_certs import certificates


def sized(data: bytes, width: int = 3) -> bytes:
    return len(data).to_bytes(width) + data


def message(chain: list[bytes], *, modern: bool, context: bytes = b"", extensions: bytes = b"") -> bytes:
    """A Certificate message as RFC 5246 and RFC 8446 have it."""
    entries = b"".join(sized(one) + (sized(extensions, 2) if modern else b"") for one in chain)
    body = (sized(context, 1) if modern else b"") + sized(entries)
    return b"\x0b" + sized(body)


@pytest.mark.parametrize("modern", [False, True])
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=4), st.binary(max_size=9), st.binary(max_size=9))
def test_all_certificates_are_found(
    modern: bool, chain: list[bytes], context: bytes, extensions: bytes
) -> None:
    sent = message(chain, modern=modern, context=context, extensions=extensions)
    assert list(certificates(sent, modern=modern)) == chain


@given(st.binary(max_size=64), st.booleans())
def test_no_bytes_break_it(data: bytes, modern: bool) -> None:
    assert sum(map(len, certificates(data, modern=modern))) <= len(data)
