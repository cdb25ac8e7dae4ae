"""Field validation: unknown and duplicate fields of request bodies.

With ``fieldValidation=Strict`` such a body is refused. With ``Warn``, the default, the response has a warning
for each. With ``Ignore`` they are not looked for. The texts are upstream's.
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
"""The number of errors that are reported at most."""


def parse_directive(value: str) -> Directive:
    """The directive of a request's ``fieldValidation`` parameter, which has been validated before."""
    return "Strict" if value == "Strict" else "Ignore" if value == "Ignore" else "Warn"


# -- strict errors ----------------------------------------------------------------------------


def strict_errors(raw: bytes, document: Any, schema: TypedSchema = DEDUCED) -> tuple[str, ...]:
    """The unknown and duplicate fields of a JSON body, in order.

    ``document`` is the decoded body. Without a schema every field is known.
    """
    unknown: list[str] = []
    count = _append_unknown_fields(document, schema, "", unknown)
    # Few bodies have duplicate keys, so only those are parsed again.
    if raw.count(b":") != count and count_written_keys(raw) != count:
        return _all_strict_errors(raw, schema)
    return tuple(unknown[:MAX_ERRORS])


def unknown_fields(document: Any, schema: TypedSchema) -> tuple[str, ...]:
    """The unknown fields of a document, such as the result of a patch."""
    errors: list[str] = []
    _append_unknown_fields(document, schema, "", errors)
    return tuple(errors[:MAX_ERRORS])


def unknown_field_errors(paths: Sequence[str]) -> tuple[str, ...]:
    """The strict errors for the paths of unknown fields."""
    return tuple(f'unknown field "{path}"' for path in paths[:MAX_ERRORS])


def _append_unknown_fields(value: Any, schema: TypedSchema, path: str, errors: list[str]) -> int:
    """Appends an error for each unknown field; returns the number of keys in the document."""
    count = 0
    if type(value) is dict:
        map_schema = schema.map
        count = len(value)
        for name, part in value.items():
            if map_schema is not None and not map_schema.allows(name):
                errors.append(f'unknown field "{path}{name}"')
                # What is in it is skipped, but it has keys all the same.
                count += _append_unknown_fields(part, DEDUCED, "", []) if type(part) in (dict, list) else 0
            elif type(part) is dict:
                count += _append_unknown_fields(
                    part, DEDUCED if map_schema is None else map_schema.at(name), f"{path}{name}.", errors
                )
            elif type(part) is list:
                count += _append_unknown_fields(
                    part, DEDUCED if map_schema is None else map_schema.at(name), f"{path}{name}", errors
                )
    elif type(value) is list:
        item = DEDUCED if schema.list is None else schema.list.item
        for index, part in enumerate(value):
            if type(part) is dict:
                count += _append_unknown_fields(part, item, f"{path}[{index}].", errors)
            elif type(part) is list:
                count += _append_unknown_fields(part, item, f"{path}[{index}]", errors)
    return count


class _ObjectPairs(list[tuple[str, Any]]):
    """A JSON object as pairs, duplicate keys included."""


def _all_strict_errors(raw: bytes, schema: TypedSchema) -> tuple[str, ...]:
    """The strict errors of a body, in the order of the fields."""
    errors: dict[str, None] = {}
    # Bodies with invalid UTF-8 are accepted, as Go accepts them.
    text = raw.decode("utf-8", "replace")
    _collect_strict_errors(json.loads(text, object_pairs_hook=_ObjectPairs), schema, "", errors)
    return tuple(errors)[:MAX_ERRORS]


def _collect_strict_errors(value: Any, schema: TypedSchema, path: str, errors: dict[str, None]) -> None:
    if isinstance(value, _ObjectPairs):
        map_schema = deduce(schema, dict(value))
        map_schema = map_schema if isinstance(map_schema, Map) else DEDUCED.map
        assert map_schema is not None
        seen: set[str] = set()
        for name, part in value:
            if not map_schema.allows(name):
                errors[f'unknown field "{path}{name}"'] = None
                continue
            if name in seen:
                errors[f'duplicate field "{path}{name}"'] = None
            seen.add(name)
            _collect_strict_errors(
                part,
                map_schema.at(name),
                f"{path}{name}{'.' if isinstance(part, _ObjectPairs) else ''}",
                errors,
            )
    elif isinstance(value, list):
        list_schema = deduce(schema, value)
        item = list_schema.item if isinstance(list_schema, List) else DEDUCED
        for index, part in enumerate(value):
            _collect_strict_errors(
                part, item, f"{path}[{index}]{'.' if isinstance(part, _ObjectPairs) else ''}", errors
            )


