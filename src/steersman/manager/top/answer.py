"""The answer of ``/debug/rounds`` as types. Fields that a later version adds are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from steersman.runtime.trace_figures import Fight, Figures


class Queue(msgspec.Struct, frozen=True, rename="camel"):
    """The work queue of a controller."""

    ready: int = 0
    waiting: int = 0
    """Keys that wait for their time."""
    working: int = 0
    oldest_seconds: float = 0.0
    """How long the oldest key has been ready."""
    longest_seconds: float = 0.0
    """How long the longest round has been running."""


class ControllerState(msgspec.Struct, frozen=True, rename="camel"):
    """A controller: its totals since the start, its queue now, and its last minute."""

    name: str
    last_minute: Figures
    kind: str = ""
    rounds: int = 0
    failures: int = 0
    crashes: int = 0
    queue: Queue = Queue()
    write_latency: float = 0.0


class CauseText(msgspec.Struct, frozen=True, rename="camel"):
    """Why a key was enqueued."""

    type: str
    text: str
    resource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    event: str = ""
    resource_version: str = ""
    round: int = 0
    """The round whose write caused the event; 0: another client's, or no longer known."""


class StepText(msgspec.Struct, frozen=True):
    """An action of a round, in words."""

    action: str
    outcome: str = ""


class EndingText(msgspec.Struct, frozen=True, rename="camel"):
    """The verdict of a round, or its failure. One of ``rest``, ``wake`` and ``failure`` is set."""

    rest: str | None = None
    wake: float | None = None
    because: str = ""
    failure: str | None = None
    retry_after: float = 0.0


class RoundText(msgspec.Struct, frozen=True):
    """A round, as the trace tells it."""

    number: int
    controller: str
    namespace: str
    name: str
    started: datetime
    took: float
    waited: float
    ending: EndingText
    causes: tuple[CauseText, ...] = ()
    steps: tuple[StepText, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """One answer of ``/debug/rounds``."""

    now: datetime
    running: bool
    last: int
    controllers: tuple[ControllerState, ...]
    fights: tuple[Fight, ...]
    rounds: tuple[RoundText, ...]
    next: int
    truncated: bool = False
    enabled: bool = True
    """Whether rounds are recorded."""


def read_answer(document: Mapping[str, Any]) -> Answer:
    """An answer from its JSON document. Raises `ValueError` if it is none."""
    try:
        return msgspec.convert(document, Answer)
    except msgspec.ValidationError as error:
        raise ValueError(f"the answer of /debug/rounds is not one that this version reads: {error}") from None
