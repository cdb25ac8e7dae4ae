"""What the numbers of a message's fields stand for, from the file ``tools/generate_protobuf.py`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import msgspec


class Field(NamedTuple):
    """A field of a message."""

    name: str
    """As in JSON."""
    type: str
    """A scalar, one of the few types with a JSON form of their own, or another message."""
    repeated: bool = False
    map: bool = False
    inline: bool = False
    """Whether its fields are those of the outer message in JSON."""
    drops_zero: bool = False
    """Whether JSON leaves it out where it is zero; protobuf has it nevertheless."""


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    raw = files("steersman.server.codec.protobuf").joinpath("fields.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, list[str]]])


def known(message: str) -> bool:
    """Whether there is such a message, such as ``apps_v1.Deployment``."""
    return message in _table()


@cache
def fields(message: str) -> Mapping[int, Field]:
    """The fields of a message by their numbers."""
    return {int(number): _field(*row) for number, row in _table()[message].items()}


def _field(name: str, type_: str, flags: str = "") -> Field:
    return Field(name, type_, "r" in flags, "m" in flags, "i" in flags, "z" in flags)
