"""Compares and hashes pod templates, whose specs pass through controllers unchanged.

A template's spec is raw JSON if it was received over HTTP, and a full struct if it came from the in-process server.
The spec itself is never modified, so that unknown fields are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated_names import fnv32a, safe_encode
from steersman.api.kinds import PodTemplateSpec
from steersman.api.quantity import Quantity

POD_TEMPLATE_HASH = "pod-template-hash"
"""The label that a Deployment adds to its ReplicaSets, their selectors and their pods."""


class PodTemplateLike(Protocol):
    """A PodTemplateSpec, of the generated types or of the views."""

    @property
    def metadata(self) -> Any: ...
    @property
    def spec(self) -> Any: ...


T = TypeVar("T", bound=PodTemplateSpec)


def same(a: PodTemplateLike, b: PodTemplateLike, ignoring: tuple[str, ...] = (POD_TEMPLATE_HASH,)) -> bool:
    """Report whether two templates are semantically equal, apart from the labels ``ignoring``.

    Absent fields equal empty ones, and quantities are compared by amount.
    """
    return a is b or (_same_spec(a.spec, b.spec) and _same_metadata(a, b, ignoring))


def digest(template: PodTemplateLike, collision_count: int | None = None) -> str:
    """Return the template's hash, the suffix of a ReplicaSet's name. ``collision_count`` changes the hash.

    differs: upstream hashes a dump of Go structs, which cannot be reproduced outside Go. The same hash function over
    canonical JSON gives other values of the same form.
    """
    return _hash(_document(template), collision_count)


def equivalent(a: PodTemplateLike, b: PodTemplateLike) -> bool:
    """Report whether two templates are the `same` once defaults are ignored.

    A template stored in a ControllerRevision then still equals the one to which a newer server adds defaults.
    """
    return same(a, b, ()) or _decoded_without_defaults(_document(a)) == _decoded_without_defaults(
        _document(b)
    )


def with_labels(template: T, labels: Mapping[str, str]) -> T:
    """Return the template with labels added. The spec is shared, not copied."""
    metadata = template.metadata
    return msgspec.structs.replace(
        template,
        metadata=msgspec.structs.replace(metadata, labels={**metadata.labels, **labels}),
    )


_CACHED = 512
_CACHED_BYTES = 16 * 1024 * 1024
"""Entries of each cache, and the bytes of JSON in it: templates may be large."""

_hashes: BoundedCache[tuple[bytes, int | None], str] = BoundedCache(_CACHED, _CACHED_BYTES)


def _hash(document: bytes, collision_count: int | None) -> str:
    key = (document, collision_count)
    known = _hashes.get(key)
    if known is None:
        state = fnv32a(document)
        if collision_count is not None:
            state = fnv32a((collision_count & 0xFFFFFFFF).to_bytes(8, "little"), state)
        known = safe_encode(str(state))
        _hashes.put(key, known, len(document))
    return known


def _same_spec(a: Any, b: Any) -> bool:
    # Most equal templates are the same bytes or the same struct.
    return a is b or (type(a) is type(b) and a == b) or _canonical(a) == _canonical(b)


def _same_metadata(a: PodTemplateLike, b: PodTemplateLike, ignoring: tuple[str, ...]) -> bool:
    labels = _without(a.metadata.labels, ignoring)
    if labels != _without(b.metadata.labels, ignoring):
        return False
    # Compare exactly first; metadata that differs may still be semantically equal.
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
    """Return the spec as canonical JSON."""
    return _canonical_json(bytes(spec) if isinstance(spec, msgspec.Raw) else _encode(spec))


_canonical_specs: BoundedCache[bytes, bytes] = BoundedCache(_CACHED, _CACHED_BYTES)


def _canonical_json(spec: bytes) -> bytes:
    known = _canonical_specs.get(spec)
    if known is None:
        known = _encode(_plain(_decode(spec) or {}))
        _canonical_specs.put(spec, known, len(spec) + len(known))
    return known


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
"""Fields that are maps, or structs held by value in Go.

For these upstream cannot distinguish empty from absent. Elsewhere an empty object has a meaning: ``emptyDir: {}``.
"""

_AMOUNTS = frozenset(
    (
        *(("resources", "limits"), ("resources", "requests"), ("", "overhead")),
        *(("emptyDir", "sizeLimit"), ("resourceFieldRef", "divisor")),
    )
)
"""Fields (by parent and name) that are a quantity or a map of quantities."""


def _plain(value: Any, name: str = "", parent: str = "") -> Any:
    """Return a document without empty fields, and with quantities as amounts."""
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
            pass  # an invalid quantity equals only itself
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
"""The server's defaults, by the field or list that contains them."""


_without_defaults_cache: BoundedCache[bytes, Any] = BoundedCache(_CACHED, _CACHED_BYTES)


def _decoded_without_defaults(document: bytes) -> Any:
    known = _without_defaults_cache.get(document)
    if known is None:
        known = _without_defaults(_decode(document))
        _without_defaults_cache.put(document, known, len(document))
    return known


def _without_defaults(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_without_defaults(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    known = _DEFAULTS.get(name, {})
    rest = ((key, _without_defaults(child, key)) for key, child in value.items())
    return {key: child for key, child in rest if key not in known or child != known[key]}
