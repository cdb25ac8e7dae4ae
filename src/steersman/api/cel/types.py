"""The types of CEL expressions, and how they are written in messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Sort(Enum):
    """What a type is, before its name and parameters."""

    DYN = "dyn"
    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    PARAMETER = "parameter"
    UINT = "uint"


_SPOKEN = {
    Sort.ANY: "any",
    Sort.DURATION: "duration",
    Sort.ERROR: "!error!",
    Sort.NULL: "null",
    Sort.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type. Two are the same where all three say the same; what fields a struct has is known by its name."""

    sort: Sort
    name: str
    of: tuple[Type, ...] = ()

    def __str__(self) -> str:
        spoken = _SPOKEN.get(self.sort)
        if spoken is not None:
            return spoken
        return f"{self.name}({', '.join(map(str, self.of))})" if self.of else self.name

    @property
    def loose(self) -> bool:
        """Whether it may turn out to be anything."""
        return self.sort is Sort.DYN or self.sort is Sort.ANY

    @property
    def vague(self) -> bool:
        """Loose, or the type of what is wrong already: nothing more is to be said about it."""
        return self.loose or self.sort is Sort.ERROR


DYN = Type(Sort.DYN, "dyn")
ANY = Type(Sort.ANY, "google.protobuf.Any")
BOOL = Type(Sort.BOOL, "bool")
BYTES = Type(Sort.BYTES, "bytes")
DOUBLE = Type(Sort.DOUBLE, "double")
DURATION = Type(Sort.DURATION, "google.protobuf.Duration")
ERROR = Type(Sort.ERROR, "error")
INT = Type(Sort.INT, "int")
NULL = Type(Sort.NULL, "null_type")
STRING = Type(Sort.STRING, "string")
OPTIONAL = Type(Sort.OPAQUE, "optional_type")
TIMESTAMP = Type(Sort.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(Sort.TYPE, "type")
UINT = Type(Sort.UINT, "uint")


def list_of(element: Type) -> Type:
    return Type(Sort.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Sort.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Sort.OPAQUE, "optional_type", (value,))


def type_of(what: Type) -> Type:
    """The type of a type's name: what ``int`` is in ``type(x) == int``."""
    return Type(Sort.TYPE, "type", (what,))


def struct(name: str) -> Type:
    return Type(Sort.STRUCT, name)


def parameter(name: str) -> Type:
    """What a signature leaves open, or an expression has not settled yet."""
    return Type(Sort.PARAMETER, name)


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """What is in an optional, and whether it was one."""
    if type_.sort is Sort.OPAQUE and type_.name == "optional_type" and type_.of:
        return type_.of[0], True
    return type_, False
