"""Small PNG files: a truecolour picture with a palette of its 256 most frequent colours, which for a page of text looks the same."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256


def shrink(png: bytes) -> bytes:
    """The same picture with a palette. Takes 8-bit RGB and RGBA without interlacing, as browsers write them; drops alpha."""
    chunks = list(_chunks(png))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError(f"cannot read a PNG of depth {depth}, colour type {kind}, interlacing {interlaced}")
    size = 3 if kind == 2 else 4
    data = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    rows = list(_rows(data, width * size, size))
    pixels = [[row[at : at + 3] for at in range(0, len(row), size)] for row in rows]
    frequent = Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in frequent.most_common(COLOURS)]
    index = {colour: number for number, colour in enumerate(palette)}
    for colour in frequent:
        if colour not in index:
            index[colour] = min(range(len(palette)), key=lambda number: _distance(palette[number], colour))
    packed = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", b"".join(palette)),
        (b"IDAT", zlib.compress(packed, 9)),
        (b"IEND", b""),
    )
    return SIGNATURE + b"".join(_chunk(name, body) for name, body in parts)


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _rows(data: bytes, length: int, size: int) -> Iterator[bytes]:
    """The rows without their filters; ``size`` is the number of bytes of a pixel."""
    before = bytearray(length)
    for at in range(0, len(data), length + 1):
        kind, row = data[at], bytearray(data[at + 1 : at + 1 + length])
        for place in range(length if kind else 0):
            left = row[place - size] if place >= size else 0
            corner = before[place - size] if place >= size else 0
            above = before[place]
            guess = (0, left, above, (left + above) // 2, _paeth(left, above, corner))[kind]
            row[place] = (row[place] + guess) & 0xFF
        yield bytes(row)
        before = row


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    distances = (
        (abs(estimate - left), left),
        (abs(estimate - above), above),
        (abs(estimate - corner), corner),
    )
    return min(distances, key=lambda each: each[0])[1]
