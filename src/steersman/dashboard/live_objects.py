"""The objects that a feed follows, by name and by relation, and a snapshot of them for explanations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.dashboard.kinds import SHOWN, document_of
from steersman.dashboard.summaries import Summary, pod_has_ended, summarize
from steersman.explain.collect import ENDPOINT_SLICES, INGRESS_CLASSES
from steersman.explain.model import Document, Ref, Snapshot, event_time, ref_of

_encode = msgspec.json.Encoder().encode


class LiveObject:
    """An object as it was last seen, its summary, and the summary's JSON, which all viewers share."""

    __slots__ = ("about", "encoded", "kind", "node", "obj", "summary")

    def __init__(self, kind: Kind[Any], obj: Object, summary: Summary, document: Document) -> None:
        self.kind = kind
        self.obj = obj
        self.summary = summary
        self.about = _about(document) if kind.name == "Event" else None
        """The object that an Event is about."""
        self.node = summary.node if kind.name == "Pod" and not pod_has_ended(document) else ""
        """The node on which a pod takes room."""
        self.encoded: bytes = _encode(summary)

    @property
    def document(self) -> dict[str, Any]:
        """The object as a plain document, made anew for each call."""
        return document_of(self.kind, self.obj)


class LiveObjects:
    """All objects that one feed follows."""

    def __init__(self) -> None:
        self.by_uid: dict[str, LiveObject] = {}
        self._kinds: dict[str, dict[Key, LiveObject]] = {}
        self._owned: dict[str, dict[str, LiveObject]] = {}
        """By the uid of the controller, by uid."""
        self._warnings: dict[Ref, dict[str, LiveObject]] = {}
        """Events by the object that they are about, by uid."""
        self._pods_on: dict[str, dict[str, LiveObject]] = {}
        """Pods that have not ended, by node, by uid."""

    # -- changing -----------------------------------------------------------------------------

    def put(self, kind: Kind[Any], obj: Object, error: str = "") -> tuple[LiveObject, LiveObject | None]:
        """Add or replace an object; returns it, and the one before. ``error`` says why it could not be decoded."""
        document = document_of(kind, obj)
        summary = summarize(document)
        if error:
            summary = replace(summary, state="bad", status="cannot be read")
        if kind.name == "Node":
            summary = replace(summary, pods=len(self.pods_on(summary.name)))
        before = self.remove(kind, obj.key)
        entry = LiveObject(kind, obj, summary, document)
        self._kinds.setdefault(kind.name, {})[obj.key] = entry
        self.by_uid[summary.id] = entry
        if summary.owner:
            self._owned.setdefault(summary.owner, {})[summary.id] = entry
        if entry.about is not None:
            self._warnings.setdefault(entry.about, {})[summary.id] = entry
        if entry.node:
            self._pods_on.setdefault(entry.node, {})[summary.id] = entry
        return entry, before

    def remove(self, kind: Kind[Any], key: Key) -> LiveObject | None:
        """Remove an object; returns it, if there was one."""
        entry = self._kinds.get(kind.name, {}).pop(key, None)
        if entry is None:
            return None
        uid, owner = entry.summary.id, entry.summary.owner
        self.by_uid.pop(uid, None)
        if owner:
            _drop(self._owned, owner, uid)
        if entry.about is not None:
            _drop(self._warnings, entry.about, uid)
        if entry.node:
            _drop(self._pods_on, entry.node, uid)
        return entry

    def recount(self, node: str) -> LiveObject | None:
        """The node with its number of pods, if that has changed."""
        entry = self._kinds.get("Node", {}).get(Key("", node))
        count = len(self.pods_on(node))
        if entry is None or entry.summary.pods == count:
            return None
        entry.summary = replace(entry.summary, pods=count)
        entry.encoded = _encode(entry.summary)
        return entry

    # -- reading ------------------------------------------------------------------------------

    def get(self, kind: str, key: Key) -> LiveObject | None:
        """An object by kind and name."""
        return self._kinds.get(kind, {}).get(key)

    def keys(self, kind: str) -> tuple[Key, ...]:
        """The names of the objects of a kind."""
        return tuple(self._kinds.get(kind, ()))

    def of_kind(self, kind: str, namespace: str | None = None) -> Iterator[LiveObject]:
        """The objects of a kind, of one namespace or of all."""
        for key, entry in self._kinds.get(kind, {}).items():
            if namespace is None or key.namespace == namespace:
                yield entry

    def shown(self) -> Iterator[LiveObject]:
        """The objects that viewers are shown, in the order of their kinds."""
        for kind in SHOWN:
            yield from self._kinds.get(kind, {}).values()

    def owned(self, uid: str) -> Iterable[LiveObject]:
        """The objects that an object controls."""
        return self._owned.get(uid, {}).values()

    def pods_on(self, node: str) -> Collection[LiveObject]:
        """The pods of a node that have not ended."""
        return self._pods_on.get(node, {}).values()

    def below(self, entry: LiveObject) -> Iterator[LiveObject]:
        """An object and all that it controls, directly or not."""
        seen, stack = {entry.summary.id: None}, [entry]
        while stack:
            each = stack.pop()
            yield each
            for below in self.owned(each.summary.id):
                if below.summary.id not in seen:
                    seen[below.summary.id] = None
                    stack.append(below)

    def warnings(self, about: Ref) -> Iterable[LiveObject]:
        """The events about an object."""
        return self._warnings.get(about, {}).values()


