"""Times with microseconds, as Go clients insist on them: always six digits, also where all are zero."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import Struct
from steersman.server.codec.convert import moments


def exact(obj: Any) -> Any:
    """An object ready to be encoded: its times with microseconds are written out where JSON would lose them.

    Itself where there are none, which is nearly always. Where nobody owns anything, nothing is said of owners.
    """
    kind: type[Struct] = type(obj)
    for path in moments(kind):
        obj = _written(obj, path)
    meta: Any = getattr(obj, "metadata", None)
    owners = () if meta is None else meta.managedFields
    if type(owners) is not tuple and not len(owners):
        # They had to be looked at to know that there are none.
        obj = replace(obj, metadata=replace(meta, managedFields=()))
    return obj


def _written(obj: Any, path: tuple[str, ...]) -> Any:
    value = getattr(obj, path[0])
    if len(path) > 1:
        if value is None:
            return obj
        made = _written(value, path[1:])
    elif type(value) is datetime and not value.microsecond:
        made = msgspec.Raw(f'"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000000Z"'.encode())
    else:
        return obj
    return obj if made is value else replace(obj, **{path[0]: made})
