"""Stored objects to JSON, each of them once.

What is encoded is remembered for a while by the object it came from: objects never change, and the answer to
a write, everybody who watches it and whoever reads it next are all sent the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.scheme import unusual
from steersman.server.crd.custom import Custom
from steersman.server.http.micro_time import exact

dump: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=unusual).encode
"""Anything as JSON."""


class Encoded:
    """JSON by the object it is of."""

    def __init__(self, max_entries: int = 2048, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._known: BoundedCache[int, tuple[Any, str, bytes]] = BoundedCache(max_entries, max_bytes)

    def get(self, api_version: str, kind: str, obj: Any) -> bytes:
        """An object's JSON, with its ``apiVersion`` and ``kind``."""
        known = self._known.get(id(obj))
        if known is not None and known[1] == api_version:
            return known[2]
        made = whole(api_version, kind, obj)
        self._known.put(id(obj), (obj, api_version, made), len(made))
        return made


def whole(api_version: str, kind: str, obj: Any) -> bytes:
    """An object's JSON, with its ``apiVersion`` and ``kind``."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}"'.encode()
    if type(obj) is Custom:
        head += b',"metadata":' + dump(obj.metadata)
        body = dump(obj.content)
    else:
        body = dump(exact(obj))
    return head + (b"}" if body == b"{}" else b"," + body[1:])


def items(api_version: str, kind: str, objects: Sequence[Any]) -> bytes:
    """Objects as the items of a list: structs without what their list says of all of them."""
    if objects and type(objects[0]) is Custom:
        return b"[" + b",".join(whole(api_version, kind, obj) for obj in objects) + b"]"
    return dump([exact(obj) for obj in objects])


def listed(api_version: str, kind: str, metadata: Any, items: bytes) -> bytes:
    """A list, of items that are encoded already."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode()
    return b"".join((head, dump(metadata), b',"items":', items, b"}"))


def joined(lines: Iterable[bytes]) -> bytes:
    """A JSON array of what is encoded already."""
    return b"[" + b",".join(lines) + b"]"
