"""The values of an explanation: a snapshot of documents, findings about them, and the tree of the objects looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.api.kinds import LabelSelector
from steersman.api.label_selectors import compile_selector
from steersman.api.scheme import Key

Document: TypeAlias = Mapping[str, Any]
"""An object as plain JSON, with its kind."""


class Ref(NamedTuple):
    """Names an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def namespace_flag(self) -> str:
        """The flag of kubectl that names the namespace, after a blank; empty for an object outside of namespaces."""
        return f" -n {self.namespace}" if self.namespace else ""


def ref_of(document: Document) -> Ref:
    """The name of a document."""
    meta = document.get("metadata", {})
    return Ref(document.get("kind", ""), meta.get("namespace", ""), meta.get("name", ""))


class Weight(IntEnum):
    """How much a finding explains."""

    NOTE = 1
    """Worth knowing; keeps nothing from happening."""
    CONSEQUENCE = 2
    """Follows from another cause, which is more worth saying."""
    WAITS = 3
    """Goes on by itself, at a time or after an event that is on its way."""
    BLOCKED = 4
    """Stays as it is until a person changes something."""
    ROOT = 5
    """As blocked, and whatever is wrong further down follows from it or does not matter any more."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that a situation function found, with its remedy."""

    code: str
    """The situation, in one word or two: ``quota``."""
    subject: Ref
    cause: str
    """The cause that keeps the object from its wanted state, without a full stop."""
    controller: str = ""
    """The loop that would act."""
    next: str = ""
    """The next thing to happen, and when."""
    remedy: str = ""
    """The remedy that a person can apply."""
    weight: Weight = Weight.BLOCKED
    depth: int = 0
    """How far from the object in question, along owners and dependants."""
    others: tuple[Ref, ...] = ()
    """More objects in the same situation."""

    @property
    def sentence(self) -> str:
        """The finding as one sentence."""
        more = len(self.others)
        who = f"{self.subject} and {more} more" if more else str(self.subject)
        return f"{who}: {self.cause}."


class State(msgspec.Struct, frozen=True):
    """An object of the tree, with its wanted and its actual state."""

    subject: Ref
    wants: str
    has: str
    well: bool
    """Whether it is as it should be."""
    depth: int = 0
    relation: str = ""
    """How it belongs to the object above it: ``owns``, ``runs on``, ``mounts``."""


class Decision(msgspec.Struct, frozen=True):
    """The decision that a controller itself would make about an object, given the snapshot."""

    controller: str
    subject: Ref
    would: tuple[str, ...]
    """The writes it would make now."""
    verdict: str


class Explanation(msgspec.Struct, frozen=True):
    """The explanation of an object: its causes, its tree, and the decisions of the controllers."""

    subject: Ref
    at: datetime
    summary: str
    """The wanted and the actual state of the object, in one sentence."""
    well: bool
    findings: tuple[Finding, ...]
    """The deepest true cause first."""
    tree: tuple[State, ...]
    decisions: tuple[Decision, ...] = ()
    unread: tuple[str, ...] = ()
    """Kinds that could not be read, with the reason: a cause may be missing."""

    @property
    def first(self) -> str:
        """The sentence that answers the question."""
        return self.findings[0].sentence if self.findings and not self.well else self.summary


