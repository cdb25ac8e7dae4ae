"""The page of an explanation: one screen of plain text, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from steersman.explain.model import Decision, Explanation, Finding, State, Weight
from steersman.explain.situations.registry import knows

Paint: TypeAlias = Callable[[str, str], str]
BOLD, RED, YELLOW, GREEN, DIM = "1", "31", "33", "32", "2"
MORE_FINDINGS = 6
"""Findings that are shown after the first."""
MAX_TREE = 24
"""Objects of the tree that are shown."""
_COLOURS = {
    Weight.ROOT: RED,
    Weight.BLOCKED: RED,
    Weight.WAITS: YELLOW,
    Weight.CONSEQUENCE: YELLOW,
    Weight.NOTE: DIM,
}


def text(explanation: Explanation, paint: Paint = lambda words, colour: words) -> str:
    """The page as text."""
    return "\n".join(_lines(explanation, paint))


def _lines(told: Explanation, paint: Paint) -> Iterator[str]:
    yield paint(told.summary, BOLD)
    yield ""
    rest = told.findings
    if told.well:
        known = knows(told.subject.kind)
        yield paint("All is as it should be." if known else "Nothing is known to be wrong with it.", GREEN)
    elif not rest:
        yield paint("No cause is known.", YELLOW)
    else:
        yield from _finding(rest[0], paint)
        rest = rest[1:]
    if rest:
        yield ""
        yield paint("Also:", BOLD)
        yield from (f"  - {each.sentence}" for each in rest[:MORE_FINDINGS])
        if len(rest) > MORE_FINDINGS:
            yield f"  - {len(rest) - MORE_FINDINGS} more; -o json shows all"
    yield ""
    yield paint("Objects:", BOLD)
    yield from _tree(told.tree, paint)
    if told.decisions:
        yield ""
        yield paint("The loops, asked now:", BOLD)
        yield from map(_decision, told.decisions)
    if told.unread:
        yield ""
        yield paint(f"Not read, so a cause may be missing: {'; '.join(told.unread)}", DIM)


def _finding(found: Finding, paint: Paint) -> Iterator[str]:
    yield paint(found.sentence, _COLOURS[found.weight])
    for label, words in (("loop", found.controller), ("next", found.next), ("to do", found.remedy)):
        if words:
            yield f"  {label + ':':<7}{words}"


def _tree(tree: tuple[State, ...], paint: Paint) -> Iterator[str]:
    for each in tree[:MAX_TREE]:
        mark = paint("ok", GREEN) if each.well else paint("--", RED)
        indent = "  " * (each.depth + 1) if each.depth >= 0 else "  "
        relation = f"{each.relation} " if each.relation else ""
        yield f"{indent}{mark} {relation}{each.subject}: {each.has}"
    if len(tree) > MAX_TREE:
        yield f"  … and {len(tree) - MAX_TREE} more"


def _decision(decision: Decision) -> str:
    would = f"would {', then '.join(decision.would)}; " if decision.would else ""
    return f"  {decision.controller}, {decision.subject}: {would}{decision.verdict}"


def document(explanation: Explanation) -> dict[str, Any]:
    """The explanation as a plain document, for programs."""
    return {
        "subject": explanation.subject._asdict(),
        "at": explanation.at,
        "summary": explanation.summary,
        "well": explanation.well,
        "first": explanation.first,
        "findings": [
            {
                **msgspec.to_builtins(each),
                "subject": each.subject._asdict(),
                "others": [one._asdict() for one in each.others],
                "weight": each.weight.name.lower(),
                "sentence": each.sentence,
            }
            for each in explanation.findings
        ],
        "tree": [
            {**msgspec.to_builtins(each), "subject": each.subject._asdict()} for each in explanation.tree
        ],
        "decisions": [
            {**msgspec.to_builtins(each), "subject": each.subject._asdict()} for each in explanation.decisions
        ],
        "unread": explanation.unread,
    }
