"""The wording of actions in a trace: field names and counts, never field values that could be a secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind, kind_of
from steersman.intent.actions import Address

LONGEST = 160
"""Characters of a message that a trace shows."""
_WITH_KEY = (Object, Address)
SHOWN = 4
"""How many causes, fields or counts are listed before the rest is only counted."""


def field_of(holder: Any, field: str) -> Any:
    """A field of a struct or of a plain document; None if it is missing."""
    # Structs first: the check of an abstract class costs more than all the rest.
    if isinstance(holder, msgspec.Struct):
        return getattr(holder, field, None)
    return holder.get(field) if isinstance(holder, Mapping) else None


def kind_if_known(target: object) -> Kind[Any] | None:
    """The kind of an object or address; None for an object of an unregistered type."""
    if isinstance(target, Address):
        return target.kind
    try:
        return kind_of(target)
    except LookupError:
        return None


def name_target(target: Any) -> str:
    """The kind and key of an object, a document or an address: ``pod default/web-x``."""
    kind = kind_if_known(target)
    return f"{(kind.name if kind is not None else type(target).__name__).lower()} {key_of(target)}"


def key_of(target: Any) -> Key:
    """The namespace and name of an object, a document or an address."""
    if isinstance(target, _WITH_KEY):
        return target.key
    meta = field_of(target, "metadata")
    return Key(field_of(meta, "namespace") or "", field_of(meta, "name") or "")


def changed_counts(old: Any, new: Any) -> Iterator[str]:
    """The integer fields of a status that change: ``replicas 2 -> 3``."""
    fields: Any = new.__struct_fields__ if isinstance(new, msgspec.Struct) else new
    for field in fields if isinstance(fields, tuple | Mapping) else ():
        value = field_of(new, field)
        if type(value) is int:
            before = field_of(old, field)
            if before != value:
                yield f"{field} {before} -> {value}" if type(before) is int else f"{field} {value}"


def patched_fields(body: object) -> Iterator[str]:
    """The fields a patch names, two levels deep, without their values."""
    if not isinstance(body, Mapping):
        if isinstance(body, list | tuple):
            yield from (str(field_of(operation, "path")) for operation in body)
        return
    for field, value in body.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{field}.{inner}" for inner in value)
        else:
            yield field


def enumerate_some(things: tuple[str, ...]) -> str:
    """The first `SHOWN` of some words, and the number of the others: ``a, b, c, d and 2 more``."""
    if len(things) <= SHOWN:
        return ", ".join(things)
    return f"{', '.join(things[:SHOWN])} and {len(things) - SHOWN} more"


def in_parentheses(things: tuple[str, ...]) -> str:
    """Details after a description; empty when there are none."""
    return f" ({enumerate_some(things)})" if things else ""


def shorten(text: str) -> str:
    """A text cut to `LONGEST` characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
