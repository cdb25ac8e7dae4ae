"""How owning moves: what an update takes from others, what an apply adds, keeps and takes away.

Documents here are plain, of one kind, without ``managedFields``; owners are `entries.Managed`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.server.apply import field_set
from steersman.server.apply.compare import Comparison, compare
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.fields import fields_in, follow, with_named
from steersman.server.apply.managed_fields import Managed, Manager, Owned, capped
from steersman.server.apply.merge import merge, remove
from steersman.server.apply.schema import Shape

Document: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[FieldSet], FieldSet]
Convert: TypeAlias = Callable[[Document, str], "Document | None"]
"""A document at another API version; None where that is not served."""

_STRIPPED = field_set.of(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
"""What nobody owns: it says which object this is, or is the server's."""


def _all(fields: FieldSet) -> FieldSet:
    return fields


class Terms(msgspec.Struct, frozen=True):
    """What owning is spoken of in: one resource at one version, or a subresource of it."""

    api_version: str
    kind: str
    shape: Shape
    subresource: str = ""
    allowed: Filter = _all
    """The fields that a request can change here at all."""
    convert: Convert | None = None
    at: Callable[[str], Terms | None] | None = None
    """The same at another version; needed where there are several."""

    def since(self, now: datetime) -> datetime | None:
        """Since when whoever writes now owns what it writes. Of scales upstream does not say."""
        return None if self.subresource == "scale" else now


class Conflicts(Exception):
    """Others own some of what was applied, with other values."""

    def __init__(self, fields: dict[Manager, FieldSet]) -> None:
        super().__init__(f"{len(fields)} managers own what was applied")
        self.fields = fields


# -- at other versions ------------------------------------------------------------------------


def _at(document: Document, version: str, terms: Terms) -> tuple[Document, Terms] | None:
    """A document at a version; None where that is not served."""
    if version == terms.api_version:
        return document, terms
    if terms.convert is None or terms.at is None:
        return None
    other, converted = terms.at(version), terms.convert(document, version)
    return None if other is None or converted is None else (converted, other)


def _changes(old: Document, new: Document, version: str, terms: Terms) -> Comparison | None:
    before, after = _at(old, version, terms), _at(new, version, terms)
    if before is None or after is None:
        return None
    found = compare(before[0], after[0], before[1].shape)
    allowed = before[1].allowed
    return found if allowed is _all else Comparison(*map(allowed, found))


def _reconciled(managed: Managed, live: Document, terms: Terms) -> Managed:
    """The owners in terms of the schema as it is now; those at versions no longer served own nothing."""
    made: Managed = {}
    for who, owned in managed.items():
        at = _at(live, owned.version, terms)
        if at is None:
            continue
        shape = at[1].shape
        if owned.shape is not shape:
            owned = owned._replace(fields=follow(owned.fields, shape), shape=shape)
        made[who] = owned
    return made


# -- updates ----------------------------------------------------------------------------------


def updated(
    managed: Managed, old: Document, new: Document, who: Manager, terms: Terms, now: datetime
) -> Managed:
    """The owners after an update: whoever changes a field owns it, and nobody else does."""
    managed = _reconciled(managed, old, terms)
    changes: dict[str, Comparison | None] = {}
    managed = _disowned(managed, old, new, terms, changes)
    mine = changes.get(terms.api_version) or _changes(old, new, terms.api_version, terms)
    assert mine is not None
    taken = field_set.difference(terms.allowed(field_set.union(mine.modified, mine.added)), _STRIPPED)
    if taken:
        before = managed.get(who)
        fields = taken if before is None else field_set.union(taken, before.fields)
        managed[who] = Owned(fields, terms.api_version, terms.since(now), terms.shape)
    return capped(managed)


def _disowned(
    managed: Managed,
    old: Document,
    new: Document,
    terms: Terms,
    changes: dict[str, Comparison | None],
    besides: Manager | None = None,
    force: bool = True,
) -> Managed:
    """The owners without what was changed or removed; fills in the changes at each version.

    Raises `Conflicts` instead, where somebody else's fields would change and that is not forced.
    """
    made: Managed = {}
    conflicts: dict[Manager, FieldSet] = {}
    for who, owned in managed.items():
        if who == besides:
            made[who] = owned
            continue
        if owned.version not in changes:
            changes[owned.version] = _changes(old, new, owned.version, terms)
        change = changes[owned.version]
        if change is None:
            continue
        fields = owned.fields
        lost = field_set.intersection(fields, field_set.union(change.modified, change.added))
        if lost:
            conflicts[who] = lost
            fields = field_set.difference(fields, lost)
        fields = field_set.difference(fields, change.removed)
        if fields:
            made[who] = owned if fields is owned.fields else owned._replace(fields=fields)
    if conflicts and not force:
        raise Conflicts(conflicts)
    return made


# -- apply ------------------------------------------------------------------------------------


def applied(
    managed: Managed, live: Document, patch: Document, who: Manager, terms: Terms, *, force: bool
) -> tuple[Document, Managed]:
    """The document with a patch applied, and its owners. The document is the live one where nothing changed.

    Raises `Conflicts` where others own what would change, unless forced.
    """
    managed = _reconciled(managed, live, terms)
    last = managed.get(who)
    merged: Document = merge(live, patch, terms.shape)
    mine = terms.allowed(fields_in(patch, terms.shape))
    since = None if last is None else last.time
    managed = {**managed, who: Owned(mine, terms.api_version, since, terms.shape)}
    merged = _pruned(merged, managed, last, terms)
    managed = _disowned(managed, live, merged, terms, {}, besides=who, force=force)
    mine = field_set.difference(mine, _STRIPPED)
    if mine:
        managed[who] = managed[who]._replace(fields=mine)
    else:
        managed.pop(who, None)
    return live if merged == live else merged, managed


def _pruned(merged: Document, managed: Managed, last: Owned | None, terms: Terms) -> Document:
    """The merged document without what was applied the last time, is not now, and nobody else owns."""
    if last is None or not last.fields:
        return merged
    at = _at(merged, last.version, terms)
    if at is None:
        return merged
    whole, then = at
    pruned = remove(whole, with_named(last.fields, then.shape), then.shape) or {}
    pruned = _added_back(whole, pruned, then, managed)
    gone = field_set.difference(_named(whole, then), _named(pruned, then))
    # Only what was owned may go; the rest hung on it by accident.
    gone = field_set.intersection(gone, with_named(last.fields, then.shape))
    pruned = remove(whole, gone, then.shape) or {}
    back = _at(pruned, terms.api_version, then)
    return merged if back is None else back[0]


def _named(document: Document, terms: Terms) -> FieldSet:
    return with_named(fields_in(document, terms.shape), terms.shape)


def _added_back(merged: Document, pruned: Document, terms: Terms, managed: Managed) -> Document:
    """What was pruned with all that somebody owns."""
    owned: dict[str, FieldSet] = {}
    for each in managed.values():
        owned[each.version] = field_set.union(owned.get(each.version, {}), each.fields)
    # At the version of what was pruned first: others may need what is added back to be converted.
    for version in sorted(owned, key=lambda version: version != terms.api_version):
        whole, part = _at(merged, version, terms), _at(pruned, version, terms)
        if whole is None or part is None:
            continue
        there = whole[1]
        kept = field_set.union(_named(part[0], there), with_named(owned[version], there.shape))
        left = remove(whole[0], field_set.difference(_named(whole[0], there), kept), there.shape) or {}
        back = _at(left, terms.api_version, there)
        pruned = pruned if back is None else back[0]
    return pruned
