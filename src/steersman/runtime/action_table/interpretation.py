"""Interpretations: what the runtime knows about one action, and the table of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider
from steersman.api.kinds import ObjectMeta
from steersman.api.scheme import Key, Kind, kind_of
from steersman.client.api import Api
from steersman.intent.actions import (
    Action,
    Address,
    PatchType,
    Write,
)
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.ledger import Doubt, Ledger
from steersman.runtime.metrics import Metrics

A = TypeVar("A", bound=Action[Any])
W = TypeVar("W", bound=Write[Any])
T = TypeVar("T")

JOIN = " + "
"""Between the parts of a batch in its description."""


class Directories(Protocol):
    """Makes and removes directories. Both raise `DirectoryError`."""

    async def make(self, path: str) -> None: ...

    async def remove(self, path: str) -> None: ...


class NoDirectories:
    """The directories of a simulation: none is made."""

    async def make(self, path: str) -> None:
        pass

    async def remove(self, path: str) -> None:
        pass


class Environment:
    """The means to perform the actions of one controller: its API, recorder, clock and so on."""

    __slots__ = (
        "api",
        "clock",
        "cloud",
        "directories",
        "ledger",
        "lend_worker",
        "manager_api",
        "metrics",
        "perform",
        "read_file",
        "recorder",
    )

    def __init__(
        self,
        api: Api,
        manager_api: Api,
        recorder: Recorder,
        ledger: Ledger,
        clock: Clock,
        metrics: Metrics,
        read_file: Callable[[str], bytes],
        perform: Callable[[Key, Action[Any]], Awaitable[Any]],
        cloud: CloudProvider | None = None,
        directories: Directories | None = None,
    ) -> None:
        self.api = api
        """The API with the controller's own credentials."""
        self.manager_api = manager_api
        """The API with the credentials of the manager's informers."""
        self.recorder = recorder
        self.ledger = ledger
        self.clock = clock
        self.metrics = metrics
        self.read_file = read_file
        self.perform = perform
        """Performs one action of a batch, fenced and recorded as any other."""
        self.cloud = cloud
        self.directories = directories or NoDirectories()
        """The directories of this host."""
        self.lend_worker: Callable[[], AbstractContextManager[None]] = nullcontext
        """Lets another worker take the place of this one, which waits for a slow answer."""

    def wrote(self, key: Key, kind: Kind[Any], answer: Any) -> None:
        """Enter an answered write in the ledger."""
        self.ledger.wrote(key, kind.resource, identity_of(answer)[1])


class SimulatedServer(Protocol):
    """The server of a row test: answers every request as a willing server would, and stores nothing."""

    def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        """The object with a name, a uid and a resourceVersion."""
        ...

    def update(self, obj: T) -> T:
        """The object with a new resourceVersion."""
        ...

    def patch(self, obj: T, body: object, type_: PatchType) -> T:
        """The object with a patch applied."""
        ...

    def mutate(self, obj: T, mutate: Callable[[dict[str, Any]], None]) -> T:
        """The object with its document mutated."""
        ...

    @property
    def revision(self) -> int:
        """The last resourceVersion that was given out."""
        ...


class Written(msgspec.Struct, frozen=True, gc=False):
    """A write that the server accepted. Its resourceVersion is that of the watch event it causes."""

    verb: str
    """The verb of the API: create, update, patch, delete, deletecollection."""
    kind: Kind[Any]
    subresource: str
    key: Key
    resource_version: str
    """Empty for a delete: its answer has none."""


class Interpretation(ABC, Generic[A]):
    """All that the runtime knows about one action."""

    verb: ClassVar[str]
    """The first word of its description."""
    past: ClassVar[str] = ""
    """The verb once the action is done, where the trace says so; empty: the verb as it is."""

    @abstractmethod
    async def perform(self, env: Environment, key: Key, action: A) -> Any:
        """Perform the action for a key. Raises `ApiError` when the server refuses."""

    @abstractmethod
    def describe(self, action: A) -> str:
        """The action as a short imperative: verb, kind, name, and the least that tells it from others."""

    def kind(self, action: A) -> Kind[Any] | None:
        """The kind the action is about, if it is about one."""
        return None

    def written(self, action: A, answer: Any) -> Iterable[Written]:
        """The writes that the server accepted, read off the answer; none for a read."""
        return ()

    def skipped(self, action: A, answer: Any) -> bool:
        """Whether nothing was sent, because all is so already: no step for the trace."""
        return False

    def simulate(self, server: SimulatedServer, action: A) -> Any:
        """The answer in a row test that does not give one."""
        return None


class WriteInterpretation(Interpretation[W]):
    """An interpretation of a write, which may be lost on its way."""

    @abstractmethod
    def doubt(self, action: W) -> Doubt:
        """The objects in which a write shows whose answer was lost."""


class InstantInterpretation(Interpretation[A]):
    """An interpretation of an action that is answered without I/O and left out of the trace."""

    @abstractmethod
    def answer(self, env: Environment, elapsed: float, action: A) -> Any:
        """Answer the action ``elapsed`` seconds after the round began."""

    async def perform(self, env: Environment, key: Key, action: A) -> Any:
        return self.answer(env, 0.0, action)


AnyInterpretation: TypeAlias = Interpretation[Any]
_TABLE: dict[type[Action[Any]], AnyInterpretation] = {}


def interprets(action: type[Action[Any]]) -> Callable[[type[AnyInterpretation]], type[AnyInterpretation]]:
    """Enter an interpretation in the table."""

    def enter(interpretation: type[AnyInterpretation]) -> type[AnyInterpretation]:
        _TABLE[action] = interpretation()
        return interpretation

    return enter


def interpretation_of(action: Action[Any]) -> AnyInterpretation:
    """The table's entry for an action. Raises `KeyError` for an action without one."""
    return _TABLE[type(action)]


def describe(action: Action[Any]) -> str:
    """An action in words. An event's message appears, since it is public anyway; other values do not."""
    return _TABLE[type(action)].describe(action)


def doubt_of(action: Write[Any]) -> Doubt:
    """The objects in which a write shows whose answer was lost."""
    return cast("WriteInterpretation[Any]", _TABLE[type(action)]).doubt(action)


def past_tense(description: str) -> str:
    """The description of an action that is done: ``created 1 pod + deleted 2 pods``."""
    parts = (part.partition(" ") for part in description.split(JOIN))
    return JOIN.join(_past_verbs().get(verb, verb) + space + rest for verb, space, rest in parts)


def _past_verbs() -> Mapping[str, str]:
    if not _PAST:
        _PAST.update({each.verb: each.past for each in _TABLE.values() if each.past})
    return _PAST


_PAST: dict[str, str] = {}


def identity_of(answer: Any) -> tuple[Key, str]:
    """The key and the resourceVersion of an object or a plain document."""
    meta = answer["metadata"] if isinstance(answer, dict) else answer.metadata
    if isinstance(meta, dict):
        return Key(meta.get("namespace", ""), meta.get("name", "")), meta["resourceVersion"]
    return Key(meta.namespace, meta.name), meta.resourceVersion


def address_of(target: Any) -> Address[Any]:
    """The address of a target; of an object, with its uid and resourceVersion."""
    if isinstance(target, Address):
        return target
    meta: ObjectMeta = target.metadata
    return Address(kind_of(target), meta.namespace, meta.name, meta.uid, meta.resourceVersion)
