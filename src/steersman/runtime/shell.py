"""The interpreter of actions: the only place where a decision meets the world.

`Shell.drive` runs a decision to its verdict. Each action it awaits is checked against the fence,
performed through the controller's own `Api`, remembered in the ledger, and noted as a step of the
round; the answer or the refusal goes back into the decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from steersman.api.discovery import Discovered
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import Object, ObjectMeta, Struct
from steersman.api.scheme import Key, Kind, kind_of
from steersman.client.api import Api, UndecodableObject
from steersman.client.pager import PAGE_SIZE, list_all
from steersman.intent.actions import (
    Action,
    Amend,
    Ask,
    Batch,
    Create,
    Delete,
    Done,
    Draw,
    Elapsed,
    Emit,
    Evict,
    Failed,
    Load,
    Measure,
    Outcome,
    Patch,
    ReadLive,
    Skipped,
    Unreadable,
    Update,
    UpdateStatus,
    Write,
)
from steersman.intent.live import (
    Alter,
    Consult,
    Discover,
    Latest,
    Read,
    ReadPart,
    Remove,
    RemoveAll,
    Replace,
    Survey,
)
from steersman.intent.verdict import Verdict
from steersman.runtime.clock import Clock
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.events import ObjectReference
from steersman.runtime.ledger import Doubt, Ledger
from steersman.runtime.metrics import Metrics
from steersman.runtime.trace import Step, describe, outcome

T = TypeVar("T")
Perform: TypeAlias = Callable[["Shell", Key, Any], Coroutine[Any, Any, Any]]

AMEND_TRIES = 5
MEMORY = 0.1
"""The weight of the latest write in how long writes take."""


class Deposed(Exception):
    """A write was asked for while this process does not lead. Nothing was sent."""


class StatusDocument(Struct, frozen=True):
    """What a status update sends. The server keeps the spec, so it need not travel."""

    metadata: ObjectMeta
    status: object


def read_file(path: str) -> bytes:
    """A small file, read anew each time, so that a key that is replaced is used from then on."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from None


