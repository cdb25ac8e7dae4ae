"""What is wrong with flags that can be read: ranges, and flags that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.manager import choice
from steersman.manager.features import Features


def problems(values: Mapping[str, Any], features: Features) -> Iterator[str]:
    """Each mistake in one line, in the words kube-controller-manager has for it."""
    if values["leader-elect"] and values["leader-elect-resource-lock"] != "leases":
        yield 'resourceLock value must be "leases"'
    yield from choice.unknown(values["controllers"])
    port = values["secure-port"]
    if port > 65535:
        yield f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
    if port < 0:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    if values["logging-format"] not in ("text", "json"):
        yield f'format: Invalid value: "{values["logging-format"]}": Unsupported log format'