def yaml_strict_errors(duplicate_keys: Sequence[str]) -> tuple[str, ...]:
    """The strict error for the duplicate keys of a YAML body, if there are any."""
    return ("\n  ".join(("yaml: unmarshal errors:", *duplicate_keys)),) if duplicate_keys else ()


# -- warnings and refusals --------------------------------------------------------------------


def warning_texts(errors: Sequence[str]) -> tuple[str, ...]:
    """The texts of the ``Warning`` headers for strict errors, without code and quotes."""
    texts: dict[str, None] = {}
    for error in errors:
        head, line, rest = error.partition("yaml: unmarshal errors:\n")
        if line and head in ("", "error converting YAML to JSON: "):
            texts.update(dict.fromkeys(name.strip() for name in rest.split("\n")))
        else:
            texts[error] = None
    return tuple(texts)


def strict_decoding_error(errors: Sequence[str]) -> str:
    """All strict errors in one message."""
    return f"strict decoding error: {', '.join(errors)}"


def strict_body_error(kind: str, version: str, errors: Sequence[str]) -> ApiError:
    """The refusal of a create or update body with strict errors."""
    return undecodable_body(kind, version, strict_decoding_error(errors))


def undecodable_body(kind: str, version: str, detail: str, *, wanted: str = "") -> ApiError:
    """The refusal of a body that cannot be decoded as its kind, or as the ``wanted`` one."""
    return status_errors.bad_request(
        f'{kind} in version "{version}" cannot be handled as a {wanted or kind}: {detail}'
    )


def unrecognized_body(kind: str, raw: bytes, detail: str) -> ApiError:
    """The refusal of a body that is not a JSON, YAML or protobuf document."""
    return status_errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {detail} ({_summary(raw)})"
    )


def _summary(raw: bytes, limit: int = 30) -> str:
    if not raw:
        return "<empty>"
    patched = raw[:limit].decode("utf-8", "replace") if raw[:1] == b"{" else raw[:limit].hex()
    return f"{patched} ..." if len(raw) > limit else patched


def invalid_patch(patched: str, detail: str) -> ApiError:
    """The refusal of a patch whose result, ``patched``, cannot be decoded."""
    return status_errors.invalid("", "", "", [status_errors.field_invalid("patch", patched, detail)])


def strict_apply_error(duplicate_keys: Sequence[str]) -> ApiError:
    """The refusal of an apply body with duplicate keys."""
    return status_errors.bad_request(f"error strict decoding YAML: {apply_strict_errors(duplicate_keys)[0]}")


def apply_strict_errors(duplicate_keys: Sequence[str]) -> tuple[str, ...]:
    """The strict error for the duplicate keys of an apply body, if there are any."""
    return tuple(f"error converting YAML to JSON: {error}" for error in yaml_strict_errors(duplicate_keys))


# -- JSON patches -----------------------------------------------------------------------------


def _any_schema() -> TypedSchema:
    return DEDUCED


_OPERATIONS = TypedSchema(
    list=List(
        lambda: TypedSchema(map=Map(dict.fromkeys(("op", "path", "from", "value"), _any_schema))), atomic=True
    )
)


def json_patch_strict_errors(raw: bytes, operations: Any) -> tuple[str, ...]:
    """The strict errors of the operations of a JSON patch."""
    return tuple(f"json patch {error}" for error in strict_errors(raw, operations, _OPERATIONS))


# -- other kinds ------------------------------------------------------------------------------


def kind_mismatch(group: str, kind: str, version: str, other_kind: str) -> str:
    """The error for a document of another kind; empty where only its version differs."""
    if not _is_registered(version, other_kind):
        return f'no kind "{other_kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    if other_kind == kind:
        return ""
    go_package = (group or "core").partition(".")[0]
    return (
        f"converting ({version.rpartition('/')[2]}.{other_kind}) to ({go_package}.{kind}): unknown conversion"
    )


def _is_registered(api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    if kind in _REMOVED_VERSIONS.get(api_version, ()):
        return True
    for name in (kind, kind.removesuffix("List")):
        try:
            load(group, version, name)
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
"""Versions that are no longer served and that upstream can still decode."""
