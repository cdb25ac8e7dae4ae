"""Intentions: writes that our controllers would send, as effects that can be looked for in a cluster.

An effect is what a write is about, without what a server makes up (names from generateName, uids, times, resourceVersions) and
without how it is requested. Two rounds that want the same of the same object have equal identities, so an intention can be
followed from round to round although nothing of it is ever sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind, encode_hook
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
    Write,
)
from steersman.runtime.action_table import describe
from steersman.runtime.action_table.interpretation import address_of
from steersman.runtime.action_table.text import enumerate_some, field_of, patched_fields, shorten

Identity: TypeAlias = tuple[str, ...]
"""The identity of an intention: equal in all rounds that want it."""

VOLATILE = frozenset(
    {
        "creationTimestamp",
        "generation",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Fields that no two managers write alike."""

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


class Effect(msgspec.Struct, frozen=True):
    """The effect that one write would have."""

    verb: str
    """create, update, update status, patch, delete, evict, delete all."""
    kind: str
    resource: str
    key: Key
    """The object; for a create with generateName, the prefix with an asterisk."""
    uid: str = ""
    owner: str = ""
    """The uid of the controller of an object to create."""
    subresource: str = ""
    fields: tuple[str, ...] = ()
    """The fields that a patch names."""
    content: str = ""
    """The normalised body, which is no part of the identity: another body is the same intention with other figures."""
    before: str = ""
    """The body that the content would replace, normalised, where the action has it."""
    terminating: bool = False
    """Whether an object to delete is being deleted already."""
    text: str = ""
    """The action in words."""
    type: Kind[Any] | None = None
    """The kind, to look for the object."""

    @property
    def words(self) -> str:
        """The action in words, with the fields that it would change."""
        changed = tuple(changes(self.before, self.content)) if self.before else ()
        return f"{self.text.partition(' (')[0]}: {enumerate_some(changed)}" if changed else self.text

    @property
    def identity(self) -> Identity:
        """The identity of the write: its object, verb and fields, without the content."""
        return (self.verb, self.resource, *self.key, self.uid, self.owner, self.subresource, *self.fields)

    @property
    def changes_nothing(self) -> bool:
        """Whether the content is what there is already, but for times and the order of conditions."""
        return bool(self.before) and next(changes(self.before, self.content), None) is None

    @property
    def creates(self) -> bool:
        return self.verb == "create"

    @property
    def deletes(self) -> bool:
        return self.verb in ("delete", "evict")


def effect_of(action: Write[Any]) -> Effect:
    """The effect of a write."""
    text = describe(action)
    match action:
        case Create(kind, namespace, body):
            return _created(kind, namespace, body, text)
        case DeleteCollection(kind, namespace):
            return Effect("delete all", kind.name, kind.resource, Key(namespace, ""), text=text, type=kind)
        case Update(target, body, subresource):
            content = normalised(body if body is not None else target)
            return _about("update", target, text, subresource=subresource, content=content)
        case UpdateStatus(target, status, annotations):
            content, before = (
                _status(status, annotations),
                _status(target.status, target.metadata.annotations),
            )
            if annotations is None:
                before = _status(target.status, None)
            return _about("update status", target, text, subresource="status", content=content, before=before)
        case Patch(target, body, _, subresource):
            fields = tuple(sorted(patched_fields(body)))
            return _about(
                "patch", target, text, subresource=subresource, fields=fields, content=normalised(body)
            )
        case ReadModifyWrite(target):
            return _about("update", target, text)
        case Delete(target) | Evict(target):
            terminating = isinstance(target, Object) and target.metadata.deletionTimestamp is not None
            verb = "evict" if isinstance(action, Evict) else "delete"
            return _about(verb, target, text, terminating=terminating)
    raise TypeError(f"{type(action).__name__} is no write of the API server")


def _status(status: object, annotations: Mapping[str, str] | None) -> str:
    return normalised({"status": status, "annotations": annotations})


def _about(verb: str, target: Any, text: str, **rest: Any) -> Effect:
    at: Address[Any] = address_of(target) if isinstance(target, Object | Address) else _document(target)
    return Effect(verb, at.kind.name, at.kind.resource, at.key, at.uid, text=text, type=at.kind, **rest)


def _document(target: Mapping[str, Any]) -> Address[Any]:
    raise TypeError(f"a plain document has no kind: {sorted(target)[:5]}")


def _created(kind: Kind[Any], namespace: str, body: object, text: str) -> Effect:
    meta = field_of(body, "metadata")
    name = field_of(meta, "name") or f"{field_of(meta, 'generateName') or ''}*"
    return Effect(
        "create",
        kind.name,
        kind.resource,
        Key(namespace, name),
        owner=controller_uid(meta),
        content=normalised(body),
        text=text,
        type=kind,
    )


def controller_uid(meta: Any) -> str:
    """The uid of the controller that some metadata names; empty without one."""
    for reference in field_of(meta, "ownerReferences") or ():
        if field_of(reference, "controller"):
            return str(field_of(reference, "uid") or "")
    return ""


def normalised(body: object) -> str:
    """A body as text, without the fields that no two managers write alike."""
    plain = msgspec.json.decode(_encoder.encode(body))
    return msgspec.json.encode(_without_volatile(plain), order="deterministic").decode()


def changes(before: str, after: str) -> Iterator[str]:
    """The leaves in which two normalised documents differ: ``status.replicas 2 -> 3``."""
    yield from _changed("", msgspec.json.decode(before), msgspec.json.decode(after))


def _changed(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) or isinstance(new, dict):
        old, new = _or_empty(old, {}), _or_empty(new, {})
    if isinstance(old, list) or isinstance(new, list):
        old, new = _or_empty(old, []), _or_empty(new, [])
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            yield from _changed(f"{path}.{name}" if path else name, old.get(name), new.get(name))
    elif isinstance(old, list) and isinstance(new, list):
        olds, news = _by_name(old), _by_name(new)
        for name in dict.fromkeys((*olds, *news)):
            yield from _changed(f"{path}[{name}]", olds.get(name), news.get(name))
    elif old != new:
        yield f"{path} {_brief(old)} -> {_brief(new)}"


def _or_empty(value: Any, empty: Any) -> Any:
    return empty if value is None else value


def _by_name(items: list[Any]) -> dict[str, Any]:
    """The items of a list by their type or name, where each has one of its own: the order of conditions is no difference."""
    named = {str(field_of(item, "type") or field_of(item, "name") or ""): item for item in items}
    if len(named) == len(items) and "" not in named:
        return named
    return {str(number): item for number, item in enumerate(items)}


def _brief(value: Any) -> str:
    return "none" if value is None else shorten(value if isinstance(value, str) else str(value))


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        document = cast("dict[str, Any]", value)
        return {
            name: _without_volatile(each)
            for name, each in document.items()
            if name not in VOLATILE and each not in (None, {}, [], "")
        }
    if isinstance(value, list):
        return [_without_volatile(each) for each in value]
    return value