class Shell:
    """Performs one controller's actions with that controller's credentials."""

    def __init__(
        self,
        api: Api,
        recorder: Recorder,
        ledger: Ledger,
        clock: Clock,
        metrics: Metrics,
        fence: Callable[[], bool] = lambda: True,
        files: Callable[[str], bytes] = read_file,
        shared: Api | None = None,
    ) -> None:
        self._api = api
        self._recorder = recorder
        self._ledger = ledger
        self._clock = clock
        self._metrics = metrics
        self._fence = fence
        self._files = files
        self._shared = shared or api
        self.latency = 0.0
        """Seconds a write takes, lately: how busy the server is."""

    async def drive(self, key: Key, decision: Awaitable[Verdict], steps: list[Step]) -> Verdict:
        """Run a decision to its verdict, noting each action as a step; but not what is only counted."""
        script = cast("Generator[Action[Any], Any, Verdict]", decision.__await__())
        begun = self._clock.monotonic()
        try:
            action = next(script)
            while True:
                started = self._clock.monotonic()
                if isinstance(action, Measure):
                    self._metrics.measure(action)
                    action = script.send(None)
                    continue
                if isinstance(action, Elapsed):
                    action = script.send(started - begun)
                    continue
                try:
                    answer = await self._perform(key, action)
                except (ApiError, Unreadable) as error:
                    steps.append(self._step(action, error, started))
                    action = script.throw(error)
                else:
                    steps.append(self._step(action, answer, started))
                    action = script.send(answer)
        except StopIteration as stop:
            return cast("Verdict", stop.value)
        finally:
            script.close()

    def _step(self, action: Action[Any], answer: object, started: float) -> Step:
        return Step(describe(action), outcome(answer), self._clock.monotonic() - started)

    async def resolve(self, key: Key) -> None:
        """Turn the key's doubts into debts, by asking the server for what they are about."""
        for doubt in self._ledger.doubts(key):
            # As the informers do: a controller need not have the right to read what it may create.
            found = await list_all(
                self._shared,
                doubt.kind.as_(Object),
                doubt.namespace,
                label_selector=doubt.labels,
                field_selector=f"metadata.name={doubt.name}" if doubt.name else "",
            )
            self._ledger.cleared(key, doubt, [item.metadata for item in found.items])

    async def _perform(self, key: Key, action: Action[T]) -> T:
        if isinstance(action, Write):
            if not self._fence():
                raise Deposed(f"not leading any more: {describe(action)} was not sent")
            started = self._clock.monotonic()
            try:
                return cast("T", await _PERFORM[type(action)](self, key, action))
            except ApiError as error:
                if error.uncertain:
                    self._ledger.unsure(key, _doubt(action))
                raise
            finally:
                self.latency += (self._clock.monotonic() - started - self.latency) * MEMORY
        return cast("T", await _PERFORM[type(action)](self, key, action))

    def _wrote(self, key: Key, kind: Kind[Any], answer: Any) -> None:
        meta = answer["metadata"] if isinstance(answer, dict) else answer.metadata
        version = meta["resourceVersion"] if isinstance(meta, dict) else meta.resourceVersion
        self._ledger.wrote(key, kind.resource, version)

    async def _create(self, key: Key, action: Create[T]) -> T:
        created = await self._api.create(action.kind, action.namespace, action.body)
        self._wrote(key, action.kind, created)
        return created

    async def _update_status(self, key: Key, action: UpdateStatus[Any]) -> Object:
        obj: Object = action.obj
        meta = obj.metadata
        changed = action.annotations is not None and dict(action.annotations) != dict(meta.annotations)
        if action.status == getattr(obj, "status", None) and not changed:
            return obj
        if changed:
            meta = msgspec.structs.replace(meta, annotations=dict(action.annotations or {}))
        kind: Kind[Object] = kind_of(obj)
        body = StatusDocument(metadata=meta, status=action.status)
        written = await self._api.update_status(kind, meta.namespace, meta.name, body)
        self._wrote(key, kind, written)
        return written

    async def _patch(self, key: Key, action: Patch[Any]) -> Object:
        meta = action.obj.metadata
        kind: Kind[Object] = kind_of(action.obj)
        patched = await self._api.patch(
            kind,
            meta.namespace,
            meta.name,
            action.body,
            content_type=action.type.value,
            subresource=action.subresource,
            field_manager=action.manager,
            force=action.force,
        )
        self._wrote(key, kind, patched)
        return patched

    async def _update(self, key: Key, action: Update[Any]) -> Object:
        meta = action.obj.metadata
        kind: Kind[Object] = kind_of(action.obj)
        updated = await self._api.update(kind, meta.namespace, meta.name, action.obj)
        self._wrote(key, kind, updated)
        return updated

    async def _amend(self, key: Key, action: Amend[Any]) -> Object:
        meta = action.obj.metadata
        kind: Kind[Object] = kind_of(action.obj)
        for attempt in range(AMEND_TRIES):
            document = await self._api.get(kind.untyped, meta.namespace, meta.name)
            if document["metadata"].get("uid") != meta.uid:
                raise Conflict(f"{kind.resource} {action.obj.key} was replaced by another of the same name")
            action.change(document)
            try:
                amended = await self._api.update(kind, meta.namespace, meta.name, document)
            except Conflict:
                if attempt == AMEND_TRIES - 1:
                    raise
                continue
            self._wrote(key, kind, amended)
            return amended
        raise AssertionError("unreachable")

    async def _delete(self, key: Key, action: Delete) -> None:
        meta = action.obj.metadata
        kind: Kind[Object] = kind_of(action.obj)
        await self._api.delete(
            kind,
            meta.namespace,
            meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion if action.exact else "",
            propagation=action.propagation,
            grace=action.grace,
        )
        self._ledger.deleted(key, kind.resource, action.obj.key, meta.uid)

    async def _evict(self, key: Key, action: Evict) -> None:
        meta = action.obj.metadata
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": {"preconditions": {"uid": meta.uid}},
        }
        kind: Kind[Object] = kind_of(action.obj)
        await self._api.subresource(kind, meta.namespace, meta.name, "eviction", body)
        self._ledger.deleted(key, kind.resource, action.obj.key, meta.uid)

    async def _read_live(self, key: Key, action: ReadLive[Any]) -> Object:
        meta = action.obj.metadata
        kind: Kind[Object] = kind_of(action.obj)
        return await self._api.get(kind, meta.namespace, meta.name)

    async def _ask(self, key: Key, action: Ask[T]) -> T:
        return await self._api.create(action.kind, action.namespace, action.body)

    async def _load(self, key: Key, action: Load) -> bytes:
        return self._files(action.path)

    async def _draw(self, key: Key, action: Draw) -> int:
        return self._clock.random.getrandbits(action.bits)

    async def _emit(self, key: Key, action: Emit) -> None:
        about: Object | ObjectReference = action.about
        if action.kind is not None:
            meta, kind = action.about.metadata, action.kind
            about = ObjectReference(
                kind=kind.name,
                apiVersion=kind.api_version,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
            )
        self._recorder.emit(about, action.type, action.reason, action.message)

    # -- by where they are --------------------------------------------------------------------

    async def _discover(self, key: Key, action: Discover) -> Discovered:
        return await self._api.discover()

    async def _consult(self, key: Key, action: Consult) -> dict[str, Any]:
        return await self._api.document(action.path)

    async def _read(self, key: Key, action: Read[T]) -> T:
        return await self._api.get(action.kind, action.namespace, action.name)

    async def _read_part(self, key: Key, action: ReadPart) -> dict[str, Any]:
        return await self._api.subresource(
            action.kind, action.namespace, action.name, action.subresource, verb="get"
        )

    async def _latest(self, key: Key, action: Latest) -> str:
        return (await self._api.list(action.kind, limit=1)).resource_version

    async def _survey(self, key: Key, action: Survey[T]) -> list[T]:
        kind = action.kind
        found = await list_all(
            self._shared if action.shared else self._api,
            kind,
            action.namespace,
            label_selector=action.selector,
            page_size=action.limit or PAGE_SIZE,
            at_least=action.limit,
        )
        # An object that cannot be decoded still exists: it is represented by its metadata.
        partial: Callable[..., T] = kind.type
        return [
            partial(metadata=item.metadata) if isinstance(item, UndecodableObject) else item
            for item in found.items
        ]

    async def _remove(self, key: Key, action: Remove) -> None:
        await self._api.delete(
            action.kind,
            action.namespace,
            action.name,
            uid=action.uid,
            resource_version=action.version,
            propagation=action.propagation,
        )
        if action.uid:
            target = Key(action.namespace, action.name)
            self._ledger.deleted(key, action.kind.resource, target, action.uid)

    async def _remove_all(self, key: Key, action: RemoveAll) -> None:
        await self._api.delete_collection(action.kind, action.namespace, propagation=action.propagation)

    async def _alter(self, key: Key, action: Alter[T]) -> T:
        altered = await self._api.patch(
            action.kind,
            action.namespace,
            action.name,
            action.body,
            content_type=action.type.value,
            field_manager=action.manager,
        )
        self._wrote(key, action.kind, altered)
        return altered

    async def _replace(self, key: Key, action: Replace) -> dict[str, Any]:
        kind, namespace, name = action.kind, action.namespace, action.name
        if action.subresource:
            replaced = await self._api.subresource(
                kind, namespace, name, action.subresource, action.body, verb="update"
            )
        else:
            replaced = await self._api.update(kind.untyped, namespace, name, action.body)
        self._wrote(key, kind, replaced)
        return replaced

    async def _batch(self, key: Key, action: Batch[T]) -> list[Outcome[T]]:
        async def attempt(one: Action[T]) -> Outcome[T]:
            try:
                return Done(await self._perform(key, one))
            except ApiError as error:
                return Failed(error)

        outcomes: list[Outcome[T]] = []
        rest = action.actions
        size = 1 if action.slow_start else len(rest)
        while rest:
            group, rest = rest[:size], rest[size:]
            if len(group) == 1:
                outcomes.append(await attempt(group[0]))
            else:
                outcomes.extend(await asyncio.gather(*map(attempt, group)))
            if any(isinstance(one, Failed) for one in outcomes[-len(group) :]):
                break
            size *= 2
        outcomes.extend(Skipped() for _ in rest)
        return outcomes


