"""The action table: for each action, how it is performed, described and simulated.

The shell performs actions, the trace describes them, the ledger asks which objects a lost answer leaves in doubt,
and a row test answers as a willing server would. All of them read this table, so a new action is one class in
`steersman.intent` and one `Interpretation` here.
"""

from __future__ import annotations

from steersman.runtime.action_table import cloud, local, reads, writes
from steersman.runtime.action_table.interpretation import (
    Directories,
    Environment,
    InstantInterpretation,
    Interpretation,
    SimulatedServer,
    Written,
    describe,
    doubt_of,
    interpretation_of,
    past_tense,
)
from steersman.runtime.action_table.local import LocalDirectories, read_file

__all__ = (
    "Directories",
    "Environment",
    "InstantInterpretation",
    "Interpretation",
    "LocalDirectories",
    "SimulatedServer",
    "Written",
    "cloud",
    "describe",
    "doubt_of",
    "interpretation_of",
    "local",
    "past_tense",
    "read_file",
    "reads",
    "writes",
)
