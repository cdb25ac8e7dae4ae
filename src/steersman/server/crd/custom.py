"""CustomResource: a stored custom resource, with typed metadata and the rest as a plain document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.kinds import EMPTY
from steersman.api.patch.values import json_equal
from steersman.api.scheme import encode_hook
from steersman.server.codec.convert import CODECS, Codec, to_builtins, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.crd.pruning import OBJECT_FIELDS

T = TypeVar("T")

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)

_sorted = msgspec.json.Encoder(enc_hook=encode_hook, order="deterministic")


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _INT64_LIMIT else value


_INT64_LIMIT = 2.0**63
_decoder = msgspec.json.Decoder(float_hook=_number)


class CustomResource(meta_v1.Object, frozen=True, eq=False):
    """One custom resource.

    Its content is plain data that is never changed in place. ``stored`` is the content as it was last written,
    in the version ``stored_in``: after a change of the definition the same object reads differently, and a write
    without changes still updates it.
    """

    content: Mapping[str, Any] = EMPTY
    """Everything but ``apiVersion``, ``kind`` and ``metadata``."""
    stored: Mapping[str, Any] = EMPTY
    stored_in: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CustomResource):
            return NotImplemented
        return (
            self.metadata == other.metadata
            and self.stored_in == other.stored_in
            and same_json(self.content, other.content)
            and same_json(self.stored, other.stored)
        )

    __hash__ = None  # type: ignore[assignment]


def same_json(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two contents are the same JSON; in Python, true equals 1."""
    if a is b:
        return True
    try:
        return a == b and json_equal(dict(a), dict(b))
    except RecursionError:
        # Nested too deeply for Python's comparison, but not for the encoder.
        return _sorted.encode(a) == _sorted.encode(b)


def read(body: object) -> CustomResource:
    """Decodes a body as a custom resource, without its schema. Raises `ValueError` if it is not an object.

    A body may be a document, raw JSON, a client's struct, or a custom resource.
    """
    if isinstance(body, CustomResource):
        return body
    if isinstance(body, (bytes, msgspec.Raw)):
        body = msgspec.json.decode(bytes(body))
    elif isinstance(body, msgspec.Struct):
        body = to_builtins(body)
    if not isinstance(body, Mapping):
        raise ValueError(f"Expected `object`, got `{type(body).__name__}`")
    return CustomResource(
        metadata=read_metadata(body.get("metadata")),
        content={name: value for name, value in body.items() if name not in OBJECT_FIELDS},
    )


def read_metadata(given: Any) -> meta_v1.ObjectMeta:
    """Decodes the metadata of an object, or of one embedded in it. Raises `ValueError` with Go's message."""
    try:
        made: meta_v1.ObjectMeta = to_struct(meta_v1.ObjectMeta, {} if given is None else given)
    except ValueError as error:
        # Upstream decodes a map that it encoded before, with its fields in order.
        fields = dict(sorted(given.items())) if isinstance(given, Mapping) else given
        raise ValueError(go_decode_error(meta_v1.ObjectMeta, fields) or str(error)) from None
    return made


def copy_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of a content. Whole numbers become integers, however they were written.

    differs: integers of more than 64 bits stay integers; upstream keeps the nearest float. And upstream, which stores them
    alike, takes 1.0 for a change of 1, and increments the generation.
    """
    return _decoder.decode(_encoder.encode(content))  # type: ignore[no-any-return]


def document(api_version: str, kind: str, obj: CustomResource) -> dict[str, Any]:
    """A custom resource as a plain document, deeply copied."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": to_builtins(obj.metadata),
        **copy_content(obj.content),
    }


def encode(api_version: str, kind: str, obj: CustomResource) -> bytes:
    """The JSON of a custom resource."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode()
    content = _encoder.encode(obj.content)
    return head + _encoder.encode(obj.metadata) + (b"," + content[1:] if content != b"{}" else b"}")


def view(type_: type[T], api_version: str, kind: str, obj: CustomResource) -> T:
    """A custom resource as a client's type. Raises `ValueError` if it does not match."""
    if issubclass(CustomResource, type_):
        return cast("T", obj)
    made = document(api_version, kind, obj)
    return cast("T", made) if type_ is dict else msgspec.convert(made, type_)


CODECS[CustomResource] = Codec(read, document, view, encode)
