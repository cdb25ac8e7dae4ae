"""Encoding of stored objects as JSON, each of them once.

The JSON of an object is cached by its identity: objects never change, and the response to a write, its watchers
and the next readers are all sent the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds import Struct
from steersman.api.meta import format_micro_time
from steersman.api.scheme import encode_hook
from steersman.server.codec.convert import CODECS, micro_time_paths

dump: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=encode_hook).encode
"""Encodes any value as JSON."""


class EncodingCache:
    """The JSON of objects, by their identity."""

    def __init__(self, max_entries: int = 2048, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._known: BoundedCache[int, tuple[Any, str, bytes]] = BoundedCache(max_entries, max_bytes)

    def get(self, api_version: str, kind: str, obj: Any) -> bytes:
        """An object's JSON, with its ``apiVersion`` and ``kind``."""
        known = self._known.get(id(obj))
        # The entry holds the object, so no other object can have its address.
        if known is not None and known[1] == api_version:
            return known[2]
        made = encode_object(api_version, kind, obj)
        self._known.put(id(obj), (obj, api_version, made), len(made))
        return made


def encode_object(api_version: str, kind: str, obj: Any) -> bytes:
    """An object's JSON, with its ``apiVersion`` and ``kind``."""
    form = CODECS.get(type(obj))
    if form is not None:
        return form.encode(api_version, kind, obj)
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}"'.encode()
    body = dump(with_micro_times(obj))
    return head + (b"}" if body == b"{}" else b"," + body[1:])


def encode_items(api_version: str, kind: str, objects: Sequence[Any]) -> bytes:
    """The items of a list: structs go without ``apiVersion`` and ``kind``, which their list has."""
    if objects and type(objects[0]) in CODECS:
        return b"[" + b",".join(encode_object(api_version, kind, obj) for obj in objects) + b"]"
    return dump([with_micro_times(obj) for obj in objects])


def encode_list(api_version: str, kind: str, metadata: Any, items: bytes) -> bytes:
    """A list of encoded items."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode()
    return b"".join((head, dump(metadata), b',"items":', items, b"}"))


def encode_array(lines: Iterable[bytes]) -> bytes:
    """A JSON array of encoded values."""
    return b"[" + b",".join(lines) + b"]"


# -- MicroTime --------------------------------------------------------------------------------


def with_micro_times(obj: Any) -> Any:
    """An object whose MicroTimes are encoded with six digits, which Go clients insist on, also where all are zero.

    Most objects have none and are returned as they are. Empty ``managedFields`` are left out.
    """
    kind: type[Struct] = type(obj)
    for path in micro_time_paths(kind):
        obj = _with_micro_time(obj, path)
    meta: Any = getattr(obj, "metadata", None)
    owners = () if meta is None else meta.managedFields
    if type(owners) is not tuple and not len(owners):
        # Deferred owners only turn out to be empty when they are counted.
        obj = replace(obj, metadata=replace(meta, managedFields=()))
    return obj


def _with_micro_time(obj: Any, path: tuple[str, ...]) -> Any:
    value = getattr(obj, path[0])
    if len(path) > 1:
        if value is None:
            return obj
        made = _with_micro_time(value, path[1:])
    elif type(value) is datetime and not value.microsecond:
        made = msgspec.Raw(f'"{format_micro_time(value.astimezone(UTC))}"'.encode())
    else:
        return obj
    return obj if made is value else replace(obj, **{path[0]: made})
