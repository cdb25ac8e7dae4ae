"""The types of CEL expressions, and their names in messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Sort(Enum):
    """The kind of a type, apart from its name and parameters."""

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


_DISPLAY_NAMES = {
    Sort.ANY: "any",
    Sort.DURATION: "duration",
    Sort.ERROR: "!error!",
    Sort.NULL: "null",
    Sort.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type. A struct is identified by its name; its fields are in the environment."""

    sort: Sort
    name: str
    of: tuple[Type, ...] = ()
    size: int = field(init=False, compare=False, repr=False)
    """The number of types it consists of."""
    open: bool = field(init=False, compare=False, repr=False)
    """Whether it contains a type parameter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(one.size for one in self.of))
        is_open = self.sort is Sort.PARAMETER or any(one.open for one in self.of)
        object.__setattr__(self, "open", is_open)

    def __str__(self) -> str:
        spoken = _DISPLAY_NAMES.get(self.sort)
        if spoken is not None:
            return spoken
        return f"{self.name}({', '.join(map(str, self.of))})" if self.of else self.name

    @property
    def dynamic(self) -> bool:
        """The type is dynamic: its values may have any type."""
        return self.sort is Sort.DYN or self.sort is Sort.ANY

    @property
    def lenient(self) -> bool:
        """The type is dynamic, or that of an erroneous part: it causes no further errors."""
        return self.dynamic or self.sort is Sort.ERROR


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
    """Return the type of a type name, such as ``int`` in ``type(x) == int``."""
    return Type(Sort.TYPE, "type", (what,))


def struct(name: str) -> Type:
    return Type(Sort.STRUCT, name)


def parameter(name: str) -> Type:
    """Return a type parameter, of a signature or not yet determined."""
    return Type(Sort.PARAMETER, name)


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """Return the value type of an optional, and whether the type was an optional."""
    if type_.sort is Sort.OPAQUE and type_.name == "optional_type" and type_.of:
        return type_.of[0], True
    return type_, False
