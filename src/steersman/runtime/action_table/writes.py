"""Interpretations of the actions that write to the API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from steersman.api.errors import Conflict
from steersman.api.kinds import Object, ObjectMeta, Struct
from steersman.api.scheme import Key, Kind, kind_of
from steersman.intent.actions import (
    Address,
    Create,
    Delete,
    DeleteCollection,
    Evict,
    Patch,
    ReadModifyWrite,
    Update,
    UpdateStatus,
)
from steersman.runtime.action_table.interpretation import (
    Environment,
    SimulatedServer,
    WriteInterpretation,
    Written,
    address_of,
    identity_of,
    interprets,
)
from steersman.runtime.action_table.text import (
    changed_counts,
    field_of,
    in_parentheses,
    kind_if_known,
    name_target,
    patched_fields,
)
from steersman.runtime.ledger import Doubt

T = TypeVar("T")

CONFLICT_TRIES = 5
"""How often a `ReadModifyWrite` is tried before its conflict is raised."""


class Targeted(WriteInterpretation[Any]):
    """The part that all writes with a target share."""

    api_verb = "update"

    def written(self, action: Any, answer: Any) -> Iterable[Written]:
        kind = kind_if_known(action.target)
        if kind is not None and answer is not None:
            key, version = identity_of(answer)
            yield Written(self.api_verb, kind, getattr(action, "subresource", ""), key, version)

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

    def written(self, action: Create[Any], answer: Any) -> Iterable[Written]:
        key, version = identity_of(answer)
        return (Written("create", action.kind, "", key, version),)

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

    def written(self, action: UpdateStatus[Any], answer: Any) -> Iterable[Written]:
        if not self.skipped(action, answer):
            yield Written("update", kind_of(action.target), "status", *identity_of(answer))

    def skipped(self, action: UpdateStatus[Any], answer: Any) -> bool:
        # A status that is equal already is not sent.
        return answer is action.target

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
    api_verb = "patch"

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

    def written(self, action: Delete, answer: Any) -> Iterable[Written]:
        at = address_of(action.target)
        yield Written("delete", at.kind, "", at.key, "")

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

    def written(self, action: DeleteCollection, answer: Any) -> Iterable[Written]:
        yield Written("deletecollection", action.kind, "", Key(action.namespace, ""), "")

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

    def written(self, action: Evict, answer: Any) -> Iterable[Written]:
        at = address_of(action.target)
        yield Written("create", at.kind, "eviction", at.key, "")
