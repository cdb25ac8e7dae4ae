"""Field validation: what a body has that nobody knows, or has twice.

With ``fieldValidation=Strict`` such a body is refused, with ``Warn`` (the default) the answer warns of it,
with ``Ignore`` nobody looks. Texts are the real server's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.server import status_errors
from steersman.server.apply.schema import DEDUCED, List, Map, TypedSchema, deduce
from steersman.server.codec.json_yaml import count_written_keys

Directive: TypeAlias = Literal["Ignore", "Warn", "Strict"]

MAX_ERRORS = 100
"""How many faults are told of at most."""


def parse_directive(said: str) -> Directive:
    """What the ``fieldValidation`` of a request means; it has been checked to be one of them."""
    return "Strict" if said == "Strict" else "Ignore" if said == "Ignore" else "Warn"


# -- faults -----------------------------------------------------------------------------------


def strict_errors(raw: bytes, document: Any, schema: TypedSchema = DEDUCED) -> tuple[str, ...]:
    """What is wrong with the fields of a JSON body, in order: unknown ones, and those that come twice.

    ``document`` is the body decoded. Without a shape any field will do, once.
    """
    unknown: list[str] = []
    count = _append_unknown_fields(document, schema, "", unknown)
    # Few bodies have a key twice, so only those are read again.
    if raw.count(b":") != count and count_written_keys(raw) != count:
        return _all_strict_errors(raw, schema)
    return tuple(unknown[:MAX_ERRORS])


def unknown_fields(document: Any, schema: TypedSchema) -> tuple[str, ...]:
    """The unknown fields of a document, such as one that a patch has made."""
    found: list[str] = []
    _append_unknown_fields(document, schema, "", found)
    return tuple(found[:MAX_ERRORS])


def _append_unknown_fields(value: Any, schema: TypedSchema, path: str, found: list[str]) -> int:
    """Notes unknown fields; answers with how many keys there are in all."""
    count = 0
    if type(value) is dict:
        typed = schema.map
        count = len(value)
        for name, part in value.items():
            if typed is not None and not typed.allows(name):
                found.append(f'unknown field "{path}{name}"')
                # What is in it is skipped, but it has keys all the same.
                count += _append_unknown_fields(part, DEDUCED, "", []) if type(part) in (dict, list) else 0
            elif type(part) is dict:
                count += _append_unknown_fields(
                    part, DEDUCED if typed is None else typed.at(name), f"{path}{name}.", found
                )
            elif type(part) is list:
                count += _append_unknown_fields(
                    part, DEDUCED if typed is None else typed.at(name), f"{path}{name}", found
                )
    elif type(value) is list:
        item = DEDUCED if schema.list is None else schema.list.item
        for index, part in enumerate(value):
            if type(part) is dict:
                count += _append_unknown_fields(part, item, f"{path}[{index}].", found)
            elif type(part) is list:
                count += _append_unknown_fields(part, item, f"{path}[{index}]", found)
    return count


class _ObjectPairs(list[tuple[str, Any]]):
    """An object as it was written, with all its keys."""


def _all_strict_errors(raw: bytes, schema: TypedSchema) -> tuple[str, ...]:
    """All faults of a body in the order they are in it."""
    found: dict[str, None] = {}
    _collect_strict_errors(json.loads(raw, object_pairs_hook=_ObjectPairs), schema, "", found)
    return tuple(found)[:MAX_ERRORS]


def _collect_strict_errors(value: Any, schema: TypedSchema, path: str, found: dict[str, None]) -> None:
    if isinstance(value, _ObjectPairs):
        typed = deduce(schema, dict(value))
        typed = typed if isinstance(typed, Map) else DEDUCED.map
        assert typed is not None
        seen: set[str] = set()
        for name, part in value:
            if not typed.allows(name):
                found[f'unknown field "{path}{name}"'] = None
                continue
            if name in seen:
                found[f'duplicate field "{path}{name}"'] = None
            seen.add(name)
            _collect_strict_errors(
                part, typed.at(name), f"{path}{name}{'.' if isinstance(part, _ObjectPairs) else ''}", found
            )
    elif isinstance(value, list):
        listed = deduce(schema, value)
        item = listed.item if isinstance(listed, List) else DEDUCED
        for index, part in enumerate(value):
            _collect_strict_errors(
                part, item, f"{path}[{index}]{'.' if isinstance(part, _ObjectPairs) else ''}", found
            )


def yaml_strict_errors(doubled: Sequence[str]) -> tuple[str, ...]:
    """The one fault of all keys that a YAML body has twice."""
    return ("\n  ".join(("yaml: unmarshal errors:", *doubled)),) if doubled else ()


# -- what becomes of them ---------------------------------------------------------------------


def warning_texts(found: Sequence[str]) -> tuple[str, ...]:
    """What an answer warns of: a text for each ``Warning`` header, without code and quotes."""
    told: dict[str, None] = {}
    for fault in found:
        head, line, rest = fault.partition("yaml: unmarshal errors:\n")
        if line and head in ("", "error converting YAML to JSON: "):
            told.update(dict.fromkeys(each.strip() for each in rest.split("\n")))
        else:
            told[fault] = None
    return tuple(told)


def strict_decoding_error(found: Sequence[str]) -> str:
    """All faults in one sentence."""
    return f"strict decoding error: {', '.join(found)}"


def strict_body_error(kind: str, version: str, found: Sequence[str]) -> ApiError:
    """The refusal of a body to create or replace an object with."""
    return undecodable_body(kind, version, strict_decoding_error(found))


def undecodable_body(kind: str, version: str, why: str) -> ApiError:
    """The refusal of a body that cannot be read as the object it should be."""
    return status_errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def unrecognized_body(kind: str, raw: bytes, why: str) -> ApiError:
    """The refusal of a body that is no document."""
    return status_errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(raw)})"
    )


def _summary(raw: bytes, most: int = 30) -> str:
    if not raw:
        return "<empty>"
    shown = raw[:most].decode("utf-8", "replace") if raw[:1] == b"{" else raw[:most].hex()
    return f"{shown} ..." if len(raw) > most else shown


def invalid_patch(shown: str, why: str) -> ApiError:
    """The refusal of a patch that makes something which is no such object; ``shown`` is what it makes."""
    return status_errors.invalid("", "", "", [status_errors.field_invalid("patch", shown, why)])


def strict_apply_error(doubled: Sequence[str]) -> ApiError:
    """The refusal of an applied document that has keys twice."""
    return status_errors.bad_request(f"error strict decoding YAML: {apply_strict_errors(doubled)[0]}")


def apply_strict_errors(doubled: Sequence[str]) -> tuple[str, ...]:
    """The one fault of all keys that an applied document has twice."""
    return tuple(f"error converting YAML to JSON: {fault}" for fault in yaml_strict_errors(doubled))


# -- JSON patches -----------------------------------------------------------------------------


def _any_schema() -> TypedSchema:
    return DEDUCED


_OPERATIONS = TypedSchema(
    list=List(
        lambda: TypedSchema(map=Map(dict.fromkeys(("op", "path", "from", "value"), _any_schema))), atomic=True
    )
)


def json_patch_strict_errors(raw: bytes, operations: Any) -> tuple[str, ...]:
    """What is wrong with the operations of a JSON patch."""
    return tuple(f"json patch {fault}" for fault in strict_errors(raw, operations, _OPERATIONS))


# -- other kinds ------------------------------------------------------------------------------


def kind_mismatch(group: str, kind: str, version: str, named: str) -> str:
    """Why a document of another kind or version is none of this; empty where it is of another version."""
    if not _is_registered(version, named):
        return f'no kind "{named}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    if named == kind:
        return ""
    own = (group or "core").partition(".")[0]
    return f"converting ({version.rpartition('/')[2]}.{named}) to ({own}.{kind}): unknown conversion"


def _is_registered(api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    if kind in _REMOVED_VERSIONS.get(api_version, ()):
        return True
    for each in (kind, kind.removesuffix("List")):
        try:
            load(group, version, each)
        except LookupError:
            continue
        return True
    return False


_WORKLOADS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "ControllerRevision", "Scale")
_REMOVED_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "apps/v1beta1": ("Deployment", "StatefulSet", "ControllerRevision", "Scale", "DeploymentRollback"),
    "apps/v1beta2": _WORKLOADS,
    "autoscaling/v2beta1": ("HorizontalPodAutoscaler",),
    "autoscaling/v2beta2": ("HorizontalPodAutoscaler",),
    "batch/v1beta1": ("CronJob",),
    "certificates.k8s.io/v1beta1": ("CertificateSigningRequest",),
    "coordination.k8s.io/v1beta1": ("Lease",),
    "discovery.k8s.io/v1beta1": ("EndpointSlice",),
    "events.k8s.io/v1beta1": ("Event",),
    "extensions/v1beta1": ("Deployment", "DaemonSet", "ReplicaSet", "Ingress", "NetworkPolicy", "Scale"),
    "networking.k8s.io/v1beta1": ("Ingress", "IngressClass"),
    "policy/v1beta1": ("PodDisruptionBudget", "Eviction"),
    "rbac.authorization.k8s.io/v1beta1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "scheduling.k8s.io/v1beta1": ("PriorityClass",),
    "storage.k8s.io/v1beta1": ("StorageClass", "VolumeAttachment", "CSIDriver", "CSINode"),
}
"""Versions nobody serves any more, which upstream can still read."""
