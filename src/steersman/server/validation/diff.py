"""What differs between two objects, for people: the part of a refusal that clients do not match on."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.server.codec.convert import plain


def difference(old: msgspec.Struct, new: msgspec.Struct) -> str:
    """The fields that differ, as lines of a diff.

    differs: the real server prints a diff of its own types, whose form is random on purpose.
    """
    lines: list[str] = []
    _compare(lines, "", plain(old), plain(new))
    return "".join(f"{line}\n" for line in lines)


_NONE = object()


def _compare(lines: list[str], path: str, old: Any, new: Any) -> None:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({**old, **new}):
            _compare(lines, f"{path}.{key}" if path else key, old.get(key, _NONE), new.get(key, _NONE))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            _compare(lines, f"{path}[{i}]", before, after)
    else:
        for sign, value in (("-", old), ("+", new)):
            if value is not _NONE:
                lines.append(f"{sign} {path}: {msgspec.json.encode(value).decode()}")