class Snapshot:
    """The documents of a cluster that are read once."""

    def __init__(
        self,
        now: datetime,
        documents: Iterable[Document],
        unread: Mapping[str, str] | None = None,
        rounds: Mapping[str, Any] | None = None,
    ) -> None:
        """``unread`` are the kinds that could not be read, with the reason; ``rounds`` the answer of ``/debug/rounds``."""
        self.now = now
        self.unread = dict(unread or {})
        self.rounds = rounds
        self._kinds: dict[str, dict[Key, Document]] = {}
        for document in documents:
            kind, namespace, name = ref_of(document)
            self._kinds.setdefault(kind, {})[Key(namespace, name)] = document

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        """An object; None if there is none, or its kind was not read."""
        return self._kinds.get(kind, {}).get(Key(namespace, name))

    def objects(self, kind: str, namespace: str | None = None) -> Iterator[Document]:
        """The objects of a kind, of one namespace or of all."""
        for key, document in self._kinds.get(kind, {}).items():
            if namespace is None or key.namespace == namespace:
                yield document

    def pods_on(self, node: str) -> Iterator[Document]:
        """The pods of a node, of all namespaces."""
        for pod in self.objects("Pod"):
            if (pod.get("spec") or {}).get("nodeName") == node:
                yield pod

    def known(self, kind: str) -> bool:
        """Whether the objects of a kind were read."""
        return kind not in self.unread

    @cached_property
    def _owned(self) -> Mapping[str, list[Document]]:
        found: dict[str, list[Document]] = {}
        for documents in self._kinds.values():
            for document in documents.values():
                for owner in document.get("metadata", {}).get("ownerReferences", ()):
                    if owner.get("controller"):
                        found.setdefault(owner.get("uid", ""), []).append(document)
        return found

    def owned(self, document: Document, kind: str) -> list[Document]:
        """The objects of a kind that an object controls."""
        uid = document.get("metadata", {}).get("uid", "")
        return [each for each in self._owned.get(uid, ()) if each.get("kind") == kind]

    @cached_property
    def _events(self) -> Mapping[Ref, list[Document]]:
        found: dict[Ref, list[Document]] = {}
        for event in self.objects("Event"):
            about = event.get("involvedObject") or event.get("regarding") or {}
            place = Ref(about.get("kind", ""), about.get("namespace", ""), about.get("name", ""))
            found.setdefault(place, []).append(event)
        for events in found.values():
            events.sort(key=event_time, reverse=True)
        return found

    def events(self, document: Document, *reasons: str) -> list[Document]:
        """The events about an object, latest first; of some reasons, or of all. Where its uid is not known, about any of its
        name."""
        uid = document.get("metadata", {}).get("uid", "")
        return [
            event
            for event in self._events.get(ref_of(document), ())
            if (not reasons or event.get("reason") in reasons)
            and (not uid or event.get("involvedObject", {}).get("uid", uid) in ("", uid))
        ]


def selects(document: Document, other: Document) -> bool:
    """Whether the label selector of an object selects another one. An invalid or missing selector selects nothing."""
    try:
        selector = msgspec.convert((document.get("spec") or {}).get("selector"), LabelSelector | None)
        labels: Mapping[str, str] = other.get("metadata", {}).get("labels") or {}
        return compile_selector(selector).matches(labels)
    except (msgspec.ValidationError, ValueError):
        return False


def event_time(event: Document) -> str:
    """The time of an event as text, the last one of a series; empty if it has none."""
    meta = event.get("metadata", {})
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        meta.get("creationTimestamp"),
    )
    return max(each for each in (*times, "") if each is not None)


def message_of(event: Document) -> str:
    """The message of an event, of either API group."""
    text: str = event.get("message") or event.get("note") or ""
    return text


class Case(msgspec.Struct, frozen=True):
    """An object in a snapshot, as a situation function is given it."""

    snapshot: Snapshot
    document: Document

    @property
    def ref(self) -> Ref:
        return ref_of(self.document)

    @property
    def meta(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document.get("metadata") or {}
        return found

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document.get("spec") or {}
        return found

    @property
    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document.get("status") or {}
        return found

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    def condition(self, type_: str) -> Mapping[str, Any]:
        """A condition of the status; empty if there is none of that type."""
        for condition in self.status.get("conditions") or ():
            if condition.get("type") == type_:
                found: Mapping[str, Any] = condition
                return found
        return {}

    def time(self, text: object) -> datetime | None:
        """A time of the API; None if it is missing or no time."""
        if not isinstance(text, str):
            return None
        try:
            return msgspec.convert(text, datetime)
        except (msgspec.ValidationError, ValueError):
            return None
