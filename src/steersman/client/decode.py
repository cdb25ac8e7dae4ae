"""Documents into objects: typed, compact, and never stopped by an odd one.

The good path is one msgspec call for an object, a list item or a watch line. Whatever it refuses is
tried again more patiently (Go writes ``null`` for empty lists and maps), then read for its metadata
alone: an object nobody can read still exists, and is handed on as `UndecodableObject`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from steersman.api.errors import ApiError, ServerError, from_status
from steersman.api.kinds import Object, ObjectMeta
from steersman.api.scheme import Kind
from steersman.client.api import EventType, Page, UndecodableObject, WatchEvent
from steersman.client.interning import Compactor

T = TypeVar("T")

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

BREATH = 500
"""Items of a list read without a pause: about a hundredth of a second."""

# Bad JSON, the wrong shape, bad UTF-8, too deep: all that a document can be guilty of.
_REFUSED = (msgspec.DecodeError, ValueError, RecursionError)

_BY_NAME = {type_.value: type_ for type_ in EventType}


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    resourceVersion: str = ""
    continue_: str | None = ""


class _Envelope(msgspec.Struct):
    """A list, its items left as they came."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_envelope = msgspec.json.Decoder(_Envelope)
_anything = msgspec.json.Decoder()
_metadata = msgspec.json.Decoder(Object)
_bare: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct("Bare", [("type", EventType), ("object", Object)])
)
_encode = msgspec.json.Encoder().encode


class Decoder:
    """Makes and keeps one `Reader` for each type, all sharing one `Compactor`."""

    def __init__(self) -> None:
        self._compactor = Compactor()
        self._readers: dict[type, Reader[Any]] = {}

    def reader(self, kind: Kind[T]) -> Reader[T]:
        reader = self._readers.get(kind.type)
        if reader is None:
            reader = self._readers[kind.type] = Reader(kind.type, self._compactor)
        return reader


class Reader(Generic[T]):
    """Reads documents as one type."""

    def __init__(self, type_: type[T], compactor: Compactor) -> None:
        line = msgspec.defstruct("Line", [("type", EventType), ("object", type_)], gc=False)
        self._type = type_
        self._decode = msgspec.json.Decoder(type_).decode
        self._decode_line: Callable[[bytes], Any] = msgspec.json.Decoder(line).decode
        self._compactor = compactor
        self._compact: Callable[[T], T] = self._plan
        self._plain = type_ is dict

    def _plan(self, obj: T) -> T:
        """Work out what objects can share when there is the first of them: of many kinds there is none."""
        self._compact = self._compactor.plan(self._type) or _as_is
        return self._compact(obj)

    def one(self, document: bytes, *, wrote: bool = False) -> T:
        """A single answer. Raises `ApiError` where it cannot be read: nothing else can stand in."""
        try:
            return self._decode(document)
        except _REFUSED as error:
            obj = self._patiently(document, error)
        if isinstance(obj, UndecodableObject):
            raise ApiError(
                f"the server's answer cannot be read: {obj.error}", reason="Unreadable", uncertain=wrote
            )
        return obj

    async def page(self, kind: Kind[T], document: bytes) -> Page[T | UndecodableObject]:
        """A list. Items are read one by one, so that an odd one is odd on its own.

        A long one lets others run in between: nothing may hold up the renewal of a lease.
        """
        try:
            envelope = _envelope.decode(document)
        except _REFUSED as error:
            raise ServerError(
                f"the list of {kind.resource} cannot be read: {error}", reason="Unreadable"
            ) from None
        items = []
        for count, raw in enumerate(envelope.items or (), 1):
            items.append(self._item(raw))
            if count % BREATH == 0:
                await asyncio.sleep(0)
        if self._plain:
            for item in items:
                # The server leaves the two out inside a list; whoever writes one back needs them.
                if isinstance(item, dict):
                    item.setdefault("apiVersion", kind.api_version)
                    item.setdefault("kind", kind.name)
        return Page(items, envelope.metadata.resourceVersion, envelope.metadata.continue_ or "")

    def event(self, kind: Kind[T], line: bytes) -> WatchEvent[T | UndecodableObject]:
        """One line of a watch. Raises what an ERROR line carries."""
        try:
            decoded = self._decode_line(line)
        except _REFUSED as error:
            return self._odd_event(kind, line, error)
        type_, obj = decoded.type, decoded.object
        metadata = _metadata_of(obj) if self._plain else obj.metadata
        if type_ is EventType.BOOKMARK:
            # A view that keeps no annotations cannot tell the end of the initial events.
            return _bookmark(metadata if type(metadata) is ObjectMeta else _bare.decode(line).object.metadata)
        return WatchEvent(type_, self._compact(obj), metadata.resourceVersion)

    # -- the slow paths -----------------------------------------------------------------------

    def _item(self, raw: msgspec.Raw) -> T | UndecodableObject:
        try:
            return self._compact(self._decode(raw))
        except _REFUSED as error:
            obj = self._patiently(bytes(raw), error)
            return obj if isinstance(obj, UndecodableObject) else self._compact(obj)

    def _patiently(self, document: bytes, first: Exception) -> T | UndecodableObject:
        try:
            content = _without_nulls(_anything.decode(document))
            cleaned = _encode(content)
        except _REFUSED:
            return UndecodableObject(ObjectMeta(), str(first))
        try:
            return self._decode(cleaned)
        except _REFUSED as error:
            reason = str(error)
        try:
            return UndecodableObject(_metadata.decode(cleaned).metadata, reason)
        except _REFUSED:
            return UndecodableObject(_metadata_of(content), reason)

    def _odd_event(self, kind: Kind[T], line: bytes, error: Exception) -> WatchEvent[T | UndecodableObject]:
        """A line that is not an event of a readable object: an error, or an odd object."""
        broken = ServerError(
            f"the watch of {kind.resource} sent a line that cannot be read: {error}",
            reason="ClientWatchDecoding",
        )
        try:
            content = _anything.decode(line)
        except _REFUSED:
            raise broken from None
        document = content.get("object") if isinstance(content, dict) else None
        if not isinstance(document, dict):
            raise broken
        name = content.get("type")
        if name == "ERROR":
            raise from_status(document)
        type_ = _BY_NAME.get(name) if isinstance(name, str) else None
        if type_ is None:
            raise broken
        if type_ is EventType.BOOKMARK:
            return _bookmark(_metadata_of(document))
        obj = self._patiently(_encode(document), error)
        if isinstance(obj, UndecodableObject):
            return WatchEvent(type_, obj, obj.metadata.resourceVersion)
        return WatchEvent(type_, self._compact(obj), _metadata_of(document).resourceVersion)


def _as_is(value: T) -> T:
    return value


def _bookmark(metadata: ObjectMeta) -> WatchEvent[Any]:
    ends = metadata.annotations.get(INITIAL_EVENTS_END) == "true"
    return WatchEvent(EventType.BOOKMARK, None, metadata.resourceVersion, ends)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _metadata_of(document: Any) -> ObjectMeta:
    """What can be told of a plain document, or of an object whose very metadata is odd."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return ObjectMeta()

    def text(field: str) -> str:
        value = metadata.get(field)
        return value if isinstance(value, str) else ""

    annotations = metadata.get("annotations")
    return ObjectMeta(
        name=text("name"),
        namespace=text("namespace"),
        uid=text("uid"),
        resourceVersion=text("resourceVersion"),
        annotations=annotations if isinstance(annotations, dict) else {},
    )
