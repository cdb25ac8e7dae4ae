"""History: the ControllerRevisions in which StatefulSets and DaemonSets keep their templates.

A revision's data is a patch that puts a template back. It is written to the byte as
kube-controller-manager writes it, so that either manager finds its own revisions in the other's, and
pods are not rolled because the managers changed. Revisions are told apart by that content alone.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from steersman.api import pod_templates
from steersman.api.errors import AlreadyExists
from steersman.api.generated_names import fnv32, safe_encode
from steersman.api.kinds import Object, ObjectMeta, Opaque, PodTemplateSpec
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.api.meta import owner_reference
from steersman.api.scheme import kind_of, unusual
from steersman.intent.actions import Create, Patch, ReadLive
from steersman.intent.verdict import Nonsense

REVISION = "controller-revision-hash"
"""The label on pods that says which revision they are of: its name, or its hash."""

HASH = "controller.kubernetes.io/hash"
"""The label on a StatefulSet's revisions that says their hash."""

LONGEST_PREFIX = 223
"""How much of an owner's name begins the names of its revisions: there is room for a hash."""

# -- what a revision holds --------------------------------------------------------------------


def data_of(template: pod_templates.Template) -> Opaque:
    """The patch that puts this template in the place of any other."""
    metadata, spec = _decode(_encode(template.metadata)), _decode(_raw(template.spec))
    content = {"$patch": "replace", "metadata": metadata, "spec": spec}
    return msgspec.Raw(_as_go(_encode({"spec": {"template": content}})))


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision would put back. Raises `Nonsense` where it holds none."""
    try:
        return _template(_raw(revision.data))
    except (msgspec.DecodeError, ValueError) as error:
        raise Nonsense(f"ControllerRevision {revision.key} holds no pod template: {error}") from None


def same(a: Opaque, b: Opaque) -> bool:
    """Whether the data of two revisions is the same, however it is written."""
    return _canonical(_raw(a)) == _canonical(_raw(b))


def equivalent(template: pod_templates.Template, revision: ControllerRevision) -> bool:
    """Whether pods of the template would be those of the revision: what is unsaid equals its default."""
    try:
        return pod_templates.equivalent(template, template_of(revision))
    except Nonsense:
        return False


# -- which revision it is ---------------------------------------------------------------------


def digest(data: Opaque, collisions: int | None = None) -> str:
    """The hash that ends a revision's name. Another number of collisions gives another hash."""
    end = b"" if collisions is None else str(collisions).encode()
    return safe_encode(str(fnv32(_canonical(_raw(data)) + end)))


def name_of(owner: Object, hash_: str) -> str:
    return f"{owner.metadata.name[:LONGEST_PREFIX]}-{hash_}"


def new_revision(
    owner: Object, template: pod_templates.Template, number: int, *, label: str, hash_: str
) -> ControllerRevision:
    """The revision that keeps a template, with the template's labels and its hash under ``label``."""
    return ControllerRevision(
        metadata=ObjectMeta(
            name=name_of(owner, hash_),
            namespace=owner.metadata.namespace,
            labels={**template.metadata.labels, label: hash_},
            annotations=owner.metadata.annotations,
            ownerReferences=(owner_reference(owner, kind_of(owner)),),
        ),
        data=data_of(template),
        revision=number,
    )


def ordered(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions, lowest number first; of two with the same number, the elder."""
    return sorted(revisions, key=_age)


def following(revisions: Iterable[ControllerRevision]) -> int:
    """The number of the next revision."""
    return max((revision.revision for revision in revisions), default=0) + 1


def equal_to(data: Opaque, revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions that hold just this data, in the order given."""
    wanted = _canonical(_raw(data))
    return [revision for revision in revisions if _canonical(_raw(revision.data)) == wanted]


def outdated(
    revisions: Sequence[ControllerRevision], live: Container[str], limit: int | None
) -> list[ControllerRevision]:
    """The revisions past the history to keep, of those whose names nobody needs; all in order.

    Without a limit, or with one below zero, all are kept.
    """
    idle = [revision for revision in revisions if revision.metadata.name not in live]
    return [] if limit is None or limit < 0 else idle[: max(len(idle) - limit, 0)]


# -- writes -----------------------------------------------------------------------------------


async def keep(
    owner: Object, revision: ControllerRevision, collisions: int
) -> tuple[ControllerRevision, int]:
    """Create a StatefulSet's revision; answers it, and how many collisions there were by now.

    Where its name is taken by what it is to hold, that is it; else another name is tried. The label
    keeps the first hash, as it does upstream.
    """
    while True:
        name = name_of(owner, digest(revision.data, collisions))
        metadata = msgspec.structs.replace(revision.metadata, name=name)
        named = msgspec.structs.replace(revision, metadata=metadata)
        try:
            return await Create(CONTROLLERREVISIONS, metadata.namespace, named), collisions
        except AlreadyExists:
            there = await ReadLive(named)
            if same(there.data, named.data):
                return there, collisions
            collisions += 1


def renumber(revision: ControllerRevision, number: int) -> Patch[ControllerRevision]:
    """Give a revision another number: it is the newest again."""
    return Patch(revision, {"metadata": {"uid": revision.metadata.uid}, "revision": number})


# -- bytes ------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder(enc_hook=unusual, order="sorted").encode
_decode = msgspec.json.Decoder().decode


class _Spec(msgspec.Struct):
    template: PodTemplateSpec


class _Data(msgspec.Struct):
    spec: _Spec


_decode_data = msgspec.json.Decoder(_Data).decode


def _raw(value: Any) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else _encode(value)


def _age(revision: ControllerRevision) -> tuple[Any, ...]:
    born = revision.metadata.creationTimestamp
    return (revision.revision, born is not None, born, revision.metadata.name)


@lru_cache(maxsize=512)
def _template(raw: bytes) -> PodTemplateSpec:
    found = _decode_data(raw).spec.template
    # As decoded, the spec would keep the whole document it came in.
    return msgspec.structs.replace(found, spec=msgspec.Raw(bytes(found.spec)))


@lru_cache(maxsize=512)
def _canonical(raw: bytes) -> bytes:
    return _as_go(_encode(_decode(raw)))


_HUGE = re.compile(rb"[0-9]{16}")
_ESCAPES = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def _as_go(document: bytes) -> bytes:
    """Sorted JSON as Go's encoder writes it after reading it into maps: numbers are floats, and what HTML
    would take for its own is escaped."""
    if _HUGE.search(document):
        document = _encode(_floated(_decode(document)))
    for character, escape in _ESCAPES.items():
        # These stand nowhere but in strings.
        document = document.replace(character, escape)
    return document


def _floated(value: Any) -> Any:
    match value:
        case dict():
            return {key: _floated(child) for key, child in value.items()}
        case list():
            return [_floated(item) for item in value]
        case int() if abs(value) > 2**53:
            return int(Decimal(repr(float(value))))
        case _:
            return value
