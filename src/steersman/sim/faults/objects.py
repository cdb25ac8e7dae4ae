"""Objects as no server should hold them: put straight into the store, past all validation.

As somebody could who edits etcd, or a server of another version. What was spoilt is mended after a while,
so that one can see whether everything comes right again.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from steersman.runtime.store import revision_of
from steersman.sim.faults.crashes import describe
from steersman.sim.faults.fault import Armed, Call, Fault
from steersman.sim.faults.injector import Stage

Spoil = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Corrupted(Fault):
    """With the manager's nth write a field of the newest object of a kind is spoilt, for some seconds.

    ``field`` is ``uid``, ``ownerReferences``, ``labels`` or ``selector``. Zero seconds is for ever.
    """

    kind: str
    field: str
    n: int = 1
    seconds: float = 20.0
    word: ClassVar[str] = "corrupted"
    excuses: ClassVar[frozenset[str]] = frozenset({"state", "creates", "deletes", "writes", "expect"})

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise ValueError(f"what can be corrupted is {', '.join(FIELDS)}; not {self.field}")

    def arm(self, stage: Stage) -> Armed:
        return _Corrupted(self, stage)


@dataclass(frozen=True, slots=True)
class Garbage(Fault):
    """With the manager's nth write an odd object appears beside the newest of a kind, for some seconds.

    ``how`` is ``negative`` (counts below zero), ``bare`` (no spec, no labels, no owner) or ``endless``
    (it is being deleted and never goes). Zero seconds is for ever.
    """

    kind: str
    how: str = "negative"
    n: int = 1
    seconds: float = 20.0
    word: ClassVar[str] = "garbage"
    excuses: ClassVar[frozenset[str]] = frozenset({"state", "creates", "deletes", "writes", "expect"})

    def __post_init__(self) -> None:
        if self.how not in ODD:
            raise ValueError(f"garbage is {', '.join(ODD)}; not {self.how}")

    def arm(self, stage: Stage) -> Armed:
        return _Garbage(self, stage)


class _Meddling(Armed, ABC):
    """Changes the newest object of a kind behind the server's back."""

    def __init__(self, kind: str, n: int, stage: Stage) -> None:
        self._kind = kind
        self._n = n
        self.stage = stage

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._n:
            found = self._newest()
            if found is not None:
                self.stage.spawn(self.meddle(*found, describe(call)), "meddler")
        return answer

    def _newest(self) -> tuple[str, str] | None:
        """The resource and key of the object that was written last."""
        newest: tuple[int, str, str] | None = None
        for table in self.stage.world.server.store.tables():
            if self._kind not in (table.resource, table.resource.partition(".")[0]):
                continue
            for key in table.keys():  # noqa: SIM118  (a table is no dict)
                obj = table.get(key)
                revision = revision_of(obj.metadata.resourceVersion) or 0 if obj is not None else 0
                # What is worked out when it is read has no version, and cannot be spoilt.
                if revision and (newest is None or revision > newest[0]):
                    newest = revision, table.resource, key
        return newest[1:] if newest is not None else None

    def put(self, resource: str, key: str, obj: Any) -> None:
        """Put an object in place, whatever it is."""
        store = self.stage.world.server.store
        meta = replace(obj.metadata, resourceVersion=store.next_version)
        store.table(resource).put(key, replace(obj, metadata=meta))

    def get(self, resource: str, key: str) -> Any:
        return self.stage.world.server.store.table(resource).get(key)

    @abstractmethod
    async def meddle(self, resource: str, key: str, when: str) -> None:
        """Do it, when its moment has come."""


class _Corrupted(_Meddling):
    def __init__(self, fault: Corrupted, stage: Stage) -> None:
        super().__init__(fault.kind, fault.n, stage)
        self._fault = fault

    async def meddle(self, resource: str, key: str, when: str) -> None:
        spoil, mend = FIELDS[self._fault.field]
        good = self.get(resource, key)
        if good is None or (bad := spoil(good)) == good:
            return
        self.stage.strike(f"{resource} {key} has a wrong {self._fault.field} after {when}")
        self.put(resource, key, bad)
        if self._fault.seconds:
            await asyncio.sleep(self._fault.seconds)
            found = self.get(resource, key)
            if found is not None and found.metadata.uid == bad.metadata.uid:
                self.put(resource, key, mend(found, good))


class _Garbage(_Meddling):
    def __init__(self, fault: Garbage, stage: Stage) -> None:
        super().__init__(fault.kind, fault.n, stage)
        self._fault = fault

    async def meddle(self, resource: str, key: str, when: str) -> None:
        namespace, _, name = key.rpartition("/")
        model = self.get(resource, key)
        if model is None:
            return
        odd = ODD[self._fault.how](model, self.stage)
        odd = replace(
            odd, metadata=replace(odd.metadata, name=f"{name}-odd", uid=self.stage.world.server.uid())
        )
        where = f"{namespace}/{name}-odd" if namespace else f"{name}-odd"
        self.stage.strike(f"{resource} {where} appears after {when}: {self._fault.how}")
        self.put(resource, where, odd)
        if self._fault.seconds:
            await asyncio.sleep(self._fault.seconds)
            table = self.stage.world.server.store.table(resource)
            if table.get(where) is not None:
                table.remove(where)


# -- one field --------------------------------------------------------------------------------


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
    """Mends a field of the metadata: as it was."""
    return lambda found, good: _meta(found, **{field: getattr(good.metadata, field)})


FIELDS: Mapping[str, tuple[Spoil, Callable[[Any, Any], Any]]] = {
    "uid": (_uid, _like("uid")),
    "ownerReferences": (_owners, _like("ownerReferences")),
    "labels": (_labels, _like("labels")),
    "selector": (
        _selector,
        lambda found, good: replace(found, spec=replace(found.spec, selector=good.spec.selector)),
    ),
}


# -- whole objects ----------------------------------------------------------------------------


def _negative(obj: Any, stage: Stage) -> Any:
    """Every count of the spec is below zero."""
    spec = getattr(obj, "spec", None)
    if not isinstance(spec, msgspec.Struct):
        return obj
    counts = {
        field: -1
        for field in spec.__struct_fields__
        if isinstance(getattr(spec, field), int) and not isinstance(getattr(spec, field), bool)
    }
    return _meta(replace(obj, spec=replace(spec, **counts)), ownerReferences=())


def _bare(obj: Any, stage: Stage) -> Any:
    bare = {}
    for field in ("spec", "status"):
        part = getattr(obj, field, None)
        if isinstance(part, msgspec.Struct):
            try:
                bare[field] = type(part)()
            except TypeError:
                continue  # something in it must be there
    return _meta(replace(obj, **bare), labels={}, annotations={}, ownerReferences=())


def _endless(obj: Any, stage: Stage) -> Any:
    return _meta(
        obj,
        deletionTimestamp=stage.world.server.now(),
        deletionGracePeriodSeconds=0,
        finalizers=("sim.steersman.dev/never",),
    )


ODD: Mapping[str, Callable[[Any, Stage], Any]] = {
    "negative": _negative,
    "bare": _bare,
    "endless": _endless,
}
