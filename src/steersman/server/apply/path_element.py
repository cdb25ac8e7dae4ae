"""Path elements: one step into a document, as text of ``fieldsV1``.

``f:name`` is a field of an object or a key of a map, ``k:{"name":"x"}`` the item of a list with these keys,
``v:"x"`` the item of a set with this value, ``i:0`` the item at an index. Elements are equal if their texts are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.bounded_cache import MAX_SHORT

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_encode = msgspec.json.Encoder().encode


def _json(value: object) -> str:
    """JSON as Go writes it: compact and escaped for HTML."""
    text = _encode(value).decode()
    for plain, escaped in _ESCAPES.items():
        if plain in text:
            text = text.replace(plain, escaped)
    return text


# typed: True == 1 == 1.0, but each is a different key.
@lru_cache(maxsize=4096, typed=True)
def _key(names: tuple[str, ...], *values: Any) -> str:
    return "k:" + _json(dict(sorted(zip(names, values, strict=True))))


def key(fields: Mapping[str, Any]) -> str:
    """The path element of a list item whose key fields have these values."""
    try:
        if any(isinstance(each, str) and len(each) > MAX_SHORT for each in fields.values()):
            return _key.__wrapped__(tuple(fields), *fields.values())
        return _key(tuple(fields), *fields.values())
    except TypeError:  # unhashable: schemas do not forbid keys that are not scalars
        return "k:" + _json(dict(sorted(fields.items())))


def value(scalar: Any) -> str:
    """The path element of a set item. Go writes 1.0 as 1."""
    if isinstance(scalar, float) and scalar.is_integer() and abs(scalar) < 1e21:
        scalar = int(scalar)
    return "v:" + _json(scalar)


def parse(element: str) -> str | None:
    """A path element in canonical form.

    None for an unknown kind of element, which is ignored. Raises `ValueError` for malformed text.
    """
    sort, colon, rest = element[:1], element[1:2], element[2:]
    if colon != ":":
        raise ValueError(f"missing colon: {element}")
    if sort == "f":
        return element
    if sort == "k":
        fields = msgspec.json.decode(rest)
        if not isinstance(fields, dict):
            raise ValueError(f"key is not an object: {element}")
        return key(fields)
    if sort == "v":
        return value(msgspec.json.decode(rest))
    if sort == "i":
        return f"i:{int(rest)}"
    return None


# -- order ------------------------------------------------------------------------------------

_SORTS = {".": -1, "f": 0, "k": 1, "v": 2, "i": 3}


def sort_key(element: str) -> tuple[Any, ...]:
    """The sort key of elements: fields, then keys, values and indexes; numbers compare as numbers."""
    sort = _SORTS[element[0]]
    if sort <= 0:
        return sort, element
    read = msgspec.json.decode(element[2:])
    if sort == 1:
        return sort, tuple((name, _rank(part)) for name, part in sorted(read.items()))
    return sort, _rank(read)


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, _json(value)


# -- printing ---------------------------------------------------------------------------------


def to_string(element: str) -> str:
    """An element as messages print it: ``.spec``, ``[name="x"]``, ``[="x"]``, ``[0]``."""
    sort, rest = element[0], element[2:]
    if sort == "f":
        return f".{rest}"
    if sort == "k":
        fields = msgspec.json.decode(rest)
        return "[" + ",".join(f"{name}={_json_text(part)}" for name, part in sorted(fields.items())) + "]"
    if sort == "v":
        return f"[={_json_text(msgspec.json.decode(rest))}]"
    return f"[{rest}]"


def _json_text(value: Any) -> str:
    return _encode(value).decode()
