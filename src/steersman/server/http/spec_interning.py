"""Bodies that come again and again, read once.

A controller sends a pod of the same template many times. What is made of the same bytes is the same object, and
all that the server has found out about it (its defaults, what admission adds, that it is valid) is known already.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import Pod

LONGEST = 16 * 1024
"""Bytes of a body beyond which nothing is remembered of it."""

_specs: BoundedCache[bytes, Any] = BoundedCache(512)
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
