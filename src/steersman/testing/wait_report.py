"""Why a wait ended in vain, in words: what was seen last, who waits for what, what happened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman.api.scheme import Key
from steersman.runtime.trace import span
from steersman.server.codec.convert import to_builtins
from steersman.testing.history import Chronicle
from steersman.testing.narration import stands

SEEN = 6
WAITING = 12
LAST = 12
LONGEST = 300


def in_vain(
    predicate: Callable[[], object],
    said: object,
    error: Exception | None,
    patience: float,
    reads: Mapping[tuple[str, Key], Any],
    chronicle: Chronicle,
) -> str:
    """The message of a wait that ended in vain."""
    end = f"raised {type(error).__name__}: {error}" if error is not None else f"said {_short(repr(said))}"
    lines = [f"not so within {span(patience)}: {source(predicate)}", f"  it last {end}"]
    seen = (f"{where.partition('.')[0]} {key}: {describe(obj)}" for (where, key), obj in reads.items())
    lines += _section("it saw", seen, SEEN)
    lines += _section("who waits for what", (stands(each) for each in chronicle.standing()), WAITING)
    lines += _section("what happened last", (str(each) for each in chronicle.entries(last=LAST)), LAST)
    return "\n".join(lines)


def _section(title: str, lines: Iterable[str], most: int) -> list[str]:
    told = list(lines)
    if not told:
        return []
    more = [f"    … and {len(told) - most} more"] if len(told) > most else []
    return [f"  {title}:", *(f"    {_short(line)}" for line in told[:most]), *more]


def source(predicate: Callable[..., object]) -> str:
    """The line a predicate is written in, where there is one."""
    try:
        text = inspect.getsource(predicate)
    except (OSError, TypeError):
        return getattr(predicate, "__qualname__", repr(predicate))
    return _short(" ".join(text.split()))


def describe(obj: Any) -> str:
    """What matters about an object when something is not as it should be: its status, in short."""
    status = obj.get("status") if isinstance(obj, Mapping) else to_builtins(getattr(obj, "status", None))
    if not isinstance(status, Mapping):
        return "is there"
    parts = [f"{name} {value}" for name, value in status.items() if isinstance(value, int | str)]
    for each in status.get("conditions") or ():
        why = ": ".join(text for text in (each.get("reason"), each.get("message")) if text)
        parts.append(f"{each.get('type')}={each.get('status')}" + (f" ({why})" if why else ""))
    for each in status.get("containerStatuses") or ():
        waiting = (each.get("state") or {}).get("waiting")
        if waiting:
            parts.append(f"container {each.get('name')} waits: {waiting.get('reason')}")
    return ", ".join(parts) or "has no status yet"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
