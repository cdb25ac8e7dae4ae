"""Rounds of a controller on caches that are changed by hand, with a clock that is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.api.kinds import Object
from steersman.api.scheme import Key, kind_of
from steersman.intent.actions import Action, Address, Delete, Emit, Patch, Read
from steersman.intent.controller import Change, Controller
from steersman.intent.verdict import Verdict, Wake
from steersman.runtime.action_table import interpretation_of
from steersman.testing.decision_driver import USUAL, Answers, StaticCaches, WillingServer, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Rounds:
    """Each change runs the rounds of the keys it enqueues. Reads are answered from the caches.

    With ``stores`` patched objects show in the caches, and deleted ones leave them; without, deleted pods stay, as if they
    terminated.
    """

    def __init__(self, controller: Controller[Any], *objects: Object, stores: bool = False) -> None:
        self.now = NOW
        self.actions: list[Action[Any]] = []
        self.answers: Answers | None = None
        self.verdicts: dict[Key, Verdict] = {}
        self.caches = StaticCaches(controller)
        self._controller = controller
        self._stores = stores
        self._server = WillingServer()
        self._due: dict[Key, datetime] = {}
        for obj in objects:
            self.put(obj)

    def put(self, obj: Any) -> None:
        """Shows a new or changed object, and runs the rounds of it."""
        old = self.caches[kind_of(obj)].get(obj.key)
        self.caches.put(obj)
        self._changed(Change(old, obj))

    def remove(self, obj: Any) -> None:
        self.caches.remove(obj)
        self._changed(Change(obj, None))

    def advance(self, seconds: float) -> None:
        """Lets time pass and runs the rounds that are due."""
        until = self.now + timedelta(seconds=seconds)
        while self._due and min(self._due.values()) <= until:
            key = min(self._due, key=lambda each: self._due[each])
            self.now = max(self.now, self._due.pop(key))
            self.round(key)
        self.now = until

    def round(self, key: Key) -> None:
        seen = self._controller.see(self.caches, key)
        if seen is None:
            return
        begin = len(self.actions)
        decision = self._controller.decide(seen, self.now)
        _, verdict = walk(decision, self.answers or self._live, recorded=self.actions)
        self.verdicts[key] = verdict
        if isinstance(verdict, Wake):
            self._due[key] = self.now + verdict.after
        if self._stores:
            self._store(self.actions[begin:])

    @property
    def writes(self) -> list[str]:
        """The patched and deleted objects, in order."""
        words = {Patch: "patch", Delete: "delete"}
        return [
            f"{words[type(each)]} {each.target.key.name}"
            for each in self.actions
            if isinstance(each, Patch | Delete)
        ]

    @property
    def deleted(self) -> list[str]:
        return [each.target.key.name for each in self.actions if isinstance(each, Delete)]

    @property
    def events(self) -> list[str]:
        return [each.message for each in self.actions if isinstance(each, Emit)]

    def _live(self, action: Action[Any]) -> Any:
        if not isinstance(action, Read):
            return USUAL
        target = action.target
        kind = target.kind if isinstance(target, Address) else kind_of(target)
        found = self.caches[kind].get(target.key)
        return NotFound("not found") if found is None else found

    def _store(self, actions: list[Action[Any]]) -> None:
        for action in actions:
            if isinstance(action, Delete) and not isinstance(action.target, Address):
                self.remove(action.target)
            elif isinstance(action, Patch):
                patched = interpretation_of(action).simulate(self._server, action)
                known = self.caches[kind_of(patched)].get(patched.key)
                if known is not None:
                    self.put(replace(known, status=patched.status))

    def _changed(self, change: Change[Any]) -> None:
        for watch in self._controller.watches:
            if watch.kind.resource != kind_of(change.obj).resource:
                continue
            assert isinstance(watch.delay, float)
            for key in watch.to(self.caches, change):
                if watch.delay:
                    self._due[key] = min(
                        self.now + timedelta(seconds=watch.delay),
                        self._due.get(key, datetime.max.replace(tzinfo=UTC)),
                    )
                else:
                    self.round(key)
