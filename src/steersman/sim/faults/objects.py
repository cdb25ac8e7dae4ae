"""Object faults: invalid objects written straight into the store, past validation.

As an edit in etcd or an API server of another version could do. The objects are repaired after a while, to see whether
the cluster recovers.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from steersman.runtime.store import revision_of
from steersman.sim.faults.fault import ActiveFault, Call, Fault, describe
from steersman.sim.faults.injector import FaultInjector

Spoil = Callable[[Any], Any]


class CorruptedField(Fault, frozen=True):
    """At the manager's nth write a field of the newest object of a kind is corrupted for ``seconds``; 0 is forever.

    ``field`` is ``uid``, ``ownerReferences``, ``labels`` or ``selector``.
    """

    kind: str
    field: str
    n: int = 1
    seconds: float = 20.0
    name: ClassVar[str] = "corrupted_field"
    allowed_violations: ClassVar[frozenset[str]] = frozenset(
        {"state", "creates", "deletes", "writes", "expect", "protection"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.field not in CORRUPTIONS:
            raise ValueError(f"field must be one of {', '.join(CORRUPTIONS)}, not {self.field}")

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Corrupted(self, injector)


class MalformedObject(Fault, frozen=True):
    """At the manager's nth write a malformed object appears beside the newest of a kind for ``seconds``; 0 is forever.

    ``form`` is ``negative`` (counts below zero), ``bare`` (no spec, labels or owner) or ``endless`` (terminating, with a
    finalizer that is never removed).
    """

    kind: str
    form: str = "negative"
    n: int = 1
    seconds: float = 20.0
    name: ClassVar[str] = "malformed_object"
    allowed_violations: ClassVar[frozenset[str]] = frozenset(
        {"state", "creates", "deletes", "writes", "expect", "protection", "attachments", "detaches"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, not {self.form}")

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Garbage(self, injector)


class _StoreFault(ActiveFault, ABC):
    """Changes the newest object of a kind in the store."""

    def __init__(self, kind: str, n: int, injector: FaultInjector) -> None:
        self._kind = kind
        self._n = n
        self.injector = injector

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._n:
            found = self._newest()
            if found is not None:
                self.injector.spawn(self.inject(*found, describe(call)), "object fault")
        return answer

    def _newest(self) -> tuple[str, str] | None:
        """The resource and key of the object written last."""
        newest: tuple[int, str, str] | None = None
        for table in self.injector.world.server.store.tables():
            if self._kind not in (table.resource, table.resource.partition(".")[0]):
                continue
            for key in table.keys():  # noqa: SIM118  (a table is no dict)
                obj = table.get(key)
                revision = revision_of(obj.metadata.resourceVersion) or 0 if obj is not None else 0
                # Computed objects have no version, and cannot be changed.
                if revision and (newest is None or revision > newest[0]):
                    newest = revision, table.resource, key
        return newest[1:] if newest is not None else None

    def put(self, resource: str, key: str, obj: Any) -> None:
        """Write an object to the store without validation."""
        store = self.injector.world.server.store
        meta = replace(obj.metadata, resourceVersion=store.next_version)
        store.table(resource).put(key, replace(obj, metadata=meta))

    def get(self, resource: str, key: str) -> Any:
        return self.injector.world.server.store.table(resource).get(key)

    @abstractmethod
    async def inject(self, resource: str, key: str, when: str) -> None:
        """Inject the fault."""


class _Corrupted(_StoreFault):
    def __init__(self, fault: CorruptedField, injector: FaultInjector) -> None:
        super().__init__(fault.kind, fault.n, injector)
        self._fault = fault

    async def inject(self, resource: str, key: str, when: str) -> None:
        spoil, repair = CORRUPTIONS[self._fault.field]
        good = self.get(resource, key)
        if good is None or (bad := spoil(good)) == good:
            return
        self.injector.record(self, f"{resource} {key}: {self._fault.field} corrupted after {when}")
        self.put(resource, key, bad)
        if self._fault.seconds:
            await asyncio.sleep(self._fault.seconds)
            found = self.get(resource, key)
            if found is not None and found.metadata.uid == bad.metadata.uid:
                self.put(resource, key, repair(found, good))


class _Garbage(_StoreFault):
    def __init__(self, fault: MalformedObject, injector: FaultInjector) -> None:
        super().__init__(fault.kind, fault.n, injector)
        self._fault = fault

    async def inject(self, resource: str, key: str, when: str) -> None:
        namespace, _, name = key.rpartition("/")
        model = self.get(resource, key)
        if model is None:
            return
        malformed = FORMS[self._fault.form](model, self.injector)
        malformed = replace(
            malformed,
            metadata=replace(malformed.metadata, name=f"{name}-odd", uid=self.injector.world.server.uid()),
        )
        where = f"{namespace}/{name}-odd" if namespace else f"{name}-odd"
        self.injector.record(self, f"{resource} {where}: {self._fault.form} object appears after {when}")
        self.put(resource, where, malformed)
        if self._fault.seconds:
            await asyncio.sleep(self._fault.seconds)
            table = self.injector.world.server.store.table(resource)
            if table.get(where) is not None:
                table.remove(where)


# -- corrupted fields -------------------------------------------------------------------------


def _meta(obj: Any, **fields: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, **fields))


def _uid(obj: Any) -> Any:
    return _meta(obj, uid=obj.metadata.uid[::-1])


def _owners(obj: Any) -> Any:
    owners = tuple(replace(owner, uid=owner.uid[::-1]) for owner in obj.metadata.ownerReferences)
    return _meta(obj, ownerReferences=owners)


def _labels(obj: Any) -> Any:
    return _meta(obj, labels={key: f"not-{value}" for key, value in obj.metadata.labels.items()})


def _selector(obj: Any) -> Any:
    spec = getattr(obj, "spec", None)
    selector = getattr(spec, "selector", None)
    if selector is None or spec is None:
        return obj
    if isinstance(selector, Mapping):
        wrong: Any = {key: f"not-{value}" for key, value in selector.items()}
    else:
        labels = {key: f"not-{value}" for key, value in selector.matchLabels.items()}
        wrong = replace(selector, matchLabels=labels)
    return replace(obj, spec=replace(spec, selector=wrong))


def _like(field: str) -> Callable[[Any, Any], Any]:
    """A function that restores a field of the metadata."""
    return lambda found, good: _meta(found, **{field: getattr(good.metadata, field)})


CORRUPTIONS: Mapping[str, tuple[Spoil, Callable[[Any, Any], Any]]] = {
    "uid": (_uid, _like("uid")),
    "ownerReferences": (_owners, _like("ownerReferences")),
    "labels": (_labels, _like("labels")),
    "selector": (
        _selector,
        lambda found, good: replace(found, spec=replace(found.spec, selector=good.spec.selector)),
    ),
}


# -- malformed objects ------------------------------------------------------------------------


def _negative(obj: Any, injector: FaultInjector) -> Any:
    """Every integer of the spec is -1."""
    spec = getattr(obj, "spec", None)
    if not isinstance(spec, msgspec.Struct):
        return obj
    counts = {
        field: -1
        for field in spec.__struct_fields__
        if isinstance(getattr(spec, field), int) and not isinstance(getattr(spec, field), bool)
    }
    return _meta(replace(obj, spec=replace(spec, **counts)), ownerReferences=())


def _bare(obj: Any, injector: FaultInjector) -> Any:
    bare = {}
    for field in ("spec", "status"):
        part = getattr(obj, field, None)
        if isinstance(part, msgspec.Struct):
            try:
                bare[field] = type(part)()
            except TypeError:
                continue  # a required field
    return _meta(replace(obj, **bare), labels={}, annotations={}, ownerReferences=())


def _endless(obj: Any, injector: FaultInjector) -> Any:
    return _meta(
        obj,
        deletionTimestamp=injector.world.server.now(),
        deletionGracePeriodSeconds=0,
        finalizers=("sim.steersman.dev/never",),
    )


FORMS: Mapping[str, Callable[[Any, FaultInjector], Any]] = {
    "negative": _negative,
    "bare": _bare,
    "endless": _endless,
}
