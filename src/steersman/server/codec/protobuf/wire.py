"""Protobuf's wire format: reads the numbered fields of a message, varints, and length-delimited values."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

VARINT, FIXED64, BYTES, START, END, FIXED32 = range(6)
ILLEGAL = (6, 7)


MAX_FIELDS = 250_000
"""The number of fields that all messages of a body may have, unknown ones too: some 0.5 s of work.

differs: upstream has no limit but the size of the body.
"""


class MalformedMessage(ValueError):
    """Bytes that are not a valid protobuf message."""


class FieldBudget:
    """The number of fields that the messages of one body may still have."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def spend(self) -> None:
        """Counts a field. Raises `MalformedMessage` if there are too many."""
        self._left -= 1
        if self._left < 0:
            raise MalformedMessage(f"exceeded max fields of {MAX_FIELDS}")


def read_varint(data: memoryview, offset: int) -> tuple[int, int]:
    """Reads a varint of up to 64 bits; returns it with the offset of its end."""
    value = shift = 0
    for offset in range(offset, min(offset + 10, len(data))):  # noqa: B020
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, offset + 1
        shift += 7
    raise MalformedMessage("proto: integer overflow" if shift == 70 else "unexpected EOF")


def read_fields(data: memoryview, budget: FieldBudget) -> Iterator[tuple[int, int, int, memoryview]]:
    """The fields of a message in order: number, wire type, the value of a varint, the bytes of other types."""
    offset, end = 0, len(data)
    empty = data[:0]
    while offset < end:
        budget.spend()
        tag, offset = read_varint(data, offset)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise MalformedMessage(f"illegal tag {number} (wire type {wire_type})")
        if wire_type == VARINT:
            value, offset = read_varint(data, offset)
            yield number, wire_type, value, empty
            continue
        if wire_type == START:
            offset = _skip_group(data, offset, budget)
            continue
        if wire_type in ILLEGAL:
            # The reader may know the field, which its error names.
            yield number, wire_type, 0, empty
            raise MalformedMessage(f"proto: illegal wireType {wire_type}")
        start, offset = _value_range(data, offset, wire_type)
        yield number, wire_type, 0, data[start:offset]


def _value_range(data: memoryview, offset: int, wire_type: int) -> tuple[int, int]:
    """The range of bytes of a value that is not a varint."""
    if wire_type == BYTES:
        length, offset = read_varint(data, offset)
    elif wire_type == FIXED64:
        length = 8
    elif wire_type == FIXED32:
        length = 4
    else:
        raise MalformedMessage(
            "end of a group that never began" if wire_type == END else f"proto: illegal wireType {wire_type}"
        )
    if length > len(data) - offset:
        raise MalformedMessage("unexpected EOF")
    return offset, offset + length


def _skip_group(data: memoryview, offset: int, budget: FieldBudget) -> int:
    """Skips a group: a deprecated wire type that no known field has."""
    depth = 1
    while depth:
        budget.spend()
        tag, offset = read_varint(data, offset)
        wire_type = tag & 7
        if wire_type == START:
            depth += 1
        elif wire_type == END:
            depth -= 1
        elif wire_type == VARINT:
            _, offset = read_varint(data, offset)
        else:
            _, offset = _value_range(data, offset, wire_type)
    return offset


def to_signed(value: int, bits: int) -> int:
    """A varint as a signed integer of ``bits`` bits, truncated as in Go."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_varints(data: memoryview, budget: FieldBudget) -> Iterator[int]:
    """Reads packed varints."""
    offset = 0
    while offset < len(data):
        budget.spend()
        value, offset = read_varint(data, offset)
        yield value


def read_double(data: memoryview) -> float:
    """Reads a 64-bit float."""
    return float(unpack_from("<d", data)[0])


def read_string(data: memoryview) -> str:
    """Reads a string. differs: upstream accepts invalid UTF-8, which it cannot encode as JSON afterwards."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage("a string is not valid UTF-8") from None
