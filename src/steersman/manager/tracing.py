"""The trace of a process, as its environment configures it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from steersman.runtime.trace import Trace

SWITCH = "STEERSMAN_TRACE"
"""Set to ``off``, no rounds are recorded."""


def make_trace(environ: Mapping[str, str] = os.environ) -> Trace:
    """The trace of this process."""
    return Trace(enabled=environ.get(SWITCH, "").lower() not in ("off", "0", "false"))
