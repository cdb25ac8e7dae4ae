"""Drive a decision without a cluster: for row tests, which compare its actions and verdict, and for explanations.

`StaticCaches` are caches to observe; `walk` drives a decision, answers its actions and records them::

    actions, verdict = walk(decide(seen, now))
    assert actions == [Delete(pod)]
    assert verdict == Rest("expired")

By default every action is answered as a willing server would: a created object gets a name, a uid and a
resourceVersion, a patch is applied, a read returns the cached object. ``answers`` overrides that, in one of three ways:

- a mapping from the type of an action to its answer: ``{Create: AlreadyExists("taken")}``;
- a function of the action that returns its answer, or `USUAL`;
- a list of answers, one for each action in turn; the actions after its end get the usual answer.

An exception as an answer is thrown into the decision; in a mapping, a list is used up one by one, and a function is
called with the action.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from steersman.api import patch
from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.kinds import Object, ObjectMeta, Struct
from steersman.api.scheme import Kind, encode, kind_of
from steersman.intent.actions import (
    Action,
    Batch,
    DirectoryError,
    Done,
    Failed,
    FileUnreadable,
    Outcome,
    PatchType,
)
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Controller
from steersman.intent.verdict import Verdict
from steersman.runtime.action_table import interpretation_of
from steersman.runtime.store import Store

O = TypeVar("O", bound=Object)

LONGEST_WALK = 10_000
"""Actions after which a decision counts as endless."""


class _Usual(Enum):
    USUAL = "usual"


USUAL = _Usual.USUAL
"""The answer a willing server would give."""

Answers: TypeAlias = Mapping[type[Action[Any]], Any] | Callable[[Action[Any]], Any] | Sequence[Any]


def walk(
    decision: Awaitable[Verdict],
    answers: Answers | None = None,
    *,
    recorded: list[Action[Any]] | None = None,
) -> tuple[list[Action[Any]], Verdict]:
    """Drive a decision to its verdict; returns the actions in the order they were performed, and the verdict.

    A batch is recorded as those of its actions that were tried. An exception of the decision is raised here; pass a
    list as ``recorded`` to get the actions until then.
    """
    actions = recorded if recorded is not None else []
    driver = _Driver(_answerer(answers), actions)
    steps = decision.__await__()
    try:
        action = steps.send(None)
        while True:
            if not isinstance(action, Action):
                raise TypeError(f"a decision awaits actions only, not {action!r}")
            try:
                answer = driver.answer(action)
            except (ApiError, FileUnreadable, DirectoryError) as error:
                action = steps.throw(error)
            else:
                action = steps.send(answer)
    except StopIteration as stop:
        return actions, cast("Verdict", stop.value)
    finally:
        steps.close()


def _answerer(answers: Answers | None) -> Callable[[Action[Any]], Any]:
    """The given answers as a function of the action."""
    if answers is None:
        return lambda action: USUAL
    if callable(answers):
        return answers
    if isinstance(answers, Mapping):
        queues: dict[type[Action[Any]], Iterator[Any]] = {
            type_: iter(answer) for type_, answer in answers.items() if isinstance(answer, list)
        }

        def look_up(action: Action[Any]) -> Any:
            if type(action) in queues:
                answer = next(queues[type(action)], USUAL)
            else:
                answer = answers.get(type(action), USUAL)
            return answer(action) if callable(answer) and not isinstance(answer, type) else answer

        return look_up
    turns = iter(answers)
    return lambda action: next(turns, USUAL)


class StaticCaches:
    """The caches of a controller's watches, filled by hand; a `Caches`."""

    def __init__(self, controller: Controller[Any], *objects: Object) -> None:
        self._stores: dict[str, Store[Any]] = {}
        self.memory = controller.memory() if controller.memory is not None else None
        self.elapsed = 0.0
        """Seconds that `monotonic` returns."""
        for watch in controller.watches:
            store = self._stores.setdefault(watch.kind.resource, Store())
            for name, index in watch.indexes.items():
                store.add_index(name, index)
        self.put(*objects)

    def __getitem__(self, kind: Kind[O]) -> Store[O]:
        return self._stores[kind.resource]

    @property
    def all_objects(self) -> AllObjects:
        """Controllers that follow every resource are tested with a cache of their own."""
        raise LookupError("these caches hold the kinds of the controller's watches only")

    def monotonic(self) -> float:
        """The seconds in `elapsed`, for a test to set."""
        return self.elapsed

    def put(self, *objects: Object) -> None:
        """Add or replace objects."""
        for obj in objects:
            self._stores[kind_of(obj).resource].put(obj)

    def put_undecodable(self, kind: Kind[Any], metadata: ObjectMeta, error: str) -> None:
        """Add or replace an object that cannot be decoded. Only `UndecodableCaches` show it as such."""
        obj = kind.type(metadata=metadata)
        store = self._stores[kind.resource]
        store.put(obj)
        store.unreadable[obj.key] = error

    def remove(self, obj: Object) -> None:
        """Remove an object."""
        self._stores[kind_of(obj).resource].remove(obj.key)


