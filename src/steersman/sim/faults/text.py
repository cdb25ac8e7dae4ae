"""The textual form of faults: ``crash_after_write(7) + frozen_watch(pods, 30)``, for command lines and reports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

from steersman.api.suggestions import hint
from steersman.sim.faults.clocks import ClockJump, ClockRate
from steersman.sim.faults.crashes import CrashAfterWrite, CrashBeforeWrite, ResponseLost, StaleRestart
from steersman.sim.faults.fault import Fault
from steersman.sim.faults.leaders import LeaseDeleted, LeaseStolen, TwoLeaders
from steersman.sim.faults.lossy_watches import CoalescedEvents, DroppedEvents, UndecodableEvents
from steersman.sim.faults.objects import CorruptedField, MalformedObject
from steersman.sim.faults.requests import (
    ConnectionReset,
    DiscoveryFailure,
    ErrorResponse,
    RequestLatency,
    SlowResponse,
)
from steersman.sim.faults.watches import DuplicatedEvents, FrozenWatch, SlowWatch, WatchCut

ALL: tuple[type[Fault], ...] = (
    CrashAfterWrite,
    CrashBeforeWrite,
    ResponseLost,
    StaleRestart,
    ErrorResponse,
    ConnectionReset,
    SlowResponse,
    RequestLatency,
    DiscoveryFailure,
    FrozenWatch,
    SlowWatch,
    DuplicatedEvents,
    WatchCut,
    CoalescedEvents,
    DroppedEvents,
    UndecodableEvents,
    LeaseStolen,
    LeaseDeleted,
    TwoLeaders,
    ClockJump,
    ClockRate,
    CorruptedField,
    MalformedObject,
)
WORDS: Mapping[str, type[Fault]] = {fault.name: fault for fault in ALL}
JOINT = " + "


class InvalidFault(ValueError):
    """Invalid text of a fault. The message says what is wrong."""


def text(faults: Iterable[Fault]) -> str:
    """Faults as text, which `parse` reads back."""
    return JOINT.join(map(str, faults))


def parse(words: str) -> tuple[Fault, ...]:
    """Parse faults joined by ``+``; empty text is no fault. Raises `InvalidFault`."""
    if not words.strip():
        return ()
    try:
        tree = ast.parse(words.strip(), mode="eval").body
    except SyntaxError:
        raise InvalidFault(f"{words!r} is not a list of faults such as crash_after_write(7)") from None
    return tuple(_fault(call) for call in _calls(tree, words))


def _calls(tree: ast.expr, words: str) -> list[ast.Call]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        return _calls(tree.left, words) + _calls(tree.right, words)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return [tree]
    raise InvalidFault(f"{words!r} is not a list of faults such as crash_after_write(7) + response_lost(9)")


def _fault(call: ast.Call) -> Fault:
    assert isinstance(call.func, ast.Name)
    word = call.func.id
    kind = WORDS.get(word)
    if kind is None:
        raise InvalidFault(f"unknown fault {word!r}; {hint(word, WORDS)}")
    given = [_value(each) for each in call.args]
    named = {each.arg: _value(each.value) for each in call.keywords if each.arg is not None}
    try:
        return kind(*given, **named)
    except ValueError as error:
        raise InvalidFault(f"{ast.unparse(call)}: {str(error).removeprefix(f'{word}: ')}") from None
    except TypeError as error:
        text = str(error).removeprefix(f"{word}: ")
        raise InvalidFault(f"{ast.unparse(call)}: {text}; its form is {word}{signature(kind)}") from None


def _value(node: ast.expr) -> Any:
    """A number, or a word with or without quotes, such as ``pods`` or ``deployments.apps``."""
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    raise InvalidFault(f"{ast.unparse(node)} is neither a number nor a word")
