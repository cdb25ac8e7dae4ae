"""The declarations of CEL's standard library: operators, conversions, strings, times and optionals."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.cel import types
from steersman.api.cel.signatures import signatures
from steersman.api.cel.types import Type, list_of, map_of, parameter, type_of

_ORDERED = (
    ("bool", "bool"),
    *((one, other) for one in ("int", "uint", "double") for other in ("int", "uint", "double")),
    *((one, one) for one in ("string", "bytes", "timestamp", "duration")),
)
"""Pairs of types that can be compared: numbers with each other, other types with themselves."""

_TIMES = [
    "FullYear",
    "Month",
    "DayOfYear",
    "DayOfMonth",
    "Date",
    "DayOfWeek",
    "Hours",
    "Minutes",
    "Seconds",
    "Milliseconds",
]

OPERATORS = signatures(
    """
    _?_:_(bool, A, A): A
    _&&_(bool, bool): bool
    _||_(bool, bool): bool
    !_(bool): bool
    @not_strictly_false(bool): bool
    _==_(A, A): bool
    _!=_(A, A): bool
    _+_(bytes, bytes): bytes
    _+_(double, double): double
    _+_(duration, duration): duration
    _+_(duration, timestamp): timestamp
    _+_(timestamp, duration): timestamp
    _+_(int, int): int
    _+_(list<A>, list<A>): list<A>
    _+_(string, string): string
    _+_(uint, uint): uint
    _/_(double, double): double
    _/_(int, int): int
    _/_(uint, uint): uint
    _%_(int, int): int
    _%_(uint, uint): uint
    _*_(double, double): double
    _*_(int, int): int
    _*_(uint, uint): uint
    -_(double): double
    -_(int): int
    _-_(double, double): double
    _-_(duration, duration): duration
    _-_(int, int): int
    _-_(timestamp, duration): timestamp
    _-_(timestamp, timestamp): duration
    _-_(uint, uint): uint
    _[_](list<A>, int): A
    _[_](map<A, B>, A): B
    @in(A, list<A>): bool
    @in(A, map<A, B>): bool
    """,
    *(f"_{mark}_({one}, {other}): bool" for mark in ("<", "<=", ">", ">=") for one, other in _ORDERED),
)

FUNCTIONS = signatures(
    """
    size(bytes): int
    bytes::size(): int
    size(list<A>): int
    list<A>::size(): int
    size(map<A, B>): int
    map<A, B>::size(): int
    size(string): int
    string::size(): int
    type(A): type<A>
    bool(bool): bool
    bool(string): bool
    bytes(bytes): bytes
    bytes(string): bytes
    double(double): double
    double(int): double
    double(string): double
    double(uint): double
    duration(duration): duration
    duration(int): duration
    duration(string): duration
    dyn(A): dyn
    int(int): int
    int(double): int
    int(duration): int
    int(string): int
    int(timestamp): int
    int(uint): int
    string(string): string
    string(bool): string
    string(bytes): string
    string(double): string
    string(duration): string
    string(int): string
    string(timestamp): string
    string(uint): string
    timestamp(timestamp): timestamp
    timestamp(int): timestamp
    timestamp(string): timestamp
    uint(uint): uint
    uint(double): uint
    uint(int): uint
    uint(string): uint
    string::contains(string): bool
    string::endsWith(string): bool
    string::startsWith(string): bool
    matches(string, string): bool
    string::matches(string): bool
    """,
    *(f"timestamp::get{part}(): int\ntimestamp::get{part}(string): int" for part in _TIMES),
    *(f"duration::get{part}(): int" for part in _TIMES[-4:]),
)

OPTIONALS = signatures(
    """
    optional.of(V): optional<V>
    optional.ofNonZeroValue(V): optional<V>
    optional.none(): optional<V>
    optional<V>::value(): V
    optional<V>::hasValue(): bool
    optional<V>::or(optional<V>): optional<V>
    optional<V>::orValue(V): V
    _?._(dyn, string): optional<V>
    _[?_](list<V>, int): optional<V>
    _[?_](optional<list<V>>, int): optional<V>
    _[?_](map<K, V>, K): optional<V>
    _[?_](optional<map<K, V>>, K): optional<V>
    _[_](optional<list<V>>, int): optional<V>
    _[_](optional<map<K, V>>, K): optional<V>
    list<V>::last(): optional<V>
    list<V>::first(): optional<V>
    optional.unwrap(list<optional<V>>): list<V>
    list<optional<V>>::unwrapOpt(): list<V>
    """
)

_PLAIN = (types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING)
NAMES: Mapping[str, Type] = {
    **{plain.name: type_of(plain) for plain in (*_PLAIN, types.TIMESTAMP, types.UINT)},
    "type": type_of(types.TYPE),
    "list": type_of(list_of(parameter("A"))),
    "map": type_of(map_of(parameter("A"), parameter("B"))),
    "optional_type": type_of(types.OPTIONAL),
}
"""Type names, which are also values."""
