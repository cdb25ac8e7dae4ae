"""The timeline: entries from the writes of a rehearsal, linked to their causes, without what happens anyway. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from steersman.api.generated import resources
from steersman.api.scheme import Key
from steersman.client.api import EventType
from steersman.plan.model import Cause, ClusterEvent, Entry, ObjectRef, Refusal, Verb
from steersman.plan.recording import NumberedRound, Recording, Write, Writers, failures
from steersman.runtime.causes import Event
from steersman.server.codec.convert import to_document
from steersman.server.storage.watch import Commit
from steersman.testing.narration import EVENTS, differences

SECRETIVE = ("secrets", "configmaps")
"""Resources of which only the names of changed fields are told, never the values."""
MAX_FIELDS = 20
OTHERS = ("you", "kubelet", "kube-scheduler")
"""Actors that have no rounds."""
DULL_FIELDS = (
    "metadata.annotations.deployment.kubernetes.io/",
    "metadata.annotations.kubectl.kubernetes.io/last-applied",
)
LIFE = ("deletionTimestamp", "deletionGracePeriodSeconds")
Identity: TypeAlias = tuple[str, str, str, str, str, str]

_KINDS = {f"{row.plural}.{row.group}" if row.group else row.plural: row.kind for row in resources()}


def ref(commit: Commit, kinds: Mapping[str, str]) -> ObjectRef:
    """Names the object of a commit; ``kinds`` are the custom kinds by resource."""
    meta = commit.obj.metadata
    return ObjectRef(kind_of(commit.resource, kinds), meta.namespace, meta.name)


def kind_of(resource: str, kinds: Mapping[str, str]) -> str:
    """The kind of a resource's objects."""
    return _KINDS.get(resource) or kinds.get(resource, resource)


def owner_of(obj: Any) -> str:
    """The controller of an object, as ``ReplicaSet web-5d4f``."""
    return next((f"{each.kind} {each.name}" for each in obj.metadata.ownerReferences if each.controller), "")


def verb_of(commit: Commit) -> Verb:
    """The verb of a commit: its effect on the object."""
    if commit.event.type is EventType.DELETED:
        return "delete"
    if commit.old is None:
        return "create"
    if commit.obj.metadata.deletionTimestamp is not None and commit.old.metadata.deletionTimestamp is None:
        return "terminate"
    return "change"


def aspect_of(commit: Commit) -> Literal["", "spec", "status", "metadata"]:
    """The part of an object that a change has touched; the first of spec, status and metadata. Empty for other verbs."""
    old, new = commit.old, commit.obj
    if old is None or verb_of(commit) != "change":
        return ""
    names: Sequence[str] = getattr(type(new), "__struct_fields__", ())
    changed = [name for name in names if name != "metadata" and getattr(old, name) != getattr(new, name)]
    if "content" in changed and isinstance(getattr(new, "content", None), dict):
        before, after = old.content, new.content
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if any(name not in ("status", "stored", "stored_in", "metadata") for name in changed):
        return "spec"
    return "status" if changed else "metadata"


def fields_of(commit: Commit) -> tuple[str, ...]:
    """The fields that a commit has changed, with their values unless they could be secrets."""
    if verb_of(commit) != "change":
        return ()
    if commit.resource in SECRETIVE:
        found = dict.fromkeys(
            name
            for name in ("data", "binaryData", "immutable")
            if getattr(commit.old, name, None) != getattr(commit.obj, name, None)
        )
        return tuple(found) or ("metadata",)
    changed = [
        text
        for text in differences(_plain(commit.old), _plain(commit.obj))
        if not text.startswith(DULL_FIELDS)
    ]
    more = (f"and {len(changed) - MAX_FIELDS} more",) if len(changed) > MAX_FIELDS else ()
    return (*changed[:MAX_FIELDS], *more)


def _plain(obj: Any) -> dict[str, Any]:
    found = to_document("", "", obj)
    meta = {name: value for name, value in found.get("metadata", {}).items() if name != "managedFields"}
    return {**found, "metadata": meta}


# -- entries ----------------------------------------------------------------------------------


