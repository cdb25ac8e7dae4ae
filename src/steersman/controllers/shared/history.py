"""ControllerRevision history: the pod templates that StatefulSets and DaemonSets have had.

A revision's data is a patch that restores a template. It has the very bytes kube-controller-manager writes, so
either manager finds its own revisions in the other's, and no pod is rolled because the manager changed. Revisions
are compared by that data alone.
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
from steersman.api.scheme import encode_hook, kind_of
from steersman.intent.actions import Create, Patch, Read
from steersman.intent.verdict import InvalidSpec

REVISION = "controller-revision-hash"
"""The label on pods with the name of their revision (StatefulSet) or its hash (DaemonSet)."""

HASH = "controller.kubernetes.io/hash"
"""The label on a StatefulSet's revisions with their hash."""

MAX_NAME_PREFIX = 223
"""The characters of an owner's name that begin the names of its revisions, which leaves room for a hash."""

# -- data -------------------------------------------------------------------------------------


def data_of(template: pod_templates.PodTemplateLike) -> Opaque:
    """A revision's data: the patch that replaces any template by this one."""
    metadata, spec = _decode(_encode(template.metadata)), _decode(_raw(template.spec))
    content = {"$patch": "replace", "metadata": metadata, "spec": spec}
    return msgspec.Raw(_as_go(_encode({"spec": {"template": content}})))


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The pod template in a revision's data. Raises `InvalidSpec` where there is none."""
    try:
        return _template(_raw(revision.data))
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidSpec(f"ControllerRevision {revision.key} has no pod template: {error}") from None


def same(a: Opaque, b: Opaque) -> bool:
    """Whether the data of two revisions is equal, whatever the order of its fields."""
    return _canonical(_raw(a)) == _canonical(_raw(b))


def equivalent(template: pod_templates.PodTemplateLike, revision: ControllerRevision) -> bool:
    """Whether a template equals the revision's, where a field that is left out equals its default."""
    try:
        return pod_templates.equivalent(template, template_of(revision))
    except InvalidSpec:
        return False


# -- names and numbers ------------------------------------------------------------------------


def digest(data: Opaque, collisions: int | None = None) -> str:
    """The hash that ends a revision's name. Another collision count gives another hash."""
    suffix = b"" if collisions is None else str(collisions).encode()
    return safe_encode(str(fnv32(_canonical(_raw(data)) + suffix)))


def name_of(owner: Object, hash_: str) -> str:
    """The name of an owner's revision with this hash."""
    return f"{owner.metadata.name[:MAX_NAME_PREFIX]}-{hash_}"


def new_revision(
    owner: Object, template: pod_templates.PodTemplateLike, number: int, *, label: str, hash_: str
) -> ControllerRevision:
    """A new revision for a template, with the template's labels and its hash under ``label``."""
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


def sort_revisions(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions by number, lowest first; of two with the same number, the older first."""
    return sorted(revisions, key=_sort_key)


def next_revision(revisions: Iterable[ControllerRevision]) -> int:
    """The number of the next revision."""
    return max((revision.revision for revision in revisions), default=0) + 1


def find_equal(data: Opaque, revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions with exactly this data, in the order given."""
    wanted = _canonical(_raw(data))
    return [revision for revision in revisions if _canonical(_raw(revision.data)) == wanted]


def beyond_limit(
    revisions: Sequence[ControllerRevision], live: Container[str], limit: int | None
) -> list[ControllerRevision]:
    """The oldest revisions beyond ``revisionHistoryLimit``, not counting those whose names are ``live``.

    Without a limit, or with one below zero, all are kept.
    """
    unused = [revision for revision in revisions if revision.metadata.name not in live]
    return [] if limit is None or limit < 0 else unused[: max(len(unused) - limit, 0)]


# -- writes -----------------------------------------------------------------------------------


async def create_revision(
    owner: Object, revision: ControllerRevision, collisions: int
) -> tuple[ControllerRevision, int]:
    """Creates a StatefulSet's revision; returns it and the new collision count.

    An existing revision of that name with equal data is used as it is; otherwise another name is tried. The label
    keeps the first hash, as upstream.
    """
    while True:
        name = name_of(owner, digest(revision.data, collisions))
        metadata = msgspec.structs.replace(revision.metadata, name=name)
        named = msgspec.structs.replace(revision, metadata=metadata)
        try:
            return await Create(CONTROLLERREVISIONS, metadata.namespace, named), collisions
        except AlreadyExists:
            existing = await Read(named)
            if same(existing.data, named.data):
                return existing, collisions
            collisions += 1


def renumber(revision: ControllerRevision, number: int) -> Patch[ControllerRevision]:
    """The patch that gives a revision another number, when its template is the newest again."""
    return Patch(revision, {"metadata": {"uid": revision.metadata.uid}, "revision": number})


# -- encoding ---------------------------------------------------------------------------------

_encode = msgspec.json.Encoder(enc_hook=encode_hook, order="sorted").encode
_decode = msgspec.json.Decoder().decode


class _Spec(msgspec.Struct):
    template: PodTemplateSpec


class _Data(msgspec.Struct):
    spec: _Spec


_decode_data = msgspec.json.Decoder(_Data).decode


def _raw(value: Any) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else _encode(value)


def _sort_key(revision: ControllerRevision) -> tuple[Any, ...]:
    created = revision.metadata.creationTimestamp
    return (revision.revision, created is not None, created, revision.metadata.name)


@lru_cache(maxsize=512)
def _template(raw: bytes) -> PodTemplateSpec:
    found = _decode_data(raw).spec.template
    # A copy: the decoded spec would keep the whole document in memory.
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
    """Sorted JSON as Go's encoder writes it after decoding into maps: numbers are float64, and characters
    special to HTML are escaped."""
    if _HUGE.search(document):
        document = _encode(_floated(_decode(document)))
    for character, escape in _ESCAPES.items():
        # Outside of strings JSON has none of these characters.
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
