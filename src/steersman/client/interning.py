"""Let decoded objects share what is the same in many of them, before anybody sees them.

A thousand pods of one ReplicaSet have the same labels, owner and node names; decoded one by one
they hold a thousand copies. `Compactor` looks at a type once and keeps a list of its fields worth
sharing; running down that list costs about as much as the decoding did (12 µs for a pod of 8 KB) and
leaves little more than a third of the memory.

Objects are frozen for everybody else; here they are still ours, so fields are replaced in place by
values that are equal. Tables are bounded: a full one is emptied, which only means that the next
value starts a new copy. A table that hardly ever finds anything (annotations with an address in
them) is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect
from msgspec.structs import force_setattr

T = TypeVar("T")
Sharer: TypeAlias = Callable[[Any], Any]
"""Answers an equal value, as a rule one that others hold already."""

TEXTS = frozenset(
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
"""Fields whose text many objects have in common, whatever kind they stand in."""

SHORT = 24
"""Values of maps up to this long (``true``, ``8080``, ``Helm``) are likely to be common too."""


class _Shelf:
    """A bounded table of values to share, which is given up when it finds too little."""

    __slots__ = ("found", "limit", "open", "table", "tried")

    def __init__(self, limit: int = 4096) -> None:
        self.table: dict[Any, Any] = {}
        self.limit = limit
        self.open = True
        self.tried = 0
        self.found = 0

    def find(self, key: Any, value: T) -> T | None:
        """The value filed under the key, if it is equal to this one."""
        self.tried += 1
        known: T | None = self.table.get(key)
        if known is None or known != value:
            return None
        self.found += 1
        return known

    def file(self, key: Any, value: object) -> None:
        """Keep a value for the next that equals it."""
        if len(self.table) >= self.limit:
            self.table.clear()
            # Less than one hit in eight does not pay for the table and the hashing.
            self.open = self.found * 8 >= self.tried
            self.tried = self.found = 0
        if self.open:
            self.table[key] = value

    def share(self, key: Any, value: T) -> T:
        """A filed value equal to this one, else this one, filed."""
        known = self.find(key, value)
        if known is not None:
            return known
        self.file(key, value)
        return value


class Compactor:
    """Shares between all objects it is given. One per program part that keeps objects is enough."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._raws = _Shelf(1024)
        self._recent: list[datetime | None] = [None, None]
        self._plans: dict[type, Sharer | None] = {}

    def plan(self, type_: type[T]) -> Callable[[T], T] | None:
        """What to call with each new object of this type, or None where nothing can be shared."""
        if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
            return None
        info = inspect.type_info(type_)
        assert isinstance(info, inspect.StructType)
        visit = self._struct(info)
        if visit is None:
            return None
        texts = self._texts

        def compact(value: T) -> T:
            if len(texts) > 16384:
                texts.clear()
            visit(value)
            return value

        return compact

    def _struct(self, info: inspect.StructType) -> Sharer | None:
        """Visit one struct: its texts, its times, and the rest. Written out for speed, it runs for
        every condition of every pod."""
        type_ = info.cls
        if type_ in self._plans:
            return self._plans[type_]
        text = self._texts.setdefault
        recent = self._recent
        texts: list[str] = []
        times: list[str] = []
        # Filled below: a type may contain itself, so its visitor must exist before its fields do.
        others: list[tuple[str, Any, Sharer]] = []

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
                    # Within an object, times are mostly the same few. A table would have to hash
                    # them, which costs as much as decoding five more fields.
                    if old == recent[0]:
                        force_setattr(value, field, recent[0])
                    elif old == recent[1]:
                        force_setattr(value, field, recent[1])
                    else:
                        recent[1] = recent[0]
                        recent[0] = old
            for field, default, share in others:
                old = getattr(value, field)
                # Absent fields have the default, one object for all.
                if old is not default and old:
                    new = share(old)
                    if new is not old:
                        force_setattr(value, field, new)
            return value

        self._plans[type_] = visit
        for field in info.fields:
            of = _unwrap(field.type)
            if isinstance(of, inspect.StrType):
                texts += [field.name] if field.name in TEXTS else []
            elif isinstance(of, inspect.DateTimeType):
                times.append(field.name)
            elif (share := self._sharer(of)) is not None:
                others.append((field.name, field.default, share))
        if not (texts or times or others):
            self._plans[type_] = None
        return self._plans[type_]

    def _sharer(self, type_: inspect.Type) -> Sharer | None:
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
        """Raw JSON of its own: as decoded it would keep the whole document it came in."""
        content = bytes(value)
        return self._raws.share(content, msgspec.Raw(content))

    def _mapping(self) -> Sharer:
        shelf = _Shelf()
        text = self._texts.setdefault

        def share(value: Mapping[str, str]) -> Mapping[str, str]:
            # The server sends keys in order, so equal maps have equal sequences.
            key = hash((*value, *value.values())) if shelf.open else 0
            if shelf.open and (known := shelf.find(key, value)) is not None:
                return known
            # Decoding shares short keys by itself, long ones not.
            if max(map(len, value)) > 32:
                value = {text(k, k): text(v, v) if len(v) <= SHORT else v for k, v in value.items()}
            if shelf.open:
                shelf.file(key, value)
            return value

        return share

    def _tuple(self, item: inspect.Type) -> Sharer | None:
        each = self._sharer(item)
        one_by_one = None if each is None else _for_each(each)
        if not _plain(item):
            return self._encoded(one_by_one) if _plain(item, maps=True) else one_by_one
        shelf = _Shelf()

        def share(value: tuple[Any, ...]) -> tuple[Any, ...]:
            if shelf.open:
                return shelf.share(value, value)
            return value if one_by_one is None else one_by_one(value)

        return share

    def _encoded(self, one_by_one: Sharer | None) -> Sharer:
        """Share tuples with maps in them (containers and what they ask for), which have no hash."""
        shelf = _Shelf()
        encode = msgspec.msgpack.Encoder().encode

        def share(value: tuple[Any, ...]) -> tuple[Any, ...]:
            if shelf.open:
                key = hash(encode(value))
                known = shelf.find(key, value)
                if known is not None:
                    return known
                if one_by_one is not None:
                    one_by_one(value)
                shelf.file(key, value)
                return value
            return value if one_by_one is None else one_by_one(value)

        return share


def _for_each(share: Sharer) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    def visit(value: tuple[Any, ...]) -> tuple[Any, ...]:
        for item in value:
            share(item)
        return value

    return visit


def _unwrap(type_: inspect.Type) -> inspect.Type:
    """The type behind ``X | None``."""
    if isinstance(type_, inspect.UnionType):
        some = [t for t in type_.types if not isinstance(t, inspect.NoneType)]
        return some[0] if len(some) == 1 else type_
    return type_


def _plain(
    type_: inspect.Type, within: tuple[type, ...] = (), *, maps: bool = False, times: bool = False
) -> bool:
    """Whether values of this type are cheap to hash and likely to repeat: text, numbers and
    structs of them. A time makes a value its own, but where it stands in a struct that may be absent
    (how a container ended) most values have none. With ``maps``, those of text may be in them."""
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
