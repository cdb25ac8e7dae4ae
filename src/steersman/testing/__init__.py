"""A cluster in a test: ``from steersman.testing import Cluster``, or the fixture ``cluster`` of the plugin.

The names here are imported when first used.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.testing.cluster import (
        Client,
        Cluster,
        ClusterOptions,
        Entry,
        Manager,
        Node,
        UnusedFault,
        WaitTimeout,
    )

__all__ = ["Client", "Cluster", "ClusterOptions", "Entry", "Manager", "Node", "UnusedFault", "WaitTimeout"]


@contextmanager
def without_collector() -> Iterator[None]:
    """Pauses the garbage collector: of the modules that are loaded, and of the objects of a cluster that starts, none can go."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def __getattr__(name: str) -> Any:
    if name in __all__:
        with without_collector():
            from steersman.testing import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
