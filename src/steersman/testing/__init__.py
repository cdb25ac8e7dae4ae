"""A cluster in a test: ``from steersman.testing import Cluster``, or the fixture ``cluster`` of the plugin.

The names here are imported when first used.
"""

from __future__ import annotations

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


def __getattr__(name: str) -> Any:
    if name in __all__:
        from steersman.runtime.python_gc import without_collector

        with without_collector():
            from steersman.testing import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
