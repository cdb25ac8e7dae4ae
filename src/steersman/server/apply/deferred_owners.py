"""Managed fields that are computed on first read.

Most writes come from our own control loops, and the managed fields of such an object are rarely read. A write
therefore stores a `DeferredManagedFields` in ``metadata.managedFields``: the managed fields before the write,
and the write itself. It computes its entries when it is read, encoded or applied to, and then drops what it
was computed from. Objects are frozen and share their parts, so a pending write holds little memory.

See ``docs/adr/0003-managed-fields.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias, overload

import msgspec

from steersman.api.generated.meta_v1 import ManagedFieldsEntry
from steersman.server.apply import managed_fields
from steersman.server.apply.managed_fields import ManagedFields

MAX_PENDING_WRITES = 32
"""How many writes may be pending on one object: each keeps the object it replaced alive."""


class WriteTracker(Protocol):
    """Computes the managed fields after a write; see `field_manager.FieldManager`."""

    def managed_after(
        self, managed: ManagedFields, old: Any, new: Any, manager: str, now: datetime
    ) -> ManagedFields:
        """The managed fields after ``manager`` wrote ``new`` over ``old`` (None for a creation)."""
        ...


class PendingWrite(msgspec.Struct, frozen=True, gc=False):
    """One write whose managed fields have not been computed yet."""

    tracker: WriteTracker
    old: Any
    """The object before; None for a creation."""
    new: Any
    """The object as requested, before admission and the registry's strategy changed it."""
    manager: str
    now: datetime


class DeferredManagedFields(Sequence[ManagedFieldsEntry]):
    """The ``managedFields`` of an object, computed on first read."""

    __slots__ = ("_base", "_depth", "_entries", "_managed", "_write")

    def __init__(
        self,
        base: StoredManagedFields,
        write: PendingWrite | None = None,
        managed: ManagedFields | None = None,
    ) -> None:
        self._base: StoredManagedFields = base
        self._write = write
        self._managed = managed
        self._entries: tuple[ManagedFieldsEntry, ...] | None = None
        self._depth: int = base._depth + 1 if isinstance(base, DeferredManagedFields) else 1
        if self._depth > MAX_PENDING_WRITES:
            self.managed()

    def managed(self) -> ManagedFields:
        """The managed fields by manager."""
        chain: list[tuple[DeferredManagedFields, PendingWrite]] = []
        at: StoredManagedFields = self
        managed: ManagedFields | None = None
        while isinstance(at, DeferredManagedFields):
            base, write = at._base, at._write
            # Read in this order: the thread that writes to disk may be computing the same fields.
            managed = at._managed
            if managed is not None:
                break
            assert write is not None
            chain.append((at, write))
            at = base
        else:
            managed = managed_fields.read_or_none(at)
        managed = managed or {}
        for each, write in reversed(chain):
            managed = each._managed = write.tracker.managed_after(
                managed, write.old, write.new, write.manager, write.now
            )
            each._base, each._write, each._depth = (), None, 0
        return managed

    def entries(self) -> tuple[ManagedFieldsEntry, ...]:
        """The managed fields entries, in upstream's order."""
        if self._entries is None:
            try:
                self._entries = managed_fields.write(self.managed())
            except RecursionError:
                # A document nested too deeply to compare has no managed fields.
                self._entries, self._managed = (), {}
        return self._entries

    # -- sequence protocol --------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Whether there may be entries; does not compute them."""
        return self._managed is None or bool(self._managed)

    def __len__(self) -> int:
        return len(self.entries())

    def __iter__(self) -> Iterator[ManagedFieldsEntry]:
        return iter(self.entries())

    @overload
    def __getitem__(self, index: int) -> ManagedFieldsEntry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ManagedFieldsEntry, ...]: ...

    def __getitem__(self, index: int | slice) -> ManagedFieldsEntry | tuple[ManagedFieldsEntry, ...]:
        return self.entries()[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, (DeferredManagedFields, tuple)) and self.entries() == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # entries hold dicts, so the tuple is not hashable either

    def __repr__(self) -> str:
        return f"<managedFields, {'pending' if self._managed is None else repr(self.entries())}>"


StoredManagedFields: TypeAlias = "DeferredManagedFields | tuple[ManagedFieldsEntry, ...]"
"""The value of ``metadata.managedFields`` in a stored object."""


def computed(managed: ManagedFields) -> StoredManagedFields:
    """Managed fields that are computed already, as objects store them."""
    return DeferredManagedFields((), managed=managed) if managed else ()


def managed_of(stored: StoredManagedFields) -> ManagedFields:
    """The managed fields an object stores; empty if its entries are malformed."""
    if isinstance(stored, DeferredManagedFields):
        return stored.managed()
    return managed_fields.read_or_none(stored) or {}


def same_ownership(one: StoredManagedFields, other: StoredManagedFields) -> bool:
    """Whether the same managers own the same fields; times are ignored."""
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) != len(other):
        # Two entries of one manager, which a write of the scale leaves, count as one when they are read.
        return False
    mine, theirs = managed_of(one), managed_of(other)
    return mine.keys() == theirs.keys() and all(
        owned[:2] == theirs[manager][:2] for manager, owned in mine.items()
    )
