"""Validation of ConfigMaps, Secrets, ServiceAccounts and Namespaces."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.kinds.config import ACCOUNT_NAME
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_MAX_BYTES = 1024 * 1024
_IMMUTABLE_DATA = "field is immutable when `immutable` is set"


# -- ConfigMaps -------------------------------------------------------------------------------


def validate_config_map(errors: FieldErrors, obj: v1.ConfigMap) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_config_map_data(errors, obj)


def validate_config_map_update(errors: FieldErrors, new: v1.ConfigMap, old: v1.ConfigMap) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_immutable_data(errors, new, old, ("data", "binaryData"))
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    _validate_config_map_data(errors, new)


def _validate_config_map_data(errors: FieldErrors, obj: v1.ConfigMap) -> None:
    size = 0
    for key, value in obj.data.items():
        if messages := names.config_map_key(key):
            errors.invalid_each(f"data[{key}]", key, messages)
        if key in obj.binaryData:
            errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in obj.binaryData.items():
        errors.invalid_each(f"binaryData[{key}]", key, names.config_map_key(key))
        size += decoded_size(value)
    if size > _MAX_BYTES:
        # Upstream writes the root of an object as "[]".
        errors.too_long("[]", _MAX_BYTES)


def decoded_size(value: str) -> int:
    """The size in bytes of base64 data once decoded, without decoding it."""
    return len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")


def _validate_immutable_data(
    errors: FieldErrors, new: v1.ConfigMap | v1.Secret, old: v1.ConfigMap | v1.Secret, fields: tuple[str, ...]
) -> None:
    """An immutable object keeps its data and stays immutable."""
    if not old.immutable:
        return
    if not new.immutable:
        errors.forbidden("immutable", _IMMUTABLE_DATA)
    for name in fields:
        if getattr(new, name) != getattr(old, name):
            errors.forbidden(name, _IMMUTABLE_DATA)


# -- Secrets ----------------------------------------------------------------------------------

_REQUIRED_KEYS = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def validate_secret(errors: FieldErrors, obj: v1.Secret) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_secret_data(errors, obj)


def validate_secret_update(errors: FieldErrors, new: v1.Secret, old: v1.Secret) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.immutable("type", new.type, old.type)
    _validate_immutable_data(errors, new, old, ("data",))
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    _validate_secret_data(errors, new)


def _validate_secret_data(errors: FieldErrors, obj: v1.Secret) -> None:
    data, type_ = obj.data, obj.type
    for key in data:
        errors.invalid_each(f"data[{key}]", key, names.config_map_key(key))
    if sum(map(decoded_size, data.values())) > _MAX_BYTES:
        errors.too_long("data", _MAX_BYTES)
    if type_ == "kubernetes.io/service-account-token":
        if not obj.metadata.annotations.get(ACCOUNT_NAME):
            errors.required(f"metadata.annotations[{ACCOUNT_NAME}]")
    elif type_ in _DOCKER_KEYS:
        _validate_docker_config(errors, data.get(_DOCKER_KEYS[type_]), _DOCKER_KEYS[type_])
    elif type_ == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors.required("data[username]")
            errors.required("data[password]")
    elif type_ in _REQUIRED_KEYS:
        for key in _REQUIRED_KEYS[type_]:
            if key not in data or (key == "ssh-privatekey" and not data[key]):
                errors.required(f"data[{key}]")


def _validate_docker_config(errors: FieldErrors, content: str | None, key: str) -> None:
    if content is None:
        errors.required(f"data[{key}]")
        return
    raw = b64decode(content)
    try:
        msgspec.json.decode(raw, type=dict)
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError):
        # differs: upstream says at which byte the JSON is wrong.
        detail = "unexpected end of JSON input" if not raw.strip() else "invalid JSON"
        errors.invalid(f"data[{key}]", "<secret contents redacted>", detail)


# -- ServiceAccounts and Namespaces -----------------------------------------------------------


def validate_service_account(errors: FieldErrors, obj: v1.ServiceAccount) -> None:
    meta.validate_object_meta(errors, obj.metadata)


def validate_service_account_update(
    errors: FieldErrors, new: v1.ServiceAccount, old: v1.ServiceAccount
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)


def validate_namespace(errors: FieldErrors, obj: v1.Namespace) -> None:
    meta.validate_object_meta(errors, obj.metadata, names.dns1123_label, namespaced=False)
    _validate_namespace_finalizers(errors, obj.spec.finalizers)


def _validate_namespace_finalizers(errors: FieldErrors, fields: tuple[str, ...]) -> None:
    for name in fields:
        _validate_namespace_finalizer(errors, "spec.finalizers", name)


def _validate_namespace_finalizer(errors: FieldErrors, path: str, name: str) -> None:
    errors.invalid_each(path, name, names.qualified_name(name))
    meta.validate_qualified_finalizer(errors, path, name)


def validate_namespace_update(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_label, namespaced=False
    )
    _validate_namespace_finalizers(errors, new.spec.finalizers)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)


def validate_namespace_finalize(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    for i, name in enumerate(new.spec.finalizers):
        _validate_namespace_finalizer(errors, f"spec.finalizers[{i}]", name)


def validate_namespace_status(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    """The phase is Terminating exactly while the namespace has a deletionTimestamp."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    terminating = new.metadata.deletionTimestamp is not None
    phase = new.status.phase
    if phase != ("Terminating" if terminating else "Active"):
        message = (
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
            if terminating
            else "may only be 'Active' if `deletionTimestamp` is empty"
        )
        errors.invalid("status.Phase", phase, message)


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "ConfigMap"): Rules[v1.ConfigMap](validate_config_map, validate_config_map_update),
    ("", "Namespace"): Rules[v1.Namespace](
        validate_namespace,
        validate_namespace_update,
        status=validate_namespace_status,
        subresources={"finalize": validate_namespace_finalize},
    ),
    ("", "Secret"): Rules[v1.Secret](validate_secret, validate_secret_update),
    ("", "ServiceAccount"): Rules[v1.ServiceAccount](
        validate_service_account, validate_service_account_update
    ),
}
