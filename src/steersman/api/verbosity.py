"""How much is logged: Kubernetes' verbosities, 0 to 10, as levels of the standard library.

::

    log.log(V[6], "GET took 4 ms", extra=told_as("Response", verb="GET", milliseconds=4))

What ``-v`` does not ask for is dropped by the standard library's own check of a level, which is cheap. Whoever writes
records down as Kubernetes' components do (`steersman.manager.logs`) tells a fixed message and its values apart; all
others write the sentence.
"""

from __future__ import annotations

import logging
from typing import Any

V = tuple(logging.INFO - verbosity for verbosity in range(11))
"""The level of each verbosity: `logging.INFO` for 0, `logging.DEBUG` for 10."""


def verbosity(level: int) -> int:
    """The verbosity that a record of this level needs; 0 for warnings and errors."""
    return max(0, logging.INFO - level)


def structured(brief: str, /, **values: Any) -> dict[str, Any]:
    """What a record is in terms of a message that is always the same and values: its ``extra``."""
    return {"brief": brief, "values": values}
