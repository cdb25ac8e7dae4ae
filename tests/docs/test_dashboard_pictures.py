"""The pictures of the dashboard: small, shown by a document, and with the colours of the browser's."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tools.dashboard_pictures import IMAGES, LARGEST, ROOT
from tools.png_palette import SIGNATURE, shrink

PICTURES = sorted(IMAGES.glob("dashboard-*.png"))


def test_there_are_four() -> None:
    assert [each.stem for each in PICTURES] == [
        f"dashboard-{name}" for name in ("nodes", "object", "overview-dark", "overview-light")
    ]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.stem)
def test_each_is_small_and_shown_in_the_guide(picture: Path) -> None:
    assert picture.stat().st_size <= LARGEST
    assert f"../images/{picture.name}" in (ROOT / "docs" / "guides" / "dashboard.md").read_text("utf-8")


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, rows: list[bytes], kind: int) -> bytes:
    """A PNG of rows that have their filters."""
    header = struct.pack(">IIBBBBB", width, len(rows), 8, kind, 0, 0, 0)
    data = zlib.compress(b"".join(rows))
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def pixels(picture: bytes, width: int) -> list[list[bytes]]:
    """The colours of a PNG with a palette and without filters."""
    palette = picture[picture.index(b"PLTE") + 4 :]
    start = picture.index(b"IDAT")
    (length,) = struct.unpack(">I", picture[start - 4 : start])
    data = zlib.decompress(picture[start + 4 : start + 4 + length])
    rows = [data[at + 1 : at + 1 + width] for at in range(0, len(data), width + 1)]
    return [[palette[3 * number : 3 * number + 3] for number in row] for row in rows]


def test_a_palette_keeps_the_colours_whatever_filter_a_row_has() -> None:
    # Two pixels a row; each row is the first one, by another filter: none, left, above, average, Paeth.
    left, right = bytes((10, 20, 30)), bytes((40, 60, 80))
    delta = bytes(b - a for a, b in zip(left, right, strict=True))
    average = bytes(a - a // 2 for a in left) + bytes(
        b - (a + b) // 2 for a, b in zip(left, right, strict=True)
    )
    rows = [
        b"\0" + left + right,
        b"\1" + left + delta,
        b"\2" + bytes(6),
        b"\3" + average,
        b"\4" + bytes(6),
    ]
    assert pixels(shrink(png(2, rows, 2)), 2) == [[left, right]] * 5


def test_alpha_is_dropped_and_rare_colours_become_their_neighbours() -> None:
    shades = [bytes((value, value, value)) for value in range(256)]
    row = b"\0" + b"".join(shade + b"\xff" for shade in [*shades, *shades, bytes((7, 7, 8))])
    [found] = pixels(shrink(png(513, [row], 6)), 513)
    assert found[:512] == [*shades, *shades]
    assert found[512] == bytes((7, 7, 7))


def test_what_it_can_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="colour type 3"):
        shrink(png(1, [b"\0\0"], 3))
