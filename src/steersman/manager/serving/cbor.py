"""Plain documents as CBOR (RFC 8949), as Kubernetes writes it: tagged, and with texts as bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_TAG = b"\xd9\xd9\xf7"
"""What says that CBOR follows."""
_BYTES, _LIST, _MAP = 2, 4, 5


def encode(document: object) -> bytes:
    """A document of texts, whole numbers, lists and maps."""
    return _TAG + _encode(document)


def _encode(value: object) -> bytes:
    match value:
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return _head(0, value) if value >= 0 else _head(1, -1 - value)
        case str():
            data = value.encode()
            return _head(_BYTES, len(data)) + data
        case Mapping():
            pairs = sorted((_encode(key), _encode(item)) for key, item in value.items())
            return _head(_MAP, len(pairs)) + b"".join(key + item for key, item in pairs)
        case Sequence():
            return _head(_LIST, len(value)) + b"".join(map(_encode, value))
    raise TypeError(f"{type(value).__qualname__} cannot be written as CBOR")


def _head(major: int, number: int) -> bytes:
    """What kind of thing comes, and how much of it."""
    if number < 24:
        return bytes([major << 5 | number])
    for width, code in ((1, 24), (2, 25), (4, 26), (8, 27)):
        if number < 1 << (8 * width):
            return bytes([major << 5 | code]) + number.to_bytes(width)
    raise ValueError(f"{number} is too large a number for CBOR")
