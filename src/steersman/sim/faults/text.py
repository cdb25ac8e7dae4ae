"""Faults as text: ``crash_after_write(7) + frozen_watch(pods, 30)``, for command lines and reports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.crashes import AnswerLost, CrashAfterWrite, CrashBeforeWrite, StaleRestart
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen, TwoLeaders
from steersman.sim.faults.lossy_watches import CoalescedEvents, HiddenEvents, UnreadableEvents
from steersman.sim.faults.objects import Corrupted, Garbage
from steersman.sim.faults.refusals import Answers, DiscoveryFails, Reset, SlowAnswers
from steersman.sim.faults.watches import DuplicatedEvents, FrozenWatch, SlowWatch, WatchCut

ALL: tuple[type[Fault], ...] = (
    CrashAfterWrite,
    CrashBeforeWrite,
    AnswerLost,
    StaleRestart,
    Answers,
    Reset,
    SlowAnswers,
    DiscoveryFails,
    FrozenWatch,
    SlowWatch,
    DuplicatedEvents,
    WatchCut,
    CoalescedEvents,
    HiddenEvents,
    UnreadableEvents,
    LeaseStolen,
    LeaseDeleted,
    TwoLeaders,
    ClockJump,
    ClockRate,
    Corrupted,
    Garbage,
)
WORDS: Mapping[str, type[Fault]] = {fault.word: fault for fault in ALL}
JOINT = " + "


class BadFault(ValueError):
    """Text that is no fault. The message says why, and what there is."""


def text(faults: Iterable[Fault]) -> str:
    """Faults as text that `parse` reads back."""
    return JOINT.join(map(str, faults))


def parse(words: str) -> tuple[Fault, ...]:
    """The faults of a text, joined by ``+``; none of an empty one. Raises `BadFault`."""
    if not words.strip():
        return ()
    try:
        tree = ast.parse(words.strip(), mode="eval").body
    except SyntaxError:
        raise BadFault(f"{words!r} is no list of faults, such as crash_after_write(7)") from None
    return tuple(_fault(call) for call in _calls(tree, words))


def _calls(tree: ast.expr, words: str) -> list[ast.Call]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        return _calls(tree.left, words) + _calls(tree.right, words)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return [tree]
    raise BadFault(f"{words!r} is no list of faults, such as crash_after_write(7) + answer_lost(9)")


def _fault(call: ast.Call) -> Fault:
    assert isinstance(call.func, ast.Name)
    word = call.func.id
    kind = WORDS.get(word)
    if kind is None:
        raise BadFault(f"there is no fault {word!r}; there are: {', '.join(WORDS)}")
    given = [_value(each) for each in call.args]
    named = {each.arg: _value(each.value) for each in call.keywords if each.arg is not None}
    try:
        return kind(*given, **named)
    except (TypeError, ValueError) as error:
        raise BadFault(f"{ast.unparse(call)}: {error}") from None


def _value(node: ast.expr) -> Any:
    """A number, or a word with or without quotes: ``pods``, ``deployments.apps``."""
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    raise BadFault(f"{ast.unparse(node)} is neither a number nor a word")
