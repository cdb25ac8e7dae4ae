"""What a client in its server's own process may count on, and what the server may know of its readers.

Both are only ever used to leave out what nobody could tell from what is done: see `steersman.runtime.rhythm`.
"""

from __future__ import annotations

from contextvars import ContextVar

LEVEL: ContextVar[bool] = ContextVar("level", default=False)
"""Set by who reads a watch to know how things are, and not each step by which they came to be so."""


def is_steady(api: object) -> bool:
    """Whether requests through an `Api` never fail by chance, and its watches last as long as they are read.

    True of a client in its server's own process; what wraps one says so itself (``steady``) while it lets
    everything pass.
    """
    return bool(getattr(api, "steady", False))
