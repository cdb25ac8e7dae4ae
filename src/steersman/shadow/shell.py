"""The shell of a shadow: reads are performed, writes are imagined.

A write is answered as a willing server would answer it and becomes an intention. Nothing enters the ledger, since no watch will ever
show what was not sent: a key may be decided again as soon as anything changes.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from steersman.api.cloud import NotSupported
from steersman.api.errors import ApiError, Conflict, Forbidden, Invalid, Unauthorized
from steersman.api.patch.values import PatchError
from steersman.api.scheme import Key
from steersman.intent.actions import (
    Action,
    Address,
    Create,
    CreateReview,
    Emit,
    MakeDirectory,
    Patch,
    ReadModifyWrite,
    RemoveDirectory,
    UpdateStatus,
    Write,
)
from steersman.intent.cloud import CloudCall
from steersman.intent.verdict import InvalidSpec, Verdict
from steersman.runtime.action_table import interpretation_of
from steersman.runtime.action_table.interpretation import address_of
from steersman.runtime.decision_driver import WillingServer, patched
from steersman.runtime.shell import Shell
from steersman.runtime.trace import Step
from steersman.shadow.intention import Effect, changes, effect_of, normalised

T = TypeVar("T")


class ImaginedWrites:
    """The writes that one round wants, in their order."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.events: list[Emit] = []
        self.refused = False
        """Whether the server would have refused one of them."""
        self.failed = False
        """Whether the round ended in an error that the acting manager must have met, too: an invalid spec, a missing object, a refusal."""


class ShadowShell(Shell):
    """Drives the decisions of one controller, and writes nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._server = WillingServer()
        self._rounds: dict[Key, ImaginedWrites] = {}
        self.refuse: Callable[[Create[Any]], ApiError | None] = lambda action: None
        """The error that the server would answer a create with; None where it would grant it."""

    def take(self, key: Key) -> ImaginedWrites:
        """The writes that the last round of a key wants; none if it made no decision."""
        return self._rounds.pop(key, None) or ImaginedWrites()

    async def drive(self, key: Key, decision: Awaitable[Verdict], steps: list[Step] | None) -> Verdict:
        wanted = self._rounds[key] = ImaginedWrites()
        try:
            return await super().drive(key, decision, steps)
        except (Forbidden, Unauthorized):
            wanted.failed = wanted.refused
            raise
        except (ApiError, InvalidSpec):
            wanted.failed = True
            raise

    async def resolve(self, key: Key) -> None:
        """There is nothing in doubt: no write was sent."""

    async def imagine(self, decision: Awaitable[Verdict]) -> tuple[ImaginedWrites, Verdict]:
        """Drive a decision outside of any round; returns the writes that it wants, and its verdict."""
        key = Key("", f"imagined {id(decision)}")
        self._rounds[key] = ImaginedWrites()
        try:
            verdict = await super().drive(key, decision, None)
            return self.take(key), verdict
        finally:
            self._rounds.pop(key, None)

    async def _perform(self, key: Key, action: Action[T]) -> T:
        if isinstance(action, Write):
            return cast("T", await self._imagine(key, action))
        if isinstance(action, Emit):
            self._rounds[key].events.append(action)
            return cast("T", None)
        if isinstance(action, CreateReview):
            raise Forbidden("a review is a POST, which a shadow does not send")
        if isinstance(action, CloudCall):
            raise NotSupported("a shadow calls no cloud provider")
        if isinstance(action, MakeDirectory | RemoveDirectory):
            return cast("T", None)
        return await super()._perform(key, action)

    async def _imagine(self, key: Key, action: Write[Any]) -> Any:
        wanted = self._rounds[key].effects
        if isinstance(action, UpdateStatus) and _changes_nothing(action):
            return action.target
        if isinstance(action, ReadModifyWrite):
            return await self._mutate(action, wanted)
        if isinstance(action, Patch) and isinstance(action.target, Address):
            return await self._patch(action, wanted)
        if isinstance(action, Create) and (refusal := self.refuse(action)) is not None:
            self._rounds[key].refused = True
            raise refusal
        effect = effect_of(action)
        if not effect.changes_nothing:
            wanted.append(effect)
        return interpretation_of(action).simulate(self._server, action)

    async def _mutate(self, action: ReadModifyWrite[Any], wanted: list[Effect]) -> Any:
        return await self._edit(address_of(action.target), action, wanted, action.mutate)

    async def _patch(self, action: Patch[Any], wanted: list[Effect]) -> Any:
        at = address_of(action.target)

        def change(document: dict[str, Any]) -> None:
            body = msgspec.json.decode(msgspec.json.encode(action.body))
            if isinstance(body, dict):
                self._check_preconditions(body, document, at)
            try:
                changed = patched(at.kind, document, body, action.type)
            except PatchError as error:
                raise Invalid(str(error)) from None
            document.clear()
            document.update(changed)

        return await self._edit(at, action, wanted, change)

    def _check_preconditions(self, body: dict[str, Any], document: dict[str, Any], at: Address[Any]) -> None:
        uid = (body.get("metadata") or {}).get("uid")
        if uid and uid != document["metadata"].get("uid"):
            raise Conflict(f"{at.kind.resource} {at.key} was replaced by another of the same name")

    async def _edit(
        self,
        at: Address[Any],
        action: Write[Any],
        wanted: list[Effect],
        change: Callable[[dict[str, Any]], None],
    ) -> Any:
        """Change a copy of the live document; an edit that changes nothing is no intention."""
        before = await self._env.api.get(at.kind.untyped, at.namespace, at.name)
        if at.uid and before["metadata"].get("uid") != at.uid:
            raise Conflict(f"{at.kind.resource} {at.key} was replaced by another of the same name")
        after = copy.deepcopy(before)
        change(after)
        if after != before:
            effect = effect_of(action)
            if not effect.content:
                # Another edit of an object that was written meanwhile is a new intention.
                edit = "\n".join(changes(normalised(before), normalised(after)))
                effect = replace(effect, content=edit)
            wanted.append(effect)
        if at.kind.type is dict:
            return after
        return msgspec.json.decode(msgspec.json.encode(after), type=at.kind.type)


def _changes_nothing(action: UpdateStatus[Any]) -> bool:
    """Whether a status update is equal to what there is already: the live shell does not send it."""
    annotations = action.annotations
    return bool(action.status == getattr(action.target, "status", None)) and (
        annotations is None or dict(annotations) == dict(action.target.metadata.annotations)
    )
