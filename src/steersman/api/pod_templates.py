"""Pod templates, which pass through controllers unopened: are two the same, and what is its hash.

A template's spec is raw JSON if it came over the wire and a full struct if it came from the
in-process server. Nothing here changes a spec, so fields this program does not know survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import msgspec

from steersman.api.generated_names import fnv32a, safe_encode
from steersman.api.kinds import PodTemplateSpec
from steersman.api.quantity import Quantity

POD_TEMPLATE_HASH = "pod-template-hash"
"""The label a Deployment puts on each of its ReplicaSets, their selectors and their pods."""


class PodTemplateLike(Protocol):
    """A ``PodTemplateSpec`` of any of our types."""

    @property
    def metadata(self) -> Any: ...
    @property
    def spec(self) -> Any: ...


T = TypeVar("T", bound=PodTemplateSpec)


def same(a: PodTemplateLike, b: PodTemplateLike, ignoring: tuple[str, ...] = (POD_TEMPLATE_HASH,)) -> bool:
    """Whether two templates mean the same, apart from the labels ignored.

    What is absent equals what is empty, and quantities are equal if their amounts are.
    """
    return a is b or (_same_spec(a.spec, b.spec) and _same_metadata(a, b, ignoring))


def digest(template: PodTemplateLike, collision_count: int | None = None) -> str:
    """The template's hash, as it ends a ReplicaSet's name. Another count gives another hash.

    differs: upstream hashes a dump of Go structs, which nobody else can write. The same function
    over canonical JSON gives other values of the same shape.
    """
    return _hash(_document(template), collision_count)


def equivalent(a: PodTemplateLike, b: PodTemplateLike) -> bool:
    """Whether pods of two templates would be alike: `same`, and what is left unsaid equals its default.

    So a template kept long ago is still the one that a newer server shows with more fields filled in.
    """
    return same(a, b, ()) or _unfilled(_document(a)) == _unfilled(_document(b))


def with_labels(template: T, labels: Mapping[str, str]) -> T:
    """The template with these labels added; its spec is shared, not copied."""
    metadata = template.metadata
    return msgspec.structs.replace(
        template,
        metadata=msgspec.structs.replace(metadata, labels={**metadata.labels, **labels}),
    )


@lru_cache(maxsize=512)
def _hash(document: bytes, collision_count: int | None) -> str:
    state = fnv32a(document)
    if collision_count is not None:
        state = fnv32a((collision_count & 0xFFFFFFFF).to_bytes(8, "little"), state)
    return safe_encode(str(state))


def _same_spec(a: Any, b: Any) -> bool:
    # Most templates that are the same are the same bytes, or the very same struct.
    return a is b or (type(a) is type(b) and a == b) or _canonical(a) == _canonical(b)


def _same_metadata(a: PodTemplateLike, b: PodTemplateLike, ignoring: tuple[str, ...]) -> bool:
    labels = _without(a.metadata.labels, ignoring)
    if labels != _without(b.metadata.labels, ignoring):
        return False
    # The labels apart, most have the same metadata to the letter; where not, it may still mean the same.
    if a.metadata == msgspec.structs.replace(b.metadata, labels=a.metadata.labels):
        return True
    return _metadata(a, but="labels") == _metadata(b, but="labels")


def _without(labels: Mapping[str, str], ignoring: tuple[str, ...]) -> Mapping[str, str]:
    for label in ignoring:
        if label in labels:
            rest = dict(labels)
            for ignored in ignoring:
                rest.pop(ignored, None)
            return rest
    return labels


# -- documents --------------------------------------------------------------------------------

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def _document(template: PodTemplateLike) -> bytes:
    return b'{"metadata":' + _encode(_metadata(template)) + b',"spec":' + _canonical(template.spec) + b"}"


def _metadata(template: PodTemplateLike, but: str = "") -> dict[str, Any]:
    document = _plain(_decode(_encode(template.metadata)))
    return {key: value for key, value in document.items() if key != but}


def _canonical(spec: Any) -> bytes:
    """The spec as JSON in one way of writing, whichever form it has."""
    return _rewritten(bytes(spec) if isinstance(spec, msgspec.Raw) else _encode(spec))


@lru_cache(maxsize=512)
def _rewritten(spec: bytes) -> bytes:
    return _encode(_plain(_decode(spec) or {}))


_BY_VALUE = frozenset(
    (
        *(
            "annotations",
            "labels",
            "limits",
            "matchLabels",
            "nodeSelector",
            "options",
            "overhead",
            "requests",
        ),
        *("metadata", "resources", "volumeAttributes"),
    )
)
"""Fields that are maps, or structs held by value. Upstream cannot tell such a field empty from absent;
elsewhere an empty object is a statement: ``emptyDir: {}``, ``namespaceSelector: {}``."""

_AMOUNTS = frozenset(
    (
        *(("resources", "limits"), ("resources", "requests"), ("", "overhead")),
        *(("emptyDir", "sizeLimit"), ("resourceFieldRef", "divisor")),
    )
)
"""Where quantities stand: a field, by its parent and its name, that is one or a map of them."""


def _plain(value: Any, name: str = "", parent: str = "") -> Any:
    """A document without what is empty, and with quantities as their amounts."""
    if (parent, name) in _AMOUNTS:
        return _amounts(value)
    if isinstance(value, dict):
        fields = ((key, _plain(child, key, name)) for key, child in value.items())
        return {
            key: child
            for key, child in fields
            if child is not None and child != [] and not (child == {} and key in _BY_VALUE)
        }
    if isinstance(value, list):
        return [_plain(item, "", name) for item in value]
    return value


def _amounts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _amounts(amount) for key, amount in value.items() if amount is not None}
    if isinstance(value, str | int | float):
        try:
            return f"{Quantity.parse(value).nanos}n"
        except ValueError:
            pass  # not ours to refuse: it is only equal to itself
    return value


# -- defaults ---------------------------------------------------------------------------------

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILES = {"defaultMode": 0o644}

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "spec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "volumeMode": "Filesystem",
    },
    **dict.fromkeys(("containers", "initContainers", "ephemeralContainers"), _CONTAINER),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBE),
    **dict.fromkeys(("secret", "configMap", "downwardAPI", "projected"), _FILES),
    "ports": {"protocol": "TCP"},
    "httpGet": {"path": "/", "scheme": "HTTP"},
    "grpc": {"service": ""},
    "fieldRef": {"apiVersion": "v1"},
    "hostPath": {"type": ""},
    "serviceAccountToken": {"expirationSeconds": 3600},
}
"""What the server fills in where a template is silent, by the field that holds it or the list it is in."""


@lru_cache(maxsize=512)
def _unfilled(document: bytes) -> Any:
    return _without_defaults(_decode(document))


def _without_defaults(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_without_defaults(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    known = _DEFAULTS.get(name, {})
    rest = ((key, _without_defaults(child, key)) for key, child in value.items())
    return {key: child for key, child in rest if key not in known or child != known[key]}
