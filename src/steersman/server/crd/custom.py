"""Custom resources as objects: metadata like everybody's, the rest as the document it came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from steersman.api.generated import meta_v1
from steersman.api.kinds import EMPTY
from steersman.api.patch.values import json_equal
from steersman.api.scheme import encode_hook
from steersman.server.codec.convert import CODECS, Codec, to_builtins, to_struct
from steersman.server.crd.pruning import META

T = TypeVar("T")

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)

_sorted = msgspec.json.Encoder(enc_hook=encode_hook, order="deterministic")


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _MOST else value


_MOST = 2.0**63
_decoder = msgspec.json.Decoder(float_hook=_number)


class Custom(meta_v1.Object, frozen=True, eq=False):
    """One custom resource.

    Its content is plain data that nobody changes: who wants another makes a copy. ``stored`` is what was
    written when it was last written, in which version: where a definition has changed since, the same object
    reads differently, and a write that changes nothing still brings it up to date.
    """

    content: Mapping[str, Any] = EMPTY
    """Everything but ``apiVersion``, ``kind`` and ``metadata``."""
    stored: Mapping[str, Any] = EMPTY
    stored_in: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Custom):
            return NotImplemented
        return (
            self.metadata == other.metadata
            and self.stored_in == other.stored_in
            and same(self.content, other.content)
            and same(self.stored, other.stored)
        )

    __hash__ = None  # type: ignore[assignment]


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two contents are the same JSON: Python takes true for 1."""
    if a is b:
        return True
    try:
        return a == b and json_equal(dict(a), dict(b))
    except RecursionError:
        # Nested deeper than Python follows; its encoder does.
        return _sorted.encode(a) == _sorted.encode(b)


def read(body: object) -> Custom:
    """A body as a custom resource, not yet fit for any schema. Raises `ValueError` for what is no object.

    A body may be a document, raw JSON, a struct of a client's own, or a custom resource already.
    """
    if isinstance(body, Custom):
        return body
    if isinstance(body, (bytes, msgspec.Raw)):
        body = msgspec.json.decode(bytes(body))
    elif isinstance(body, msgspec.Struct):
        body = to_builtins(body)
    if not isinstance(body, Mapping):
        raise ValueError(f"Expected `object`, got `{type(body).__name__}`")
    meta = body.get("metadata")
    return Custom(
        metadata=to_struct(meta_v1.ObjectMeta, {} if meta is None else meta),
        content={name: value for name, value in body.items() if name not in META},
    )


def copied(content: Mapping[str, Any]) -> dict[str, Any]:
    """A content that shares nothing with the one given. Whole numbers are integers, however they were written.

    differs: integers of more than 64 bits stay integers; upstream keeps the nearest float.
    """
    return _decoder.decode(_encoder.encode(content))  # type: ignore[no-any-return]


def document(api_version: str, kind: str, obj: Custom) -> dict[str, Any]:
    """A custom resource as a plain document that shares nothing with it."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": to_builtins(obj.metadata),
        **copied(obj.content),
    }


def encode(api_version: str, kind: str, obj: Custom) -> bytes:
    """A custom resource's JSON."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode()
    content = _encoder.encode(obj.content)
    return head + _encoder.encode(obj.metadata) + (b"," + content[1:] if content != b"{}" else b"}")


def view(type_: type[T], api_version: str, kind: str, obj: Custom) -> T:
    """A custom resource as a client's own type. Raises `ValueError` where it does not fit."""
    if issubclass(Custom, type_):
        return cast("T", obj)
    made = document(api_version, kind, obj)
    return cast("T", made) if type_ is dict else msgspec.convert(made, type_)


CODECS[Custom] = Codec(read, document, view, encode)
