"""Stored objects as JSON documents, and back.

Documents bear ``apiVersion`` and ``kind``, so a later version of this program, or a person, can tell what
they are. The table an object is of says nothing of its version: several versions may share one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import NotFound
from steersman.api.generated import load, resources
from steersman.api.scheme import Kind, kind_of, unusual
from steersman.server.codec.convert import adopt
from steersman.server.crd.custom import Custom, read
from steersman.server.registry.resources import Registry
from steersman.server.storage.store import Store

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

Decode: TypeAlias = Callable[[bytes], Any]


class TypeMeta(msgspec.Struct, frozen=True):
    """What a document is."""

    apiVersion: str = ""
    kind: str = ""


_encoder = msgspec.json.Encoder(enc_hook=unusual)
_type_meta = msgspec.json.Decoder(TypeMeta)


def encode(store: Store, resource: str, obj: Any) -> bytes:
    """An object of a table as a document."""
    if isinstance(obj, Custom):
        return _encode_custom(store, resource, obj)
    kind = _kind(obj)
    return _spliced(kind.api_version, kind.name, _encoder.encode(obj))


def _kind(obj: Any) -> Kind[Any]:
    try:
        return kind_of(obj)
    except LookupError:
        # Its module is there, but nobody has asked for the kind by name yet.
        module, name = type(obj).__module__.rpartition(".")[2], type(obj).__name__
        for row in resources():
            if row.kind == name and row.module == module:
                return load(row.group, row.version, row.kind)
        raise


def _encode_custom(store: Store, resource: str, obj: Custom) -> bytes:
    """A custom resource: what was written of it, and not how it reads by the definition of now."""
    definition = store.table(DEFINITIONS).get(resource)
    kind = definition.spec.names.kind if definition is not None else ""
    group = resource.partition(".")[2]
    content = {name: value for name, value in obj.stored.items() if name != "metadata"}
    body = {"metadata": obj.metadata, **content}
    try:
        raw = _encoder.encode(body)
    except (OverflowError, ValueError):
        # Integers of more than 64 bits are nothing to msgspec, and legal in free content.
        plain = {"metadata": msgspec.to_builtins(obj.metadata, enc_hook=unusual), **content}
        raw = json.dumps(plain, separators=(",", ":"), default=unusual, allow_nan=False).encode()
    return _spliced(f"{group}/{obj.stored_in}", kind, raw)


def _spliced(api_version: str, kind: str, raw: bytes) -> bytes:
    head = f'{{"apiVersion":"{api_version}","kind":"{kind}"'.encode()
    return head + (b"," + raw[1:] if raw != b"{}" else b"}")


class Reader:
    """Makes objects of documents. Asks the registry what a resource is made of."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._decoders: dict[tuple[str, str, str], Decode] = {}
        self._last: dict[str, tuple[bytes, Decode]] = {}

    def decode(self, resource: str, document: bytes) -> Any:
        """The object. Raises `ValueError`, saying why, for one that cannot be understood."""
        head, decode = self._last.get(resource, (b"?", None))
        if decode is None or not document.startswith(head):
            # Nearly all documents of a resource begin alike, so this is seldom asked.
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
        if not self._registry.built_in(group, plural):
            return lambda document: _custom(version, document)
        try:
            self._registry.find(group, version, plural)
            type_ = load(group, version, kind.kind).type
        except (NotFound, LookupError):
            raise ValueError(f"there is no {kind.kind or 'kind'} in {kind.apiVersion}") from None
        strict = msgspec.json.Decoder(type_)

        def decode(document: bytes) -> Any:
            try:
                return strict.decode(document)
            except msgspec.ValidationError:
                # Another version of this program wrote it: read it as a client's.
                return adopt(type_, document)

        return decode


def _custom(version: str, document: bytes) -> Custom:
    """A custom resource as it was stored; it is fitted to its definition once that is served."""
    try:
        obj = read(document)
    except msgspec.DecodeError:
        obj = read(json.loads(document))
    return msgspec.structs.replace(obj, stored=obj.content, stored_in=version)
