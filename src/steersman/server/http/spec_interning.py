"""Bodies that come again and again, read once.

A controller sends a pod of the same template many times. What is made of the same bytes is the same object, and
all that the server has found out about it (its defaults, what admission adds, that it is valid) is known already.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.generated.core_v1 import Pod

K = TypeVar("K")
V = TypeVar("V")


class Memory(Generic[K, V]):
    """Remembers a few things; the oldest are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        return self._known.get(key)

    def put(self, key: K, value: V) -> None:
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[key] = value


LONGEST = 16 * 1024
"""Bytes of a body beyond which nothing is remembered of it."""

_specs: Memory[bytes, Any] = Memory(512)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


def shared(pod: Pod, raw: bytes) -> Pod:
    """A pod just read from these bytes, with the spec that others had who were sent the same."""
    spec = _parts.decode(raw).get("spec")
    if spec is None:
        return pod
    key = bytes(spec)
    known = _specs.get(key)
    if known is None:
        _specs.put(key, pod.spec)
        return pod
    return replace(pod, spec=known)
