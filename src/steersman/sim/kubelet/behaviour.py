"""Behaviour of simulated containers: how long they run and how they exit, from their command and annotations.

Simple commands are taken literally (``true``, ``false``, ``sleep 5``, ``exit 2``, and a ``sh -c`` of those); every other
program runs forever. Annotations of the pod, all with the prefix ``sim.steersman.dev/``, take precedence:


=================  =====================================================================================
``runs``           how long its containers run, such as ``5``, ``90s`` or ``1h30m``; ``forever``
``exit-code``      the exit code of its containers
``never-ready``    its images cannot be pulled
``ready``          ``false``: it runs, but is not ready; may be changed while it runs
``start-delay``    how long its sandbox and its images take, before the first container starts
``ready-delay``    how long a container takes from running to ready
``shutdown``       how long a container takes to stop
=================  =====================================================================================

``runs`` and ``exit-code`` may name one container: ``sim.steersman.dev/runs.main``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

PREFIX = "sim.steersman.dev/"
NEVER_READY = PREFIX + "never-ready"

_SHELLS = ("sh", "bash", "ash", "dash")
_SPAN = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|s|m|h|d)?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ENDS = re.compile(r"\s*(;|&&|\|\||\n)\s*")


class Behaviour(NamedTuple):
    """How long a container runs, and its exit code."""

    duration: float | None = None
    """Seconds; None is forever."""
    code: int = 0


FOREVER = Behaviour()


def seconds(text: str) -> float | None:
    """Parse a duration such as ``5``, ``250ms`` or ``1m30s``; None where it is invalid."""
    text = text.strip()
    total, at = 0.0, 0
    for part in _SPAN.finditer(text):
        if part.start() != at:
            return None
        total += float(part[1]) * _SECONDS[part[2] or "s"]
        at = part.end()
    return total if at == len(text) and text else None


def span(annotations: Mapping[str, str], name: str, default: float) -> float:
    """The duration of an annotation, or the default."""
    declared = seconds(annotations[PREFIX + name]) if PREFIX + name in annotations else None
    return default if declared is None else declared


def behaviour(
    name: str,
    command: tuple[str, ...],
    annotations: Mapping[str, str],
    unknown: Behaviour = FOREVER,
) -> Behaviour:
    """The behaviour of a container; ``unknown`` is that of a program that cannot be interpreted."""
    found = parse(command) or unknown
    if not annotations:
        return found
    runs = annotations.get(f"{PREFIX}runs.{name}", annotations.get(PREFIX + "runs"))
    code = annotations.get(f"{PREFIX}exit-code.{name}", annotations.get(PREFIX + "exit-code"))
    if runs is not None:
        found = found._replace(duration=seconds(runs))
    if code is not None and code.strip().isdigit():
        # A container with an exit code does exit.
        duration = found.duration if runs is not None or found.duration is not None else 0.0
        found = Behaviour(duration, int(code) & 255)
    return found


@lru_cache(maxsize=4096)
def parse(command: tuple[str, ...]) -> Behaviour | None:
    """The behaviour of a command; None where it cannot be interpreted."""
    if not command:
        return None
    program = command[0].rsplit("/", 1)[-1]
    if program in _SHELLS and len(command) >= 3 and command[1].startswith("-") and command[1].endswith("c"):
        return script(command[2])
    return _statement((program, *command[1:]))


def script(text: str) -> Behaviour | None:
    """The behaviour of a list of commands; None where one of them cannot be interpreted."""
    parts = _ENDS.split(text.strip())
    total, code = 0.0, 0
    for i in range(0, len(parts), 2):
        link = parts[i - 1] if i else ";"
        if (link == "&&" and code) or (link == "||" and not code):
            continue
        words = parts[i].split()
        if not words:
            continue
        ended = _statement(tuple(words[1:] if words[0] == "exec" else words))
        if ended is None:
            return None
        if ended.duration is None:
            return FOREVER
        total, code = total + ended.duration, ended.code
        if words[0] in ("exit", "exec"):
            break
    return Behaviour(total, code)


def _statement(words: tuple[str, ...]) -> Behaviour | None:
    match words:
        case ("true" | ":",) | ("echo" | "printf", *_):
            return Behaviour(0.0, 0)
        case ("false",):
            return Behaviour(0.0, 1)
        case ("sleep", "infinity" | "inf"):
            return FOREVER
        case ("sleep", *spans) if spans:
            parts = [seconds(text) for text in spans]
            return None if None in parts else Behaviour(sum(part or 0.0 for part in parts), 0)
        case ("exit",):
            return Behaviour(0.0, 0)
        case ("exit", code) if code.isdigit():
            return Behaviour(0.0, int(code) & 255)
    return None
