"""Encodes stored objects as JSON documents and decodes them.

Documents have ``apiVersion`` and ``kind``, so a later version of this program, or a person, can read them. The
table of an object does not imply its version: several versions may share a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import NotFound
from steersman.api.generated import gated_resources, load, resources
from steersman.api.scheme import Kind, encode_hook, kind_of
from steersman.server.codec.convert import to_struct
from steersman.server.crd.custom import CustomResource, read
from steersman.server.registry.resources import Registry
from steersman.server.storage.store import Store

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

Decode: TypeAlias = Callable[[bytes], Any]


class TypeMeta(msgspec.Struct, frozen=True):
    """The ``apiVersion`` and ``kind`` of a document."""

    apiVersion: str = ""
    kind: str = ""


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_type_meta = msgspec.json.Decoder(TypeMeta)


def encode(store: Store, resource: str, obj: Any) -> bytes:
    """Encodes an object of a table as a document."""
    if isinstance(obj, CustomResource):
        return _encode_custom(store, resource, obj)
    kind = _kind(obj)
    return _spliced(kind.api_version, kind.name, _encoder.encode(obj))


def _kind(obj: Any) -> Kind[Any]:
    try:
        return kind_of(obj)
    except LookupError:
        # The module is imported, but the kind has not been loaded by name yet.
        module, name = type(obj).__module__.rpartition(".")[2], type(obj).__name__
        for row in (*resources(), *gated_resources()):
            if row.kind == name and row.module == module:
                return load(row.group, row.version, row.kind)
        raise


def _encode_custom(store: Store, resource: str, obj: CustomResource) -> bytes:
    """Encodes a custom resource as it was written, not as the current definition presents it."""
    definition = store.table(DEFINITIONS).get(resource)
    kind = definition.spec.names.kind if definition is not None else ""
    group = resource.partition(".")[2]
    content = {name: value for name, value in obj.stored.items() if name != "metadata"}
    body = {"metadata": obj.metadata, **content}
    try:
        raw = _encoder.encode(body)
    except (OverflowError, ValueError):
        # msgspec cannot encode integers of more than 64 bits, which custom resources may hold.
        plain = {"metadata": msgspec.to_builtins(obj.metadata, enc_hook=encode_hook), **content}
        raw = json.dumps(plain, separators=(",", ":"), default=encode_hook, allow_nan=False).encode()
    return _spliced(f"{group}/{obj.stored_in}", kind, raw)


def _spliced(api_version: str, kind: str, raw: bytes) -> bytes:
    head = f'{{"apiVersion":"{api_version}","kind":"{kind}"'.encode()
    return head + (b"," + raw[1:] if raw != b"{}" else b"}")


class DocumentDecoder:
    """Decodes documents into objects, by the types the registry serves."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._decoders: dict[tuple[str, str, str], Decode] = {}
        self._last: dict[str, tuple[bytes, Decode]] = {}

    def decode(self, resource: str, document: bytes) -> Any:
        """Decodes a document. Raises `ValueError` if it cannot be read."""
        head, decode = self._last.get(resource, (b"?", None))
        if decode is None or not document.startswith(head):
            # Nearly all documents of a resource have the same head, so this is rare.
            kind = _type_meta.decode(document)
            decode = self._decoder(resource, kind)
            self._last[resource] = _spliced(kind.apiVersion, kind.kind, b"{}")[:-1] + b",", decode
        return decode(document)

    def _decoder(self, resource: str, kind: TypeMeta) -> Decode:
        key = resource, kind.apiVersion, kind.kind
        known = self._decoders.get(key)
        if known is None:
            known = self._decoders[key] = self._made(resource, kind)
        return known

    def _made(self, resource: str, kind: TypeMeta) -> Decode:
        plural, _, group = resource.partition(".")
        version = kind.apiVersion.rpartition("/")[2]
        gated = any((row.group, row.plural) == (group, plural) for row in gated_resources())
        if not gated and not self._registry.built_in(group, plural):
            return lambda document: _custom(version, document)
        try:
            if not gated:
                self._registry.find(group, version, plural)
            type_ = load(group, version, kind.kind).type
        except (NotFound, LookupError):
            raise ValueError(f"no kind {kind.kind} in {kind.apiVersion}") from None
        strict = msgspec.json.Decoder(type_)

        def decode(document: bytes) -> Any:
            try:
                return strict.decode(document)
            except msgspec.ValidationError:
                # Written by another version of this program: decode it leniently, like a client's.
                return to_struct(type_, document)

        return decode


def _custom(version: str, document: bytes) -> CustomResource:
    """A custom resource as it was stored; it is converted once its definition is served."""
    try:
        obj = read(document)
    except msgspec.DecodeError:
        obj = read(json.loads(document))
    return msgspec.structs.replace(obj, stored=obj.content, stored_in=version)
