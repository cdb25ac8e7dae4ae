"""Kind <-> type <-> resource path: the one place that knows how an object is named on the wire.

A Python type *is* its kind, so objects carry no ``apiVersion`` and ``kind`` fields: `encode`
writes them and `kind_of` knows them. Several types may stand for one kind: the full struct in
`steersman.api.generated`, and the view in `steersman.api.kinds` that caches hold.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

T = TypeVar("T")
U = TypeVar("U")


class Key(NamedTuple):
    """Where an object lives. Cluster-scoped objects have the namespace ``""``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Kind(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """One resource as one type: what it is called, where it is served, what it decodes to."""

    group: str
    version: str
    name: str
    """The ``kind`` field: ``Pod``."""
    plural: str
    """The path segment: ``pods``."""
    namespaced: bool
    type: builtins.type[T]
    """What a document of this kind decodes to. ``dict`` keeps every field as it came."""
    fields: str = ""
    """A field selector: what is followed of this kind. See `where`."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The group-resource, as RBAC and upstream's messages write it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def untyped(self) -> Kind[dict[str, Any]]:
        """The same resource as plain documents, for what must pass through untouched."""
        return cast("Kind[dict[str, Any]]", replace(cast("Kind[Any]", self), type=dict))

    def as_(self, type_: builtins.type[U]) -> Kind[U]:
        """The same resource read as another type."""
        return cast("Kind[U]", replace(cast("Kind[Any]", self), type=type_))

    def where(self, fields: str) -> Kind[T]:
        """Just the objects a field selector picks. Followed, they have a cache of their own."""
        return replace(self, fields=fields)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path. An empty namespace on a namespaced kind means all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            root = f"{root}/namespaces/{namespace}"
        path = f"{root}/{self.plural}"
        if name:
            path = f"{path}/{name}"
        return f"{path}/{subresource}" if subresource else path

    def __repr__(self) -> str:
        return f"<{self.resource}/{self.version}>"


_by_type: dict[type, Kind[Any]] = {}


def register(kind: Kind[T]) -> Kind[T]:
    """Let `kind_of` know objects of this type. Returns the kind, so a declaration is one line."""
    _by_type[kind.type] = kind
    return kind


def kind_of(obj: object) -> Kind[Any]:
    """The kind of a typed object.

    Raises `LookupError` for a type nobody registered: a mistake in the program, not in the data.
    """
    try:
        return _by_type[type(obj)]
    except KeyError:
        raise LookupError(f"{type(obj).__qualname__} is not a registered Kubernetes type") from None


def encode_hook(value: object) -> object:
    """What msgspec cannot write by itself, as something it can: maps and lists of other makes."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise NotImplementedError(f"{type(value).__qualname__} cannot be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


def encode(kind: Kind[Any], body: object) -> bytes:
    """A document's JSON, with its ``apiVersion`` and ``kind``.

    Typed bodies do not carry the two fields, so they are spliced in front; plain documents keep
    their own.
    """
    raw = _encoder.encode(body)
    if isinstance(body, Mapping):
        return raw
    head = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.name}"'.encode()
    return head + (b"," + raw[1:] if raw != b"{}" else b"}")