class _Driver:
    """Answers actions by the given answers, and otherwise by the simulation of the action table."""

    def __init__(self, ask: Callable[[Action[Any]], Any], recorded: list[Action[Any]]) -> None:
        self._ask = ask
        self._recorded = recorded
        self._server = WillingServer()

    def answer(self, action: Action[Any]) -> Any:
        if isinstance(action, Batch):
            return self._batch(action)
        if len(self._recorded) >= LONGEST_WALK:
            raise AssertionError(
                f"no verdict after {LONGEST_WALK} actions; the last was {self._recorded[-1]!r}"
            )
        self._recorded.append(action)
        answer = self._ask(action)
        if isinstance(answer, BaseException):
            raise answer
        return interpretation_of(action).simulate(self._server, action) if answer is USUAL else answer

    def _batch(self, batch: Batch[Any]) -> list[Outcome[Any]]:
        groups = batch.groups()
        try:
            group = next(groups)
            while True:
                group = groups.send([self._attempt(action) for action in group])
        except StopIteration as stop:
            return cast("list[Outcome[Any]]", stop.value)

    def _attempt(self, action: Action[Any]) -> Outcome[Any]:
        try:
            return Done(self.answer(action))
        except ApiError as error:
            return Failed(error)


class WillingServer:
    """Grants every request; nothing is stored. A `SimulatedServer`."""

    def __init__(self) -> None:
        self._created = 0
        self.revision = 1_000_000

    def create(self, kind: Kind[Any], namespace: str, body: object) -> Any:
        obj: Any = body if type(body) is kind.type else _read(kind, msgspec.json.decode(encode(kind, body)))
        self._created += 1
        meta = msgspec.convert(obj.get("metadata", {}), ObjectMeta) if isinstance(obj, dict) else obj.metadata
        named = replace(
            meta,
            name=meta.name or f"{meta.generateName}{self._created:05d}",
            namespace=namespace,
            uid=meta.uid or f"uid-{self._created}",
            resourceVersion=self._next(),
            generation=meta.generation or 1,
        )
        if isinstance(obj, dict):
            return {**obj, "metadata": {**obj.get("metadata", {}), **msgspec.to_builtins(named)}}
        return replace(obj, metadata=named)

    def update(self, obj: Any) -> Any:
        return replace(obj, metadata=replace(obj.metadata, resourceVersion=self._next()))

    def patch(self, obj: Any, body: object, type_: PatchType) -> Any:
        kind = kind_of(obj)
        document = msgspec.json.decode(encode(kind, obj))
        change = msgspec.json.decode(msgspec.json.encode(body))
        return self.update(_read(kind, patched(kind, document, change, type_)))

    def mutate(self, obj: Any, mutate: Callable[[dict[str, Any]], None]) -> Any:
        kind = kind_of(obj)
        document = msgspec.json.decode(encode(kind, obj))
        mutate(document)
        return self.update(_read(kind, document))

    def _next(self) -> str:
        self.revision += 1
        return str(self.revision)


def _read(kind: Kind[Any], document: object) -> Any:
    """A document decoded to its type, through JSON, because raw parts only stay raw that way."""
    return msgspec.json.decode(msgspec.json.encode(document), type=kind.type)


def patched(kind: Kind[Any], document: dict[str, Any], change: Any, type_: PatchType) -> Any:
    """A document with a patch of this type applied."""
    match type_:
        case PatchType.MERGE | PatchType.APPLY:
            # An apply patch of the only field manager is a merge.
            return patch.merge.apply(document, change)
        case PatchType.JSON:
            return patch.json.apply(document, change)
        case PatchType.STRATEGIC:
            struct: type[Struct] = load(kind.group, kind.version, kind.name).type
            return patch.strategic.apply(document, change, patch.schema_of(struct))
