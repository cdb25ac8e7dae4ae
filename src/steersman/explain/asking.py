"""Asks why: from the words of a command line to an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.client.api import Api
from steersman.explain.collect import Target, collect, find_kind
from steersman.explain.explanation import explain
from steersman.explain.model import Explanation


class Question(msgspec.Struct, frozen=True):
    """The object to explain, as it is named on a command line."""

    kind: str
    name: str
    namespace: str


def parse_subject(words: Sequence[str]) -> tuple[str, str]:
    """The kind and the name in ``KIND/NAME`` or ``KIND NAME``. Raises `ValueError`."""
    match words:
        case [word] if "/" in word:
            kind, _, name = word.partition("/")
        case [kind, name]:
            pass
        case _:
            kind, name = "", ""
    if not kind or not name or "/" in name:
        raise ValueError(f"name the object as KIND/NAME, such as deployment/web, not as {' '.join(words)!r}")
    return kind, name


async def ask(
    api: Api, question: Question, now: datetime, *, decisions: bool = True, trace: Api | None = None
) -> Explanation:
    """Explain an object with get and list only. Raises `UnknownKind`, `NotFound` or another `ApiError`.

    ``decisions``: ask the controllers, too. ``trace`` is where a manager serves its trace; by default the API server, which has
    one if it is steersman's.
    """
    kind = await find_kind(api, question.kind)
    target = Target(kind, question.namespace if kind.namespaced else "", question.name)
    try:
        document, snapshot = await collect(api, target, now, trace)
    except NotFound:
        where = f" in namespace {target.namespace}" if target.namespace else ""
        raise NotFound(f"there is no {kind.name} {question.name}{where}") from None
    told = explain(snapshot, document)
    if not decisions:
        return told
    # The controllers' types take a moment to import.
    from steersman.controllers import CONTROLLERS
    from steersman.explain.decisions import ask_controllers

    subjects = [each.subject for each in told.tree if not each.well]
    asked = await ask_controllers(api, CONTROLLERS, subjects, snapshot.now)
    return replace(told, decisions=asked)
