"""Owners of fields, worked out when somebody looks.

Most writes are those of our own control loops, and nobody ever asks who owns a pod's conditions. So a write
leaves behind a `Deferred`: the owners before, and what was written over what. It stands in an object's
``managedFields`` and works itself out when it is read, encoded or applied to; then it forgets what it
came from. Objects are frozen and share their parts, so what it holds meanwhile is little.

See ``docs/adr/0003-managed-fields.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias, overload

import msgspec
from msgspec.structs import replace

from steersman.api.generated.meta_v1 import ManagedFieldsEntry
from steersman.server import apply as ssa
from steersman.server.apply import field_set, managed_fields
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.managed_fields import Managed
from steersman.server.apply.ownership import Document, Terms
from steersman.server.apply.shape_key import likeness
from steersman.server.lru import Recent

DEEPEST = 32
"""How many writes are put off at most: each keeps what it wrote over alive."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """One write that nobody has looked at."""

    owning: Owning
    old: Any
    """None for a creation."""
    new: Any
    """As it was asked for, before the resource had its say."""
    manager: str
    now: datetime

    def worked_out(self, managed: Managed) -> Managed:
        """The owners afterwards, given those before."""
        owning = self.owning
        if self.old is None and not managed:
            return owning.begun(self.new, self.manager, self.now)
        old, new = owning.pair(self.old, self.new)
        made = ssa.track(
            old,
            new,
            self.manager,
            managed,
            terms=owning.terms,
            now=self.now,
            empty=owning.empty,
        )
        for who, owned in made.items():
            before = managed.get(who)
            if before is None or owned.fields is not before.fields:
                made[who] = owned._replace(fields=field_set.shared(owned.fields))
        return made


class Deferred(Sequence[ManagedFieldsEntry]):
    """The ``managedFields`` of an object: the entries, once somebody wants to see them."""

    __slots__ = ("_base", "_depth", "_entries", "_managed", "_write")

    def __init__(self, base: Owners, write: Write | None = None, managed: Managed | None = None) -> None:
        self._base: Owners = base
        self._write = write
        self._managed = managed
        self._entries: tuple[ManagedFieldsEntry, ...] | None = None
        self._depth: int = base._depth + 1 if isinstance(base, Deferred) else 1
        if self._depth > DEEPEST:
            self.managed()

    def managed(self) -> Managed:
        """The owners."""
        chain: list[tuple[Deferred, Write]] = []
        at: Owners = self
        managed: Managed | None = None
        while isinstance(at, Deferred):
            base, write = at._base, at._write
            # In this order: a thread that writes to disk may be working out the same.
            managed = at._managed
            if managed is not None:
                break
            assert write is not None
            chain.append((at, write))
            at = base
        else:
            managed = managed_fields.readable(at)
        managed = managed or {}
        for each, write in reversed(chain):
            managed = each._managed = write.worked_out(managed)
            each._base, each._write, each._depth = (), None, 0
        return managed

    def entries(self) -> tuple[ManagedFieldsEntry, ...]:
        """The entries, in order."""
        if self._entries is None:
            try:
                self._entries = managed_fields.write(self.managed())
            except RecursionError:
                # What is nested too far to be followed has no owners.
                self._entries, self._managed = (), {}
        return self._entries

    # -- as the tuple it stands for -----------------------------------------------------------

    def __bool__(self) -> bool:
        """Whether there may be owners; not looked at until it matters."""
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
        return isinstance(other, (Deferred, tuple)) and self.entries() == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # what it stands for has none either

    def __repr__(self) -> str:
        return f"<managedFields, {'put off' if self._managed is None else repr(self.entries())}>"


Owners: TypeAlias = "Deferred | tuple[ManagedFieldsEntry, ...]"
"""What ``managedFields`` holds in a stored object."""


def known(managed: Managed) -> Owners:
    """Owners that have been worked out already."""
    return Deferred((), managed=managed) if managed else ()


def owners_of(owners: Owners) -> Managed:
    """The owners in an object's ``managedFields``; none where those make no sense."""
    return owners.managed() if isinstance(owners, Deferred) else managed_fields.readable(owners) or {}


