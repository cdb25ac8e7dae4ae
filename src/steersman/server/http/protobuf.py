"""Responses and watches in protobuf, which Go components ask for. Imported with the first request for it.

Built-in kinds, their lists, PartialObjectMetadata of all resources, Statuses and discovery have protobuf messages. Custom
resources and Tables have none: negotiation does not offer it for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ListMeta, ObjectMeta, Status
from steersman.client.api import WatchEvent
from steersman.server.codec.convert import to_struct
from steersman.server.codec.protobuf.encode import (
    MessageCache,
    encode_list,
    encode_message,
    encode_metadata,
    envelope,
    watch_frame,
)
from steersman.server.registry.resources import Resource
from steersman.server.tables import partial_object_metadata

FrameEncoder: TypeAlias = Callable[[WatchEvent[Any]], bytes]

_PARTIAL = "PartialObjectMetadata"


class ProtobufEncoder:
    """Encodes responses; the messages of stored objects are cached."""

    def __init__(self) -> None:
        self._messages = MessageCache()

    def object(self, resource: Resource, obj: Any) -> bytes:
        """A stored object of a built-in kind."""
        return envelope(resource.api_version, resource.kind, self._messages.get(obj))

    def list(self, api_version: str, list_kind: str, metadata: ListMeta, objects: Iterable[Any]) -> bytes:
        """A list of stored objects."""
        # Not cached, as their JSON is not: a list of many objects would displace what watchers share.
        return envelope(api_version, list_kind, encode_list(metadata, map(encode_message, objects)))

    def partial(self, obj: Any, version: str) -> bytes:
        """The PartialObjectMetadata of an object of any resource."""
        return envelope(f"meta.k8s.io/{version}", _PARTIAL, _partial_message(obj, version))

    def partial_list(self, metadata: ListMeta, objects: Iterable[Any], version: str) -> bytes:
        """A PartialObjectMetadataList."""
        items = (_partial_message(obj, version) for obj in objects)
        return envelope(f"meta.k8s.io/{version}", f"{_PARTIAL}List", encode_list(metadata, items))

    def struct(self, api_version: str, kind: str, obj: Any) -> bytes:
        """A struct that is not stored, such as a review."""
        return envelope(api_version, kind, encode_message(obj))

    def json(self, body: bytes) -> bytes:
        """A document that was encoded as JSON: a Status, a Scale, or one of discovery."""
        document: dict[str, Any] = msgspec.json.decode(body)
        return self.document(document)

    def document(self, document: Mapping[str, Any]) -> bytes:
        """A document of a kind that has a message."""
        api_version, kind = document.get("apiVersion", ""), document["kind"]
        group, _, version = api_version.rpartition("/")
        # APIVersions has no version.
        type_ = load(group, version or "v1", kind).type
        return envelope(api_version, kind, encode_message(to_struct(type_, document)))

    # -- watches ------------------------------------------------------------------------------

    def frames(self, resource: Resource, partial_version: str) -> FrameEncoder:
        """Encodes the events of a watch; ``partial_version`` is that of PartialObjectMetadata, if it is asked for."""
        serve = resource.serve

        def frame(event: WatchEvent[Any]) -> bytes:
            obj = event.obj
            if obj is None:
                body = self._bookmark(resource, partial_version, event)
            elif partial_version:
                body = self.partial(obj, partial_version)
            else:
                body = self.object(resource, obj if serve is None else serve(obj))
            return watch_frame(event.type.value, body)

        return frame

    def error_frame(self, status: Mapping[str, Any]) -> bytes:
        """An ERROR event with a Status."""
        return watch_frame("ERROR", envelope("v1", "Status", encode_message(to_struct(Status, status))))

    def _bookmark(self, resource: Resource, partial_version: str, event: WatchEvent[Any]) -> bytes:
        ends = {"k8s.io/initial-events-end": "true"} if event.initial_end else {}
        metadata = ObjectMeta(resourceVersion=event.resource_version, annotations=ends)
        if partial_version:
            return envelope(f"meta.k8s.io/{partial_version}", _PARTIAL, encode_metadata(metadata))
        return envelope(resource.api_version, resource.kind, encode_message(resource.type(metadata=metadata)))


def _partial_message(obj: Any, version: str) -> bytes:
    metadata: ObjectMeta = partial_object_metadata(obj, version).metadata
    return encode_metadata(metadata)
