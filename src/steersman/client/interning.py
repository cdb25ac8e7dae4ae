"""Interns values of decoded objects: equal values of many objects share memory.

A thousand pods of one ReplicaSet have the same labels, owner and node names; decoded one by one they hold a thousand
copies. `Interner` determines once for each type which fields are worth sharing. Interning an object costs about as
much as decoding it (12 µs for a pod of 8 KB) and leaves little more than a third of the memory.

Objects are frozen, but these have just been decoded and are not shared yet, so fields are replaced in place by equal
values. Tables are bounded: a full table is cleared, and later values start new copies. A table with hardly any hits
(annotations that contain an address) is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect
from msgspec.structs import force_setattr

T = TypeVar("T")
Intern: TypeAlias = Callable[[Any], Any]
"""Returns an equal value, usually one that other objects hold already."""

INTERNED_FIELDS = frozenset(
    {
        "apiVersion",
        "apiGroup",
        "component",
        "effect",
        "generateName",
        "key",
        "kind",
        "namespace",
        "nodeName",
        "operator",
        "phase",
        "policy",
        "protocol",
        "provisioner",
        "reason",
        "restartPolicy",
        "schedulerName",
        "serviceAccountName",
        "serviceName",
        "status",
        "storageClassName",
        "topologyKey",
        "type",
        "volumeMode",
    }
)
"""String fields, of any kind, whose values many objects have in common."""

MAX_INTERNED_VALUE = 24
"""Characters of a map's value up to which it is interned: short values (``true``, ``8080``) are likely to repeat."""
_MAX_STRINGS = 16384
"""Interned strings after which all are dropped."""


class _InternTable:
    """A bounded table of interned values, which closes when it has too few hits.

    Not a `BoundedCache`: a full table is cleared at once, which is when its hit rate is judged.
    """

    __slots__ = ("hits", "limit", "lookups", "open", "table")

    def __init__(self, limit: int = 4096) -> None:
        self.table: dict[Any, Any] = {}
        self.limit = limit
        self.open = True
        self.lookups = 0
        self.hits = 0

    def find(self, key: Any, value: T) -> T | None:
        """Return the value under a key, if it is equal to this one."""
        self.lookups += 1
        known: T | None = self.table.get(key)
        if known is None or known != value:
            return None
        self.hits += 1
        return known

    def add(self, key: Any, value: object) -> None:
        """Add a value."""
        if len(self.table) >= self.limit:
            self.table.clear()
            # With less than one hit in eight lookups, the hashing costs more than the table saves.
            self.open = self.hits * 8 >= self.lookups
            self.lookups = self.hits = 0
        if self.open:
            self.table[key] = value

    def intern(self, key: Any, value: T) -> T:
        """Return the value in the table that is equal to this one, or add this one."""
        known = self.find(key, value)
        if known is not None:
            return known
        self.add(key, value)
        return value


