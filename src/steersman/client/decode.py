"""Decodes responses into typed objects with interned values; one malformed object never stops the others.

The fast path is one msgspec call for an object, a list item or a watch event. A document it refuses is decoded again
without nulls (Go writes ``null`` for empty lists and maps), then for its metadata only: an object that cannot be
decoded still exists, and is returned as `UndecodableObject`.
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
from steersman.client.interning import Interner

T = TypeVar("T")

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

YIELD_EVERY = 500
"""Items of a list decoded before other tasks may run: about 10 ms."""

# Malformed JSON or UTF-8, an unexpected type, nested too deeply.
_DECODE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)

_BY_NAME = {type_.value: type_ for type_ in EventType}


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    resourceVersion: str = ""
    continue_: str | None = ""


class _Envelope(msgspec.Struct):
    """A list with its items still encoded."""

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
    """Holds one `TypedDecoder` for each type; all share one `Interner`."""

    def __init__(self) -> None:
        self._interner = Interner()
        self._decoders: dict[type, TypedDecoder[Any]] = {}

    def for_kind(self, kind: Kind[T]) -> TypedDecoder[T]:
        """Return the decoder for the type of a kind."""
        decoder = self._decoders.get(kind.type)
        if decoder is None:
            decoder = self._decoders[kind.type] = TypedDecoder(kind.type, self._interner)
        return decoder


class TypedDecoder(Generic[T]):
    """Decodes objects, lists and watch events of one type."""

    def __init__(self, type_: type[T], interner: Interner) -> None:
        line = msgspec.defstruct("Line", [("type", EventType), ("object", type_)], gc=False)
        self._type = type_
        self._decode = msgspec.json.Decoder(type_).decode
        self._decode_line: Callable[[bytes], Any] = msgspec.json.Decoder(line).decode
        self._interner = interner
        self._intern: Callable[[T], T] = self._intern_first
        self._plain = type_ is dict

    def _intern_first(self, obj: T) -> T:
        """Intern the first object. Which fields to intern is determined only now: many kinds have no objects."""
        self._intern = self._interner.interner_for(self._type) or _identity
        return self._intern(obj)

    def decode_object(self, document: bytes, *, wrote: bool = False) -> T:
        """Decode a response that is one object. Raises `ApiError`, uncertain for a write (``wrote``)."""
        try:
            return self._decode(document)
        except _DECODE_ERRORS as error:
            obj = self._decode_leniently(document, error)
        if isinstance(obj, UndecodableObject):
            raise ApiError(
                f"the response cannot be decoded: {obj.error}", reason="Unreadable", uncertain=wrote
            )
        return obj

    async def decode_list(self, kind: Kind[T], document: bytes) -> Page[T | UndecodableObject]:
        """Decode a list, item by item, so that a malformed item does not affect the others.

        Other tasks run in between: a long list must not delay the renewal of a lease.
        """
        try:
            envelope = _envelope.decode(document)
        except _DECODE_ERRORS as error:
            raise ServerError(
                f"the list of {kind.resource} cannot be decoded: {error}", reason="Unreadable"
            ) from None
        items = []
        for count, raw in enumerate(envelope.items or (), 1):
            items.append(self._decode_item(raw))
            if count % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        if self._plain:
            for item in items:
                # The server omits both for items of a list, but an update needs them.
                if isinstance(item, dict):
                    item.setdefault("apiVersion", kind.api_version)
                    item.setdefault("kind", kind.name)
        return Page(items, envelope.metadata.resourceVersion, envelope.metadata.continue_ or "")

    def decode_event(self, kind: Kind[T], line: bytes) -> WatchEvent[T | UndecodableObject]:
        """Decode one line of a watch. Raises the error that an ERROR event carries."""
        try:
            decoded = self._decode_line(line)
        except _DECODE_ERRORS as error:
            return self._decode_odd_event(kind, line, error)
        type_, obj = decoded.type, decoded.object
        metadata = _metadata_of(obj) if self._plain else obj.metadata
        if type_ is EventType.BOOKMARK:
            # The annotation that ends the initial events is missing from types without annotations.
            return _bookmark(metadata if type(metadata) is ObjectMeta else _bare.decode(line).object.metadata)
        return WatchEvent(type_, self._intern(obj), metadata.resourceVersion)

    # -- slow paths ---------------------------------------------------------------------------

    def _decode_item(self, raw: msgspec.Raw) -> T | UndecodableObject:
        try:
            return self._intern(self._decode(raw))
        except _DECODE_ERRORS as error:
            obj = self._decode_leniently(bytes(raw), error)
            return obj if isinstance(obj, UndecodableObject) else self._intern(obj)

    def _decode_leniently(self, document: bytes, first: Exception) -> T | UndecodableObject:
        try:
            content = _without_nulls(_anything.decode(document))
            cleaned = _encode(content)
        except _DECODE_ERRORS:
            return UndecodableObject(ObjectMeta(), str(first))
        try:
            return self._decode(cleaned)
        except _DECODE_ERRORS as error:
            reason = str(error)
        try:
            return UndecodableObject(_metadata.decode(cleaned).metadata, reason)
        except _DECODE_ERRORS:
            return UndecodableObject(_metadata_of(content), reason)

    def _decode_odd_event(
        self, kind: Kind[T], line: bytes, error: Exception
    ) -> WatchEvent[T | UndecodableObject]:
        """Decode a line that the fast path refused: an ERROR event, or a malformed object."""
        broken = ServerError(
            f"the watch of {kind.resource} sent a line that cannot be decoded: {error}",
            reason="ClientWatchDecoding",
        )
        try:
            content = _anything.decode(line)
        except _DECODE_ERRORS:
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
        obj = self._decode_leniently(_encode(document), error)
        if isinstance(obj, UndecodableObject):
            return WatchEvent(type_, obj, obj.metadata.resourceVersion)
        return WatchEvent(type_, self._intern(obj), _metadata_of(document).resourceVersion)


def _identity(value: T) -> T:
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
    """Return the metadata of a plain document, or of an object whose metadata is malformed."""
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
