"""The action table: for each action, how it is performed, described and simulated.

The shell performs actions, the trace describes them, the ledger asks which objects a lost answer leaves in doubt,
and a row test answers as a willing server would. All of them read this table, so a new action is one class in
`steersman.intent` and one `Interpretation` here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from steersman.api.clock import Clock
from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import Object, ObjectMeta, Struct
from steersman.api.scheme import Key, Kind, kind_of
from steersman.client.api import Api, UndecodableObject
from steersman.client.pager import PAGE_SIZE, list_all
from steersman.intent.actions import (
    Action,
    Address,
    Batch,
    Create,
    CreateReview,
    Delete,
    DeleteCollection,
    Discover,
    Done,
    Emit,
    Evict,
    Failed,
    FileUnreadable,
    LatestResourceVersion,
    List,
    Outcome,
    Patch,
    PatchType,
    RandomBits,
    Read,
    ReadDocument,
    ReadFile,
    ReadModifyWrite,
    Update,
    UpdateStatus,
    Write,
)
from steersman.intent.metrics import Elapsed, Measure
from steersman.runtime.action_text import (
    SHOWN,
    changed_counts,
    field_of,
    in_parentheses,
    kind_if_known,
    name_target,
    patched_fields,
    shorten,
)
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.events import ObjectReference
from steersman.runtime.ledger import Doubt, Ledger
from steersman.runtime.metrics import Metrics

A = TypeVar("A", bound=Action[Any])
W = TypeVar("W", bound=Write[Any])
T = TypeVar("T")

CONFLICT_TRIES = 5
"""How often a `ReadModifyWrite` is tried before its conflict is raised."""
JOIN = " + "
"""Between the parts of a batch in its description."""


class Environment:
    """What the actions of one controller are performed with."""

    __slots__ = ("api", "clock", "ledger", "manager_api", "metrics", "perform", "read_file", "recorder")

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

    def wrote(self, key: Key, kind: Kind[Any], answer: Any) -> None:
        """Enter an answered write in the ledger."""
        meta = answer["metadata"] if isinstance(answer, dict) else answer.metadata
        version = meta["resourceVersion"] if isinstance(meta, dict) else meta.resourceVersion
        self.ledger.wrote(key, kind.resource, version)


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


class Interpretation(Generic[A]):
    """All that the runtime knows about one action."""

    verb: ClassVar[str]
    """The first word of its description."""
    past: ClassVar[str] = ""
    """The verb once the action is done, where the trace says so; empty: the verb as it is."""

    async def perform(self, env: Environment, key: Key, action: A) -> Any:
        """Perform the action for a key. Raises `ApiError` when the server refuses."""
        raise NotImplementedError

    def describe(self, action: A) -> str:
        """The action as a short imperative: verb, kind, name, and the least that tells it from others."""
        raise NotImplementedError

    def kind(self, action: A) -> Kind[Any] | None:
        """The kind the action is about, if it is about one."""
        return None

    def simulate(self, server: SimulatedServer, action: A) -> Any:
        """The answer in a row test that does not give one."""
        return None


class WriteInterpretation(Interpretation[W]):
    """An interpretation of a write, which may be lost on its way."""

    def doubt(self, action: W) -> Doubt:
        """The objects in which a write shows whose answer was lost."""
        raise NotImplementedError


class InstantInterpretation(Interpretation[A]):
    """An interpretation of an action that is answered without I/O and left out of the trace."""

    def answer(self, env: Environment, elapsed: float, action: A) -> Any:
        """Answer the action ``elapsed`` seconds after the round began."""
        raise NotImplementedError

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


def address_of(target: Any) -> Address[Any]:
    """The address of a target; of an object, with its uid and resourceVersion."""
    if isinstance(target, Address):
        return target
    meta: ObjectMeta = target.metadata
    return Address(kind_of(target), meta.namespace, meta.name, meta.uid, meta.resourceVersion)


# -- writes -----------------------------------------------------------------------------------


class Targeted(WriteInterpretation[Any]):
    """The part that all writes with a target share."""

    def kind(self, action: Any) -> Kind[Any] | None:
        return kind_if_known(action.target)

    def describe(self, action: Any) -> str:
        return f"{self.verb} {name_target(action.target)}"

    def doubt(self, action: Any) -> Doubt:
        at = address_of(action.target)
        return Doubt(at.kind, at.namespace, at.name, at.uid)


@interprets(Create)
class CreateInterpretation(WriteInterpretation[Create[Any]]):
    verb = "create"
    past = "created"

    async def perform(self, env: Environment, key: Key, action: Create[T]) -> T:
        created = await env.api.create(action.kind, action.namespace, action.body)
        env.wrote(key, action.kind, created)
        return created

    def describe(self, action: Create[Any]) -> str:
        meta = field_of(action.body, "metadata")
        name = field_of(meta, "name") or f"{field_of(meta, 'generateName') or ''}*"
        return f"create {action.kind.name.lower()} {Key(action.namespace, name)}"

    def kind(self, action: Create[Any]) -> Kind[Any]:
        return action.kind

    def doubt(self, action: Create[Any]) -> Doubt:
        # An object whose name the server generates is looked for by its labels.
        meta = field_of(action.body, "metadata")
        if name := field_of(meta, "name"):
            return Doubt(action.kind, action.namespace, name)
        labels: Mapping[str, str] = field_of(meta, "labels") or {}
        selector = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
        return Doubt(action.kind, action.namespace, labels=selector)

    def simulate(self, server: SimulatedServer, action: Create[T]) -> T:
        return server.create(action.kind, action.namespace, action.body)


@interprets(Update)
class UpdateInterpretation(Targeted):
    verb = "update"
    past = "updated"

    async def perform(self, env: Environment, key: Key, action: Update[Any]) -> Any:
        at = address_of(action.target)
        body: Any = action.target if action.body is None else action.body
        if action.subresource:
            updated = await env.api.subresource(
                at.kind, at.namespace, at.name, action.subresource, body, verb="update"
            )
        else:
            updated = await env.api.update(at.kind, at.namespace, at.name, body)
        env.wrote(key, at.kind, updated)
        return updated

    def describe(self, action: Update[Any]) -> str:
        return f"update {name_target(action.target)}{action.subresource and ' ' + action.subresource}"

    def simulate(self, server: SimulatedServer, action: Update[Any]) -> Any:
        return server.update(action.target) if action.body is None else dict(action.body)


class StatusDocument(Struct, frozen=True):
    """The body of a status update. The server keeps the spec, so it is left out."""

    metadata: ObjectMeta
    status: object


@interprets(UpdateStatus)
class UpdateStatusInterpretation(Targeted):
    verb = "update"
    past = "updated"

    async def perform(self, env: Environment, key: Key, action: UpdateStatus[Any]) -> Object:
        obj: Object = action.target
        meta = obj.metadata
        changed = _changes_annotations(action)
        if action.status == getattr(obj, "status", None) and not changed:
            return obj
        if changed:
            meta = msgspec.structs.replace(meta, annotations=dict(action.annotations or {}))
        kind: Kind[Object] = kind_of(obj)
        body = StatusDocument(metadata=meta, status=action.status)
        written = await env.api.update_status(kind, meta.namespace, meta.name, body)
        env.wrote(key, kind, written)
        return written

    def describe(self, action: UpdateStatus[Any]) -> str:
        changes = tuple(changed_counts(field_of(action.target, "status"), action.status))
        if _changes_annotations(action):
            changes = (*changes, "annotations")
        return f"update {name_target(action.target)} status{in_parentheses(changes)}"

    def simulate(self, server: SimulatedServer, action: UpdateStatus[Any]) -> Any:
        meta = action.target.metadata
        if action.annotations is not None:
            meta = msgspec.structs.replace(meta, annotations=action.annotations)
        return server.update(msgspec.structs.replace(action.target, metadata=meta, status=action.status))


def _changes_annotations(action: UpdateStatus[Any]) -> bool:
    return action.annotations is not None and dict(action.annotations) != dict(
        action.target.metadata.annotations
    )


@interprets(Patch)
class PatchInterpretation(Targeted):
    verb = "patch"
    past = "patched"

    async def perform(self, env: Environment, key: Key, action: Patch[Any]) -> Any:
        at = address_of(action.target)
        patched = await env.api.patch(
            at.kind,
            at.namespace,
            at.name,
            action.body,
            content_type=action.type.value,
            subresource=action.subresource,
            field_manager=action.field_manager,
            force=action.force,
        )
        env.wrote(key, at.kind, patched)
        return patched

    def describe(self, action: Patch[Any]) -> str:
        where = f" {action.subresource}" if action.subresource else ""
        fields = in_parentheses(tuple(patched_fields(action.body)))
        return f"patch {name_target(action.target)}{where}{fields}"

    def simulate(self, server: SimulatedServer, action: Patch[Any]) -> Any:
        if isinstance(action.target, Address):
            return None
        return server.patch(action.target, action.body, action.type)


@interprets(ReadModifyWrite)
class ReadModifyWriteInterpretation(Targeted):
    verb = "update"
    past = "updated"

    async def perform(self, env: Environment, key: Key, action: ReadModifyWrite[Any]) -> Any:
        at = address_of(action.target)
        for attempt in range(CONFLICT_TRIES):
            document = await env.api.get(at.kind.untyped, at.namespace, at.name)
            if at.uid and document["metadata"].get("uid") != at.uid:
                raise Conflict(f"{at.kind.resource} {at.key} was replaced by another of the same name")
            action.mutate(document)
            try:
                written = await env.api.update(at.kind, at.namespace, at.name, document)
            except Conflict:
                if attempt == CONFLICT_TRIES - 1:
                    raise
                continue
            env.wrote(key, at.kind, written)
            return written
        raise AssertionError("unreachable")

    def simulate(self, server: SimulatedServer, action: ReadModifyWrite[Any]) -> Any:
        if isinstance(action.target, Address):
            return None
        return server.mutate(action.target, action.mutate)


@interprets(Delete)
class DeleteInterpretation(Targeted):
    verb = "delete"
    past = "deleted"

    async def perform(self, env: Environment, key: Key, action: Delete) -> None:
        at = address_of(action.target)
        await env.api.delete(
            at.kind,
            at.namespace,
            at.name,
            uid=at.uid,
            resource_version=at.resource_version if action.exact else "",
            propagation=action.propagation,
            grace=action.grace,
        )
        if at.uid:
            env.ledger.deleted(key, at.kind.resource, at.key, at.uid)

    def describe(self, action: Delete) -> str:
        options: list[str] = [action.propagation] if action.propagation else []
        if action.exact:
            options.append("exact")
        if action.grace is not None:
            options.append(f"grace {action.grace} s")
        return f"delete {name_target(action.target)}{in_parentheses(tuple(options))}"


@interprets(DeleteCollection)
class DeleteCollectionInterpretation(WriteInterpretation[DeleteCollection]):
    verb = "delete all"

    async def perform(self, env: Environment, key: Key, action: DeleteCollection) -> None:
        await env.api.delete_collection(action.kind, action.namespace, propagation=action.propagation)

    def describe(self, action: DeleteCollection) -> str:
        return f"delete all {action.kind.resource} in {action.namespace}"

    def kind(self, action: DeleteCollection) -> Kind[Any]:
        return action.kind

    def doubt(self, action: DeleteCollection) -> Doubt:
        return Doubt(action.kind, action.namespace)


@interprets(Evict)
class EvictInterpretation(Targeted):
    verb = "evict"
    past = "evicted"

    async def perform(self, env: Environment, key: Key, action: Evict) -> None:
        at = address_of(action.target)
        body: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": at.name, "namespace": at.namespace},
        }
        if at.uid:
            body["deleteOptions"] = {"preconditions": {"uid": at.uid}}
        await env.api.subresource(at.kind, at.namespace, at.name, "eviction", body)
        if at.uid:
            env.ledger.deleted(key, at.kind.resource, at.key, at.uid)


# -- reads ------------------------------------------------------------------------------------


@interprets(Read)
class ReadInterpretation(Interpretation[Read[Any]]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: Read[Any]) -> Any:
        at = address_of(action.target)
        if action.subresource:
            return await env.api.subresource(at.kind, at.namespace, at.name, action.subresource, verb="get")
        return await env.api.get(at.kind, at.namespace, at.name)

    def describe(self, action: Read[Any]) -> str:
        return f"read {name_target(action.target)}{action.subresource and ' ' + action.subresource}"

    def kind(self, action: Read[Any]) -> Kind[Any] | None:
        return kind_if_known(action.target)

    def simulate(self, server: SimulatedServer, action: Read[Any]) -> Any:
        return None if isinstance(action.target, Address) else action.target


@interprets(List)
class ListInterpretation(Interpretation[List[Any]]):
    verb = "list"

    async def perform(self, env: Environment, key: Key, action: List[Any]) -> list[Any]:
        page = await list_all(
            env.manager_api if action.as_manager else env.api,
            action.kind,
            action.namespace,
            label_selector=action.label_selector,
            page_size=action.limit or PAGE_SIZE,
            at_least=action.limit,
        )
        # An object that does not decode still exists, with its metadata.
        return [
            action.kind.type(metadata=item.metadata) if isinstance(item, UndecodableObject) else item
            for item in page.items
        ]

    def describe(self, action: List[Any]) -> str:
        return f"list {action.kind.resource} in {action.namespace}"

    def kind(self, action: List[Any]) -> Kind[Any]:
        return action.kind

    def simulate(self, server: SimulatedServer, action: List[Any]) -> list[Any]:
        return []


@interprets(LatestResourceVersion)
class LatestResourceVersionInterpretation(Interpretation[LatestResourceVersion]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: LatestResourceVersion) -> str:
        return (await env.api.list(action.kind, limit=1)).resource_version

    def describe(self, action: LatestResourceVersion) -> str:
        return f"read the resourceVersion of {action.kind.resource}"

    def kind(self, action: LatestResourceVersion) -> Kind[Any]:
        return action.kind

    def simulate(self, server: SimulatedServer, action: LatestResourceVersion) -> str:
        return str(server.revision)


@interprets(CreateReview)
class CreateReviewInterpretation(Interpretation[CreateReview[Any]]):
    verb = "create"

    async def perform(self, env: Environment, key: Key, action: CreateReview[T]) -> T:
        return await env.api.create(action.kind, action.namespace, action.body)

    def describe(self, action: CreateReview[Any]) -> str:
        return f"create {action.kind.name.lower()}"

    def kind(self, action: CreateReview[Any]) -> Kind[Any]:
        return action.kind


@interprets(Discover)
class DiscoverInterpretation(Interpretation[Discover]):
    verb = "discover"

    async def perform(self, env: Environment, key: Key, action: Discover) -> DiscoveryResult:
        return await env.api.discover()

    def describe(self, action: Discover) -> str:
        return "discover"

    def simulate(self, server: SimulatedServer, action: Discover) -> DiscoveryResult:
        return DiscoveryResult()


@interprets(ReadDocument)
class ReadDocumentInterpretation(Interpretation[ReadDocument]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: ReadDocument) -> dict[str, Any]:
        return await env.api.document(action.path)

    def describe(self, action: ReadDocument) -> str:
        return f"read {action.path}"

    def simulate(self, server: SimulatedServer, action: ReadDocument) -> dict[str, Any]:
        return {}


# -- beyond the API server --------------------------------------------------------------------


def read_file(path: str) -> bytes:
    """The content of a small file, read every time, so that a replaced key is used from then on."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileUnreadable(f"cannot read {path}: {error.strerror}") from None


