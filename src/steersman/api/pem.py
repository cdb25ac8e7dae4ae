"""PEM blocks, read exactly as Go's ``encoding/pem`` reads them.

What is signed, approved and shown must be one and the same block. kube-apiserver, kubectl and the controllers of
kube-controller-manager all find it with Go's ``pem.Decode``, whose rules are its own: a block begins at the start of
a line, the last BEGIN before an END counts, and a block that cannot be read is skipped. A reader that differs in any
of these signs another request than the one a person approved.

Reading takes linear time: every attempt ends behind the END line it looked at.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping

import msgspec

_BEGIN = b"-----BEGIN "
_END = b"\n-----END "
_DASHES = b"-----"
_GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""What Go's ``bytes.TrimSpace`` takes off."""


class Block(msgspec.Struct, frozen=True):
    """One PEM block."""

    type: str
    """Between BEGIN and the dashes: ``CERTIFICATE REQUEST``."""
    headers: Mapping[str, str]
    content: bytes
    """The decoded bytes, usually DER."""


def decode(data: bytes, start: int = 0) -> tuple[Block, int] | None:
    """Return the first block at or after ``start`` and the offset behind its END line; None if there is none."""
    position = start
    while True:
        end = data.find(_END, position)
        if end < 0:
            return None
        trailer = end + len(_END)
        # The last BEGIN before the END, so that a BEGIN without an END of its own is skipped.
        begin = data.rfind(_BEGIN, position, end)
        if begin < 0 or (begin > position and data[begin - 1] != 0x0A):
            position = trailer
            continue
        type_line, cursor = _line(data, begin + len(_BEGIN))
        if not type_line.endswith(_DASHES):
            position = trailer
            continue
        type_ = type_line[: -len(_DASHES)]
        headers: dict[str, str] = {}
        while True:
            if cursor >= len(data):
                return None
            line, following = _line(data, cursor)
            key, colon, value = line.partition(b":")
            if not colon:
                break
            headers[_text(key)] = _text(value)
            cursor = following
        if trailer < cursor:
            # The END line has a colon and was taken for a header: Go gives up on the whole input.
            return None
        position = trailer
        if headers and end < cursor:
            continue  # headers are followed by a line end of their own
        closing = type_ + _DASHES
        if not data.startswith(closing, trailer) or _line(data, trailer + len(closing))[0]:
            continue
        try:
            content = _base64(data[cursor:end]) if end > cursor else b""
        except binascii.Error:
            continue
        _, behind = _line(data, trailer - 1)
        return Block(_decoded(type_), headers, content), behind


def blocks(data: bytes) -> Iterator[Block]:
    """Yield every block, in order."""
    position = 0
    while (found := decode(data, position)) is not None:
        block, position = found
        yield block


def _line(data: bytes, start: int) -> tuple[bytes, int]:
    """The line at an offset without its end and trailing blanks, and the offset of the next one."""
    end = data.find(b"\n", start)
    if end < 0:
        return data[start:].rstrip(b" \t"), len(data)
    stop = end - 1 if end > start and data[end - 1] == 0x0D else end
    return data[start:stop].rstrip(b" \t"), end + 1


def _base64(text: bytes) -> bytes:
    """Decode standard base64 with padding; blanks and line ends may stand anywhere. Raises `binascii.Error`."""
    return binascii.a2b_base64(text.translate(None, b" \t\r\n"), strict_mode=True)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _text(raw: bytes) -> str:
    return _decoded(raw).strip(_GO_SPACE)
