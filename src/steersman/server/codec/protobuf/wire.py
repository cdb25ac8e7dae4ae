"""Protobuf's wire format: a message as numbered values, and those as scalars."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

VARINT, FIXED64, BYTES, START, END, FIXED32 = range(6)


class MalformedMessage(ValueError):
    """Bytes that are no such message."""


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and where it ends."""
    value = shift = 0
    for at in range(at, min(at + 10, len(data))):  # noqa: B020  (the rest of the range is what is read)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
    raise MalformedMessage("integer overflow" if shift == 70 else "unexpected EOF")


def read_fields(data: memoryview) -> Iterator[tuple[int, int, int, memoryview]]:
    """The fields of a message in order: number, wire type, value if a varint, bytes if anything else."""
    at, end = 0, len(data)
    nothing = data[:0]
    while at < end:
        tag, at = read_varint(data, at)
        number, form = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise MalformedMessage(f"illegal tag {number} (wire type {form})")
        if form == VARINT:
            value, at = read_varint(data, at)
            yield number, form, value, nothing
            continue
        if form == START:
            at = _skip_group(data, at)
            continue
        start, at = _value_range(data, at, form)
        yield number, form, 0, data[start:at]


def _value_range(data: memoryview, at: int, form: int) -> tuple[int, int]:
    """Where a value that is no varint begins and ends."""
    if form == BYTES:
        length, at = read_varint(data, at)
    elif form == FIXED64:
        length = 8
    elif form == FIXED32:
        length = 4
    else:
        raise MalformedMessage(
            "end of a group that never began" if form == END else f"illegal wire type {form}"
        )
    if length > len(data) - at:
        raise MalformedMessage("unexpected EOF")
    return at, at + length


def _skip_group(data: memoryview, at: int) -> int:
    """Groups have been given up long ago; nothing here has one, so it can only be an unknown field."""
    depth = 1
    while depth:
        tag, at = read_varint(data, at)
        form = tag & 7
        if form == START:
            depth += 1
        elif form == END:
            depth -= 1
        elif form == VARINT:
            _, at = read_varint(data, at)
        else:
            _, at = _value_range(data, at, form)
    return at


def to_signed(value: int, bits: int) -> int:
    """A varint as a signed number of so many bits; what is beyond them is cut off, as in Go."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_varints(data: memoryview) -> Iterator[int]:
    """Packed numbers."""
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        yield value


def read_double(data: memoryview) -> float:
    """Eight bytes as a float."""
    return float(unpack_from("<d", data)[0])


def read_string(data: memoryview) -> str:
    """differs: upstream takes text that is no UTF-8, and cannot write it as JSON afterwards."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage("a string is not valid UTF-8") from None