@interprets(ReadFile)
class ReadFileInterpretation(Interpretation[ReadFile]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: ReadFile) -> bytes:
        return env.read_file(action.path)

    def describe(self, action: ReadFile) -> str:
        return f"read file {action.path}"


@interprets(RandomBits)
class RandomBitsInterpretation(Interpretation[RandomBits]):
    verb = "draw"

    async def perform(self, env: Environment, key: Key, action: RandomBits) -> int:
        return env.clock.random.getrandbits(action.bits)

    def describe(self, action: RandomBits) -> str:
        return f"draw {action.bits} random bits"

    def simulate(self, server: SimulatedServer, action: RandomBits) -> int:
        return server.revision % (1 << action.bits)


@interprets(Emit)
class EmitInterpretation(Interpretation[Emit]):
    verb = "emit"
    past = "emitted"

    async def perform(self, env: Environment, key: Key, action: Emit) -> None:
        about: Object | ObjectReference | Address[Any] = action.about
        if isinstance(about, Address):
            about = ObjectReference(
                kind=about.kind.name,
                apiVersion=about.kind.api_version,
                namespace=about.namespace,
                name=about.name,
                uid=about.uid,
            )
        env.recorder.emit(about, action.type, action.reason, action.message)

    def describe(self, action: Emit) -> str:
        message = shorten(action.message)
        return f"emit {action.type} {action.reason} about {name_target(action.about)}: {message}"

    def kind(self, action: Emit) -> Kind[Any] | None:
        return kind_if_known(action.about)