def identity(write: Write) -> Identity:
    """The identity of a write, without its time and generated names, by which the writes of two runs are matched."""
    commit = write.commit
    meta = commit.obj.metadata
    owner = owner_of(commit.obj)
    name = owner if meta.generateName and owner else meta.name
    return write.actor, verb_of(commit), commit.resource, meta.namespace, name, aspect_of(commit)


def split(changed: Sequence[Write], baseline: Iterable[Write]) -> tuple[list[Write], list[Write]]:
    """The writes that the change causes, and those that happen without it, too."""
    expected = Counter(map(identity, baseline))
    caused: list[Write] = []
    anyway: list[Write] = []
    for write in changed:
        key = identity(write)
        if expected[key]:
            expected[key] -= 1
            anyway.append(write)
        else:
            caused.append(write)
    return caused, anyway


def entries(writes: Iterable[Write], recording: Recording, start: int = 1) -> tuple[Entry, ...]:
    """The writes as entries with their causes. Events are no entries."""
    writers = recording.writers()
    numbers: dict[tuple[str, Key], list[tuple[int, int]]] = {}
    """By object: the revision and the entry of each write."""
    found: list[Entry] = []
    for write in writes:
        commit = write.commit
        if commit.resource in EVENTS:
            continue
        number = start + len(found)
        meta = commit.obj.metadata
        key = commit.resource, Key(meta.namespace, meta.name)
        found.append(
            Entry(
                number,
                round((write.at - recording.begin).total_seconds(), 3),
                write.actor,
                verb_of(commit),
                ref(commit, recording.kinds),
                owner_of(commit.obj),
                aspect_of(commit),
                fields_of(commit),
                _cause(write, writers, numbers),
            )
        )
        numbers.setdefault(key, []).append((commit.revision, number))
    return tuple(found)


def _cause(
    write: Write, writers: Writers, numbers: dict[tuple[str, Key], list[tuple[int, int]]]
) -> Cause | None:
    made = None if write.actor in OTHERS else writers.of(write)
    if made is None:
        meta = write.commit.obj.metadata
        before = numbers.get((write.commit.resource, Key(meta.namespace, meta.name)))
        if before is None or write.actor == "you":
            return None
        return Cause("", entry=before[-1][1])
    round_ = made.round
    for cause in round_.causes:
        if isinstance(cause, Event):
            entry = _entry_of(cause, numbers)
            if entry:
                return Cause(str(cause), round_.controller, made.number, entry)
    text = str(round_.causes[0]) if round_.causes else ""
    return Cause(text, round_.controller, made.number)


def _entry_of(event: Event, numbers: dict[tuple[str, Key], list[tuple[int, int]]]) -> int:
    known = numbers.get((event.kind.resource, event.key), ())
    if event.type == "deleted":
        return known[-1][1] if known else 0
    first = int(event.first) if event.first.isdecimal() else 0
    last = int(event.last) if event.last.isdecimal() else 0
    return next((number for revision, number in reversed(known) if first <= revision <= last), 0)


# -- events and refusals ----------------------------------------------------------------------


def cluster_events(writes: Iterable[Write], begin: datetime) -> tuple[ClusterEvent, ...]:
    """The Events that were recorded, each once with its count."""
    found: dict[tuple[str, str], ClusterEvent] = {}
    for write in writes:
        commit = write.commit
        if commit.resource not in EVENTS or commit.event.type is EventType.DELETED:
            continue
        event = commit.obj
        about = getattr(event, "involvedObject", None) or event.regarding
        series = getattr(event, "series", None)
        count = max(getattr(event, "count", 0) or 0, getattr(series, "count", 0) or 0, 1)
        at = round((write.at - begin).total_seconds(), 3)
        key = event.metadata.namespace, event.metadata.name
        before = found.get(key)
        found[key] = ClusterEvent(
            before.at if before is not None else at,
            event.type,
            event.reason,
            ObjectRef(about.kind, about.namespace, about.name),
            getattr(event, "message", "") or getattr(event, "note", ""),
            count,
        )
    return tuple(sorted(found.values(), key=lambda each: each.at))