def _about(document: Document) -> Ref:
    about = document.get("involvedObject") or document.get("regarding") or {}
    return Ref(about.get("kind", ""), about.get("namespace", ""), about.get("name", ""))


def _drop(index: dict[Any, dict[str, LiveObject]], place: object, uid: str) -> None:
    entries = index.get(place)
    if entries is not None:
        entries.pop(uid, None)
        if not entries:
            del index[place]


class LiveSnapshot(Snapshot):
    """The objects of a feed at one time, decoded when an explanation looks at them."""

    def __init__(
        self,
        now: datetime,
        objects: LiveObjects,
        unread: Mapping[str, str] | None = None,
        rounds: Mapping[str, Any] | None = None,
        others: Iterable[Document] = (),
    ) -> None:
        """``others`` are documents that the feed does not follow."""
        super().__init__(now, others, unread, rounds)
        self._objects = objects
        self._documents: dict[str, Document] = {}

    def document(self, entry: LiveObject) -> Document:
        """An object as a document, decoded once."""
        uid = entry.summary.id
        found = self._documents.get(uid)
        if found is None:
            found = self._documents[uid] = entry.document
        return found

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        entry = self._objects.get(kind, Key(namespace, name))
        return super().get(kind, namespace, name) if entry is None else self.document(entry)

    def objects(self, kind: str, namespace: str | None = None) -> Iterator[Document]:
        if kind in ("Event", ENDPOINT_SLICES.name, INGRESS_CLASSES.name):
            # Events of the feed are found by the object that they are about; the feed does not follow the others.
            return super().objects(kind, namespace)
        return (self.document(entry) for entry in self._objects.of_kind(kind, namespace))

    def pods_on(self, node: str) -> Iterator[Document]:
        return (self.document(entry) for entry in tuple(self._objects.pods_on(node)))

    def owned(self, document: Document, kind: str) -> list[Document]:
        uid = document.get("metadata", {}).get("uid", "")
        return [self.document(each) for each in self._objects.owned(uid) if each.kind.name == kind]

    def events(self, document: Document, *reasons: str) -> list[Document]:
        uid = document.get("metadata", {}).get("uid", "")
        known = super().events(document, *reasons)
        seen = {event.get("metadata", {}).get("uid") for event in known}
        found = [
            event
            for event in map(self.document, self._objects.warnings(ref_of(document)))
            if (not reasons or event.get("reason") in reasons)
            and event.get("involvedObject", {}).get("uid", uid) in ("", uid)
            and event.get("metadata", {}).get("uid") not in seen
        ]
        return sorted((*known, *found), key=event_time, reverse=True)
