"""Base64 as Go's ``encoding/base64`` decodes it: line breaks are skipped, padding is required, an error names its byte."""

from __future__ import annotations

import re

_is_plain = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?").fullmatch
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS = b"\r\n"
_PAD = ord("=")


class CorruptBase64(ValueError):
    """A text that is no base64, in the words of Go."""

    def __init__(self, byte: int) -> None:
        super().__init__(f"illegal base64 data at input byte {byte}")


def canonical(text: str) -> str:
    """A base64 text without line breaks. Raises `CorruptBase64`."""
    if _is_plain(text):
        return text
    without = text.replace("\r", "").replace("\n", "")
    if _is_plain(without):
        return without
    raise CorruptBase64(_first_error(text.encode()))


def _first_error(text: bytes) -> int:
    """The byte at which Go stops decoding a text that is no base64."""
    at = place = 0
    while at < len(text):
        char = text[at]
        if char in _ALPHABET:
            place = (place + 1) % 4
        elif char not in _BREAKS:
            return _padding_error(text, at, place) if char == _PAD else at
        at += 1
    return at - place


def _padding_error(text: bytes, at: int, place: int) -> int:
    """The same, from the first padding on, which is at a ``place`` in its group of four."""
    if place < 2:
        return at
    after = _skip_breaks(text, at + 1)
    if place == 2:
        if after == len(text):
            return after
        if text[after] != _PAD:
            return after - 1
        after = _skip_breaks(text, after + 1)
    return after


def _skip_breaks(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in _BREAKS:
        at += 1
    return at
