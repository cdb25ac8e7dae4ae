"""Maps klog's verbosities (``-v``, 0 to 10) to levels of the standard library's logging.

::

    log.log(V[6], "GET took 4 ms", extra=structured("Response", verb="GET", milliseconds=4))

Records above the configured verbosity are dropped by the logger's level check. The klog and JSON formatters
(`steersman.manager.logs`) write the structured message and its values; other formatters write the plain text.
"""

from __future__ import annotations

import logging
from typing import Any

V = tuple(logging.INFO - verbosity for verbosity in range(11))
"""The logging level of each verbosity: `logging.INFO` for 0, `logging.DEBUG` for 10."""


def verbosity(level: int) -> int:
    """Return the verbosity of a level; 0 for warnings and errors."""
    return max(0, logging.INFO - level)


def structured(brief: str, /, **values: Any) -> dict[str, Any]:
    """Return the ``extra`` of a structured record: a constant message and its values."""
    return {"brief": brief, "values": values}