def same(one: Owners, other: Owners) -> bool:
    """Whether the same managers own the same fields; since when does not matter."""
    if one is other:
        return True
    mine, theirs = owners_of(one), owners_of(other)
    return mine.keys() == theirs.keys() and all(owned[:2] == theirs[who][:2] for who, owned in mine.items())


_begun: Recent[tuple[Owning, tuple[Any, ...]], tuple[FieldSet, tuple[Any, ...]]] = Recent(1024)
"""The fields of new objects by what they are like, and the parts that were told apart by their addresses.

Many objects are alike: a controller makes pods of one template, a client events of one form. Those that are
share one set, so it is written and kept once.
"""


class Owning(msgspec.Struct, frozen=True, eq=False):
    """How owning is followed for one resource, or for one of its subresources."""

    terms: Terms
    document: Callable[[Any], Document]
    """A stored object as a plain document, without ``managedFields``."""
    empty: Document
    """What an object looks like of which nothing is said."""
    blank: Any
    """The same as an object."""

    def pair(self, old: Any, new: Any) -> tuple[Document | None, Document]:
        """Two objects to be compared as documents; without the parts they share, which are equal."""
        if old is None:
            return None, self.document(new)
        parts = [name for name in new.__struct_fields__ if getattr(old, name) is not getattr(new, name)]
        before = {name: getattr(old, name) for name in parts}
        after = {name: getattr(new, name) for name in parts}
        blank = self.blank
        return self.document(replace(blank, **before)), self.document(replace(blank, **after))

    def created(self, new: Any, manager: str, now: datetime) -> Owners:
        """The owners of a new object; nobody's where nothing is said of it."""
        if self._says_nothing(new):
            return ()
        given: Owners = new.metadata.managedFields
        if given and (managed_fields.is_reset(tuple(given)) or not owners_of(given)):
            given = ()
        return Deferred(given, Write(self, None, new, manager, now))

    def begun(self, new: Any, manager: str, now: datetime) -> Managed:
        """The owners of a new object that had none: the manager, of all that is said of it."""
        terms = self.terms
        like = likeness(new, self.blank)
        known = _begun.get((self, like.key)) if like is not None else None
        if known is not None:
            fields = known[0]
        else:
            made = ssa.track(None, self.document(new), manager, {}, terms=terms, now=now, empty=self.empty)
            fields = field_set.shared(next(iter(made.values())).fields) if made else {}
            if like is not None:
                _begun.put((self, like.key), (fields, like.parts))
        if not fields:
            return {}
        who = managed_fields.manager(manager, managed_fields.UPDATE, terms.api_version, terms.subresource)
        return {who: managed_fields.Owned(fields, terms.api_version, now, terms.shape)}

    def _says_nothing(self, new: Any) -> bool:
        meta = new.metadata
        if meta.labels or meta.annotations or meta.finalizers or meta.ownerReferences or meta.generateName:
            return False
        return bool(replace(new, metadata=self.blank.metadata) == self.blank)

    def changed(self, old: Any, new: Any, manager: str, now: datetime) -> Owners:
        """The owners of an object that is written over; nobody's where nobody kept track."""
        base: Owners = old.metadata.managedFields
        given: Owners = new.metadata.managedFields
        # Whoever writes the object itself may say who owns it; on subresources that is not listened to.
        if given is not base and given and not self.terms.subresource:
            if isinstance(given, Deferred):
                base = given
            elif managed_fields.is_reset(tuple(given)):
                base = ()
            elif managed := managed_fields.readable(given):
                base = known(managed)
        return Deferred(base, Write(self, old, new, manager, now)) if base else ()

    def applied(
        self, old: Any, patch: Document, manager: str, now: datetime, *, force: bool
    ) -> tuple[Document | None, Owners]:
        """What becomes of an object (None: a new one) when a patch is applied, and who owns it then.

        The document is None where nothing changes about one that is there. Raises what `apply` does.
        """
        live = self.empty if old is None else self.document(old)
        made = ssa.apply(
            live,
            patch,
            manager,
            {} if old is None else owners_of(old.metadata.managedFields),
            terms=self.terms,
            now=now,
            force=force,
            empty=self.empty,
        )
        unchanged = old is not None and made.document is live
        return None if unchanged else made.document, known(made.managed)