def _doubt(action: Write[Any]) -> Doubt:
    """What to ask the server for when a write got no answer."""
    if isinstance(action, Create):
        return _unborn(action)
    kind: Kind[Any] | None = getattr(action, "kind", None)
    if kind is not None:
        said = (getattr(action, field, "") for field in ("namespace", "name", "uid"))
        return Doubt(kind, *said)
    obj: Object = action.obj  # type: ignore[attr-defined]  # every other write is about an object
    return Doubt(kind_of(obj), obj.metadata.namespace, obj.metadata.name, obj.metadata.uid)


def _unborn(action: Create[Any]) -> Doubt:
    """Where what was to be created would be found: by its name, or else by its labels."""
    body: Any = action.body
    meta = body.get("metadata", {}) if isinstance(body, Mapping) else body.metadata
    name, labels = (
        (meta.get("name"), meta.get("labels")) if isinstance(meta, Mapping) else (meta.name, meta.labels)
    )
    if name:
        return Doubt(action.kind, action.namespace, name)
    selector = ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))
    return Doubt(action.kind, action.namespace, labels=selector)


_PERFORM: dict[type[Action[Any]], Perform] = {
    Create: Shell._create,
    Update: Shell._update,
    UpdateStatus: Shell._update_status,
    Patch: Shell._patch,
    Amend: Shell._amend,
    Delete: Shell._delete,
    Evict: Shell._evict,
    ReadLive: Shell._read_live,
    Ask: Shell._ask,
    Load: Shell._load,
    Draw: Shell._draw,
    Emit: Shell._emit,
    Batch: Shell._batch,
    Discover: Shell._discover,
    Consult: Shell._consult,
    Read: Shell._read,
    ReadPart: Shell._read_part,
    Latest: Shell._latest,
    Survey: Shell._survey,
    Remove: Shell._remove,
    RemoveAll: Shell._remove_all,
    Alter: Shell._alter,
    Replace: Shell._replace,
}
