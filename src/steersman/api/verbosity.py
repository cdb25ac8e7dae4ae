"""How much is logged: Kubernetes' verbosities, 0 to 10, as levels of the standard library.

::

    log.log(V[6], "Response", extra={"values": {"verb": "GET", "milliseconds": 4}})

What ``-v`` does not ask for is dropped by the standard library's own check of a level, which is cheap. A record's
``values`` are told apart from its message by those who write it down.
"""

from __future__ import annotations

import logging

V = tuple(logging.INFO - verbosity for verbosity in range(11))
"""The level of each verbosity: `logging.INFO` for 0, `logging.DEBUG` for 10."""


def verbosity(level: int) -> int:
    """The verbosity that a record of this level needs; 0 for warnings and errors."""
    return max(0, logging.INFO - level)