IGNORED = ("Conflict:", "NotFound:", "AlreadyExists:", "Unreachable:", "Conflict", "Expired")
"""Errors that belong to the work of a control loop: it reads again and goes on."""
TERMINATING = "because it is being terminated"
"""Part of the error of creates in a namespace that is being deleted: it stops the control loops there, as it should."""
REFUSERS = (
    ("exceeded quota", "ResourceQuota"),
    ("must specify", "ResourceQuota"),
    ("disruption budget", "PodDisruptionBudget"),
    ("more than one PodDisruptionBudget", "PodDisruptionBudget"),
    ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy"),
    ("violates PodSecurity", "PodSecurity"),
    ("admission webhook", "an admission webhook"),
    (TERMINATING, "NamespaceLifecycle"),
    ("serviceaccount", "ServiceAccount"),
    ("Invalid", "validation"),
    ("strict decoding", "validation"),
    ("Forbidden", "admission"),
)


def refuser(text: str) -> str:
    """The part of the server that refused a request, by the words of its error."""
    lower = text.lower()
    return next((name for words, name in REFUSERS if words.lower() in lower), "the API server")


def refusals(
    recording: Recording, resolved: Iterable[tuple[str, Key | None]] = (), baseline: Recording | None = None
) -> tuple[Refusal, ...]:
    """The refused requests of the change and of the controllers, equal ones once. ``resolved`` were accepted later.

    Those that are refused in the ``baseline``, too, are not the change's.
    """
    later = set(resolved)
    known = set() if baseline is None else {_refused_key(*each) for each in _refused_steps(baseline.rounds)}
    accepted = _accepted_after_all(recording.rounds)
    found: dict[tuple[str, str, str, str], Refusal] = {}

    def add(key: tuple[str, str, str, str], made: Refusal) -> None:
        before = found.get(key)
        found[key] = made if before is None else _again(before)

    for each in recording.refused:
        at = round((each.at - recording.begin).total_seconds(), 3)
        about = ObjectRef(each.kind, each.key.namespace, each.key.name) if each.key is not None else None
        budgets = [cause.message for cause in each.error.causes if cause.reason == "DisruptionBudget"]
        message = " ".join((each.error.message or type(each.error).__name__, *budgets))
        by = refuser(f"{type(each.error).__name__} {message}")
        done = (each.action, each.key) in later
        add(
            ("you", each.action, str(about), by),
            Refusal(at, "you", each.action, by, message, about, resolved=done),
        )
    for numbered, action, outcome in _refused_steps(recording.rounds):
        at = round((numbered.round.started - recording.begin).total_seconds(), 3)
        key = _refused_key(numbered, action, outcome)
        add(
            key,
            Refusal(
                at,
                numbered.round.controller,
                action,
                refuser(outcome),
                outcome,
                resolved=key in accepted,
                anyway=key in known,
            ),
        )
    return tuple(sorted(found.values(), key=lambda each: each.at))


def _again(before: Refusal) -> Refusal:
    return replace(before, count=before.count + 1)


def _refused_key(numbered: NumberedRound, action: str, outcome: str) -> tuple[str, str, str, str]:
    round_ = numbered.round
    return round_.controller, str(round_.key), refuser(outcome), action.partition(" ")[0]


def _accepted_after_all(rounds: list[NumberedRound]) -> set[tuple[str, str, str, str]]:
    """The refusals of control loops that ended: a later round did the same, and none of it was refused."""
    refused = {_refused_key(*each): each[0].number for each in _refused_steps(rounds)}
    done = {
        (each.round.controller, str(each.round.key), step.action.partition(" ")[0]): each.number
        for each in rounds
        for step in each.round.steps
        if step.writes and not step.outcome
    }
    return {
        (controller, key, by, action)
        for (controller, key, by, action), number in refused.items()
        if done.get((controller, key, action), 0) > number
    }


def _refused_steps(rounds: list[NumberedRound]) -> Iterator[tuple[NumberedRound, str, str]]:
    for each, action, outcome in failures(rounds):
        bare = outcome.rpartition("not tried: ")[2] if "not tried: " in outcome else outcome
        if not bare.startswith(IGNORED) and TERMINATING not in bare:
            yield each, action, bare
