"""`Kind`: maps Python types to kinds and resource paths of the API, and encodes objects as JSON.

The Python type determines the kind, so objects have no ``apiVersion`` and ``kind`` fields: `encode` writes them and
`kind_of` returns them. Several types may stand for one kind: the full struct in `steersman.api.generated`, and the
view in `steersman.api.kinds` that caches hold.
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
    """Namespace and name of an object. The namespace of cluster-scoped objects is ``""``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Kind(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """One resource and the type it is decoded as."""

    group: str
    version: str
    name: str
    """The ``kind`` field: ``Pod``."""
    plural: str
    """The path segment: ``pods``."""
    namespaced: bool
    type: builtins.type[T]
    """The type that documents are decoded as. ``dict`` keeps every field."""
    fields: str = ""
    """A field selector for the objects to watch. See `where`."""
    read_interval: float = 0.0
    """Seconds between two reads of a watch's connection; 0: read each event as it comes.

    Many small events cost less when they are read at once. For heartbeats, of which only the silence matters.
    """

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The group-resource, as RBAC and upstream's messages write it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def untyped(self) -> Kind[dict[str, Any]]:
        """The same resource decoded as plain documents, which keep unknown fields."""
        return cast("Kind[dict[str, Any]]", replace(cast("Kind[Any]", self), type=dict))

    def as_(self, type_: builtins.type[U]) -> Kind[U]:
        """Return the same resource decoded as another type."""
        return cast("Kind[U]", replace(cast("Kind[Any]", self), type=type_))

    def where(self, fields: str) -> Kind[T]:
        """Return this kind limited by a field selector. It has a cache of its own."""
        return replace(self, fields=fields)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path. An empty namespace for a namespaced kind means all namespaces."""
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
    """Register a kind for `kind_of`, and return it."""
    _by_type[kind.type] = kind
    return kind


def kind_of(obj: object) -> Kind[Any]:
    """Return the kind of a typed object. Raises `LookupError` for a type that is not registered, which is a bug."""
    try:
        return _by_type[type(obj)]
    except KeyError:
        raise LookupError(f"{type(obj).__qualname__} is not a registered Kubernetes type") from None


def encode_hook(value: object) -> object:
    """Convert other mappings and sequences to dict and list, for msgspec's ``enc_hook``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise NotImplementedError(f"{type(value).__qualname__} cannot be encoded as JSON")


def same_encoding(one: object, other: object) -> bool:
    """Whether two values are equal and the same in JSON. In Python, true equals 1, which parameters of any form may have."""
    if one is other or one != other:
        return one is other
    if not isinstance(one, msgspec.Struct | Mapping):
        return True
    return _in_order.encode(one) == _in_order.encode(other)


_in_order = msgspec.json.Encoder(enc_hook=encode_hook, order="deterministic")
_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


def encode(kind: Kind[Any], body: object) -> bytes:
    """Encode a body as JSON with ``apiVersion`` and ``kind``.

    The two fields are inserted for typed bodies; plain documents keep their own.
    """
    raw = _encoder.encode(body)
    if isinstance(body, Mapping):
        return raw
    head = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.name}"'.encode()
    return head + (b"," + raw[1:] if raw != b"{}" else b"}")
