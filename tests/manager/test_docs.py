"""What the documents say of flags and gates is so."""

from __future__ import annotations

import re
from pathlib import Path

from steersman.controllers import CONTROLLERS
from steersman.intent.gates import GATES
from steersman.manager.controller_selection import KNOWN
from steersman.manager.flag_table import FLAGS, declared

TEXT = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text()


def table(heading: str) -> str:
    """The first table under a heading, its first column."""
    section = TEXT.split(f"\n## {heading}\n")[1]
    rows = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert rows is not None
    return "\n".join(row.split("|")[1] for row in rows[0].splitlines()[2:])


def test_the_flags_without_effect_are_those_of_controllers_that_are_not_there_and_a_few_more() -> None:
    told = re.findall(r"`--([\w-]+)`", table("Flags"))
    here = [controller.name for controller in CONTROLLERS]
    sections = {flag.name: flag.section.lower() for flag in FLAGS}
    idle = [name for name, section in sections.items() if section in KNOWN and section not in here]
    assert set(idle) <= set(told) <= set(sections)
    assert len(told) == len(set(told))
    assert not set(told) & set(declared())


def test_the_gates_without_effect_are_gates() -> None:
    told = re.findall(r"`(\w+)`", table("Feature gates"))
    assert told
    assert set(told) <= set(GATES)
    assert f"All {len(GATES)}, with their stages" in TEXT
