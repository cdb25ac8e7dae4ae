"""Caches of the garbage collector filled by hand, and the objects and answers for its rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import NotFound
from steersman.api.kinds import OwnerReference
from steersman.api.partial_object import PartialObject, PartialObjectMeta
from steersman.api.scheme import Key, Kind
from steersman.controllers import garbagecollector
from steersman.controllers.garbagecollector.graph import enqueue, observe
from steersman.controllers.garbagecollector.owner_refs import AbsentOwners
from steersman.intent.actions import Action, Address, Delete, Read
from steersman.intent.all_resources import Item
from steersman.intent.controller import Change
from steersman.intent.verdict import Verdict
from steersman.runtime.metadata_cache import MetadataCache
from steersman.runtime.store import Store
from steersman.testing.decision_driver import USUAL, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALL = ("create", "delete", "get", "list", "patch", "update", "watch")

PODS = ApiResource("", "v1", "Pod", "pods", True, ALL)
SETS = ApiResource("apps", "v1", "ReplicaSet", "replicasets", True, ALL)
NODES = ApiResource("", "v1", "Node", "nodes", False, ALL)
WIDGETS = ApiResource("example.com", "v1", "Widget", "widgets", True, ALL)
SERVED = DiscoveryResult((PODS, SETS, NODES, WIDGETS))


class OwnerGraph:
    """Caches filled by hand: a `Caches`."""

    def __init__(self, *things: tuple[ApiResource, PartialObject], unfilled: tuple[str, ...] = ()) -> None:
        self.all_objects = MetadataCache(lambda: unfilled)
        self.all_objects.discovered = SERVED
        self.memory = AbsentOwners()
        self.stores: dict[str, Store[PartialObject]] = {}
        for name, index in garbagecollector.controller.follows_all.indexes.items():
            self.all_objects.add_index(name, index)
        for resource in SERVED.resources:
            self.stores[resource.id] = Store()
            self.all_objects.attach(resource.partial, self.stores[resource.id])
        self.put(*things)

    def __getitem__(self, kind: Kind[Any]) -> Any:
        return self.stores[kind.resource]

    def monotonic(self) -> float:
        return 0.0

    def put(self, *things: tuple[ApiResource, PartialObject]) -> list[Key]:
        """Take in objects; answers with the keys that are to be looked at."""
        keys: list[Key] = []
        for resource, obj in things:
            old = self.stores[resource.id].put(obj)
            keys += self._tell(resource, Change(old, obj))
        return keys

    def remove(self, resource: ApiResource, obj: PartialObject) -> list[Key]:
        self.stores[resource.id].remove(obj.key)
        return self._tell(resource, Change(obj, None))

    def _tell(self, resource: ApiResource, change: Change[Any]) -> list[Key]:
        self.all_objects.take(resource.partial, change)
        return list(enqueue(self, resource.partial, change))

    def decide(
        self, resource: ApiResource, obj: PartialObject, answers: Any = None
    ) -> tuple[list[Action[Any]], Verdict]:
        seen = observe(self, Item(resource.partial, obj).key)
        assert seen is not None
        return walk(garbagecollector.decide(seen, NOW), answers)


def thing(name: str, *owners: OwnerReference, **meta: Any) -> PartialObject:
    meta = {"namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7", **meta}
    return PartialObject(metadata=PartialObjectMeta(name=name, ownerReferences=owners, **meta))


def going(name: str, *owners: OwnerReference, finalizers: tuple[str, ...] = (), **meta: Any) -> PartialObject:
    return thing(name, *owners, finalizers=finalizers, deletionTimestamp=NOW, **meta)


def owned(
    name: str, resource: ApiResource = SETS, *, uid: str = "", blocks: bool | None = True
) -> OwnerReference:
    return OwnerReference(
        apiVersion=resource.api_version,
        kind=resource.kind,
        name=name,
        uid=uid or f"uid-{name}",
        blockOwnerDeletion=blocks,
    )


def not_found(name: str, plural: str = "replicasets") -> NotFound:
    return NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def live(*found: PartialObject) -> Callable[[Action[Any]], Any]:
    """A server that has just these objects."""
    by_name = {obj.metadata.name: obj for obj in found}

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Read):
            target = action.target
            assert isinstance(target, Address)
            return by_name.get(target.name) or not_found(target.name, target.kind.plural)
        return USUAL

    return answer


def removed(
    obj: PartialObject, resource: ApiResource = PODS, policy: Any = "Background", exact: bool = True
) -> Delete:
    meta = obj.metadata
    address = Address(resource.partial, meta.namespace, meta.name, meta.uid, meta.resourceVersion)
    return Delete(address, policy, exact=exact)