@interprets(Measure)
class MeasureInterpretation(InstantInterpretation[Measure]):
    verb = "measure"
    past = "measured"

    def answer(self, env: Environment, elapsed: float, action: Measure) -> None:
        env.metrics.measure(action)

    def describe(self, action: Measure) -> str:
        return f"measure {action.metric.name} {action.value:g}"


@interprets(Elapsed)
class ElapsedInterpretation(InstantInterpretation[Elapsed]):
    verb = "read"

    def answer(self, env: Environment, elapsed: float, action: Elapsed) -> float:
        return elapsed

    def describe(self, action: Elapsed) -> str:
        return "read the clock"

    def simulate(self, server: SimulatedServer, action: Elapsed) -> float:
        return 0.0


# -- batches ----------------------------------------------------------------------------------


@interprets(Batch)
class BatchInterpretation(Interpretation[Batch[Any]]):
    verb = "do"

    async def perform(self, env: Environment, key: Key, action: Batch[T]) -> list[Outcome[T]]:
        async def attempt(one: Action[T]) -> Outcome[T]:
            try:
                return Done(await env.perform(key, one))
            except ApiError as error:
                return Failed(error)

        groups = action.groups()
        try:
            group = next(groups)
            while True:
                if len(group) == 1:
                    outcomes = [await attempt(group[0])]
                else:
                    outcomes = await asyncio.gather(*map(attempt, group))
                group = groups.send(outcomes)
        except StopIteration as stop:
            return cast("list[Outcome[T]]", stop.value)

    def describe(self, action: Batch[Any]) -> str:
        if len(action.actions) == 1:
            return describe(action.actions[0])
        tally: dict[tuple[str, str, str], int] = {}
        for one in action.actions:
            interpretation = interpretation_of(one)
            kind, verb = interpretation.kind(one), interpretation.verb
            names = (kind.name.lower(), kind.plural) if kind is not None else ("action", "actions")
            tally[verb, *names] = tally.get((verb, *names), 0) + 1
        if len(tally) > SHOWN:
            counts: dict[str, list[int]] = {}
            for (verb, _, _), n in tally.items():
                counts.setdefault(verb, []).append(n)
            return JOIN.join(f"{verb} {sum(each)} of {len(each)} kinds" for verb, each in counts.items())
        parts = (f"{verb} {n} {one if n == 1 else many}" for (verb, one, many), n in tally.items())
        return JOIN.join(parts) or "nothing"