class Interner:
    """Interns the values of all objects it is given. One instance serves all kinds."""

    def __init__(self) -> None:
        self._strings: dict[str, str] = {}
        self._raws = _InternTable(1024)
        self._recent_times: list[datetime | None] = [None, None]
        self._interners: dict[type, Intern | None] = {}

    def interner_for(self, type_: type[T]) -> Callable[[T], T] | None:
        """Return the function that interns objects of a type; None if the type has nothing to intern."""
        if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
            return None
        info = inspect.type_info(type_)
        assert isinstance(info, inspect.StructType)
        visit = self._struct(info)
        if visit is None:
            return None
        texts = self._strings

        def intern(value: T) -> T:
            if len(texts) > _MAX_STRINGS:
                texts.clear()
            visit(value)
            return value

        return intern

    def _struct(self, info: inspect.StructType) -> Intern | None:
        """Intern one struct: its strings, its times, and the rest.

        The loops are written out for speed: they run for every condition of every pod.
        """
        type_ = info.cls
        if type_ in self._interners:
            return self._interners[type_]
        text = self._strings.setdefault
        recent = self._recent_times
        texts: list[str] = []
        times: list[str] = []
        # The lists are filled below: a type may contain itself, so its function must exist before its fields do.
        others: list[tuple[str, Any, Intern]] = []

        def visit(value: Any) -> Any:
            for field in texts:
                old = getattr(value, field)
                if old:
                    new = text(old, old)
                    if new is not old:
                        force_setattr(value, field, new)
            for field in times:
                old = getattr(value, field)
                if old is not None:
                    # The times within an object are mostly equal. A table would have to hash them, which
                    # costs as much as decoding five more fields.
                    if old == recent[0]:
                        force_setattr(value, field, recent[0])
                    elif old == recent[1]:
                        force_setattr(value, field, recent[1])
                    else:
                        recent[1] = recent[0]
                        recent[0] = old
            for field, default, intern in others:
                old = getattr(value, field)
                # Absent fields have the default value, which is one object for all.
                if old is not default and old:
                    new = intern(old)
                    if new is not old:
                        force_setattr(value, field, new)
            return value

        self._interners[type_] = visit
        for field in info.fields:
            of = _unwrap(field.type)
            if isinstance(of, inspect.StrType):
                texts += [field.name] if field.name in INTERNED_FIELDS else []
            elif isinstance(of, inspect.DateTimeType):
                times.append(field.name)
            elif (intern := self._intern_for(of)) is not None:
                others.append((field.name, field.default, intern))
        if not (texts or times or others):
            self._interners[type_] = None
        return self._interners[type_]

    def _intern_for(self, type_: inspect.Type) -> Intern | None:
        match type_:
            case inspect.RawType():
                return self._raw
            case inspect.DictType(value_type=inspect.StrType()):
                return self._mapping()
            case inspect.VarTupleType(item_type=item):
                return self._tuple(item)
            case inspect.StructType():
                return self._struct(type_)
            case _:
                return None

    def _raw(self, value: msgspec.Raw) -> msgspec.Raw:
        """Copy raw JSON: as decoded it would keep the whole response in memory."""
        content = bytes(value)
        return self._raws.intern(content, msgspec.Raw(content))

    def _mapping(self) -> Intern:
        table = _InternTable()
        text = self._strings.setdefault

        def intern(value: Mapping[str, str]) -> Mapping[str, str]:
            # The server sends keys in order, so equal maps have equal sequences of keys and values.
            key = hash((*value, *value.values())) if table.open else 0
            if table.open and (known := table.find(key, value)) is not None:
                return known
            # msgspec interns keys of up to 32 characters itself.
            if max(map(len, value)) > 32:
                value = {
                    text(k, k): text(v, v) if len(v) <= MAX_INTERNED_VALUE else v for k, v in value.items()
                }
            if table.open:
                table.add(key, value)
            return value

        return intern

    def _tuple(self, item: inspect.Type) -> Intern | None:
        each = self._intern_for(item)
        one_by_one = None if each is None else _for_each(each)
        rare = () if _plain(item) else _optional_complex_fields(item)
        if rare is None:
            return self._encoded(one_by_one) if _plain(item, maps=True) else one_by_one
        table = _InternTable()

        def intern(value: tuple[Any, ...]) -> tuple[Any, ...]:
            if table.open and (
                not rare or all(getattr(each, field) is None for each in value for field in rare)
            ):
                return table.intern(value, value)
            return value if one_by_one is None else one_by_one(value)

        return intern

    def _encoded(self, one_by_one: Intern | None) -> Intern:
        """Intern tuples that contain maps (containers and their resources), which cannot be hashed."""
        table = _InternTable()
        encode = msgspec.msgpack.Encoder().encode

        def intern(value: tuple[Any, ...]) -> tuple[Any, ...]:
            if table.open:
                key = hash(encode(value))
                known = table.find(key, value)
                if known is not None:
                    return known
                if one_by_one is not None:
                    one_by_one(value)
                table.add(key, value)
                return value
            return value if one_by_one is None else one_by_one(value)

        return intern


def _for_each(intern: Intern) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    def visit(value: tuple[Any, ...]) -> tuple[Any, ...]:
        for item in value:
            intern(item)
        return value

    return visit


def _unwrap(type_: inspect.Type) -> inspect.Type:
    """Return X for ``X | None``."""
    if isinstance(type_, inspect.UnionType):
        some = [t for t in type_.types if not isinstance(t, inspect.NoneType)]
        return some[0] if len(some) == 1 else type_
    return type_


def _optional_complex_fields(type_: inspect.Type) -> tuple[str, ...] | None:
    """The fields for which a struct is not plain, where all of them are optional structs: without them it is. Else None."""
    if not isinstance(type_, inspect.StructType) or not type_.cls.__struct_config__.frozen:
        return None
    complex_ = [field for field in type_.fields if not _plain(field.type)]
    if all(
        field.default is None and isinstance(_unwrap(field.type), inspect.StructType) for field in complex_
    ):
        return tuple(field.name for field in complex_)
    return None


def _plain(
    type_: inspect.Type, within: tuple[type, ...] = (), *, maps: bool = False, times: bool = False
) -> bool:
    """Report whether values of this type are cheap to hash and likely to repeat: strings, numbers and structs of them.

    A time makes values unique, unless it is part of an optional struct (how a container ended), which most values do
    not have. With ``maps``, maps of strings count as plain too.
    """
    match type_:
        case inspect.DictType(value_type=inspect.StrType()):
            return maps
        case inspect.StrType() | inspect.IntType() | inspect.BoolType() | inspect.NoneType():
            return True
        case inspect.DateTimeType():
            return times
        case inspect.UnionType(types=types):
            may_be_absent = any(isinstance(t, inspect.NoneType) for t in types)
            return all(
                _plain(
                    t,
                    within,
                    maps=maps,
                    times=times or (may_be_absent and isinstance(t, inspect.StructType)),
                )
                for t in types
            )
        case inspect.VarTupleType(item_type=item):
            return _plain(item, within, maps=maps, times=times)
        case inspect.StructType(cls=cls, fields=fields) if cls not in within:
            deeper = (*within, cls)
            return bool(cls.__struct_config__.frozen) and all(
                _plain(f.type, deeper, maps=maps, times=times) for f in fields
            )
        case _:
            return False
