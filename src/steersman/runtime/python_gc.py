"""Python's garbage collector: paused while a process starts, and told which objects stay.

A full collection visits every tracked object, and holds up the event loop meanwhile: 100 ms and more for the modules of this program
alone. Modules, caches and templates live as long as the process, so nothing is gained by visiting them again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Pauses the collector while modules are loaded or a cluster starts: next to nothing that is made then can go."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def freeze(*, collect: bool = True) -> None:
    """Exempts all objects there are from later collections, after a last one."""
    if collect:
        gc.collect()
    gc.freeze()
