"""ConfigMaps, Secrets, ServiceAccounts and Namespaces."""

from __future__ import annotations

import binascii
from base64 import b64decode

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.kinds.config import ACCOUNT_NAME
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors

_MAX_SIZE = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"


# -- ConfigMaps -------------------------------------------------------------------------------


def config_map(errors: FieldErrors, obj: v1.ConfigMap) -> None:
    meta.check(errors, obj.metadata)
    _content(errors, obj)


def config_map_update(errors: FieldErrors, new: v1.ConfigMap, old: v1.ConfigMap) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    _sealed(errors, new, old, ("data", "binaryData"))
    meta.again(errors, new.metadata, old.metadata, text.subdomain)
    _content(errors, new)


def _content(errors: FieldErrors, obj: v1.ConfigMap) -> None:
    size = 0
    for key, value in obj.data.items():
        errors.invalid_each(f"data[{key}]", key, text.config_key(key))
        if key in obj.binaryData:
            errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in obj.binaryData.items():
        errors.invalid_each(f"binaryData[{key}]", key, text.config_key(key))
        size += decoded_size(value)
    if size > _MAX_SIZE:
        # The root of an object, as the real server writes it.
        errors.too_long("[]", _MAX_SIZE)


def decoded_size(value: str) -> int:
    """The size of what a base64 text stands for, without decoding it."""
    return len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")


def _sealed(
    errors: FieldErrors, new: v1.ConfigMap | v1.Secret, old: v1.ConfigMap | v1.Secret, names: tuple[str, ...]
) -> None:
    """What was declared immutable stays so, and as it is."""
    if not old.immutable:
        return
    if not new.immutable:
        errors.forbidden("immutable", _SEALED)
    for name in names:
        if getattr(new, name) != getattr(old, name):
            errors.forbidden(name, _SEALED)


# -- Secrets ----------------------------------------------------------------------------------

_NEEDED = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def secret(errors: FieldErrors, obj: v1.Secret) -> None:
    meta.check(errors, obj.metadata)
    _secret(errors, obj)


def secret_update(errors: FieldErrors, new: v1.Secret, old: v1.Secret) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    errors.immutable("type", new.type, old.type)
    _sealed(errors, new, old, ("data",))
    meta.again(errors, new.metadata, old.metadata, text.subdomain)
    _secret(errors, new)


def _secret(errors: FieldErrors, obj: v1.Secret) -> None:
    data, type_ = obj.data, obj.type
    for key in data:
        errors.invalid_each(f"data[{key}]", key, text.config_key(key))
    if sum(map(decoded_size, data.values())) > _MAX_SIZE:
        errors.too_long("data", _MAX_SIZE)
    if type_ == "kubernetes.io/service-account-token":
        if not obj.metadata.annotations.get(ACCOUNT_NAME):
            errors.required(f"metadata.annotations[{ACCOUNT_NAME}]")
    elif type_ in _DOCKER:
        _docker(errors, data.get(_DOCKER[type_]), _DOCKER[type_])
    elif type_ == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors.required("data[username]")
            errors.required("data[password]")
    elif type_ in _NEEDED:
        for key in _NEEDED[type_]:
            if key not in data or (key == "ssh-privatekey" and not data[key]):
                errors.required(f"data[{key}]")


def _docker(errors: FieldErrors, content: str | None, key: str) -> None:
    if content is None:
        errors.required(f"data[{key}]")
        return
    raw = b64decode(content)
    try:
        msgspec.json.decode(raw, type=dict)
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError):
        # differs: it does not say where the JSON ends.
        why = "unexpected end of JSON input" if not raw.strip() else "invalid JSON"
        errors.invalid(f"data[{key}]", "<secret contents redacted>", why)


# -- ServiceAccounts and Namespaces -----------------------------------------------------------


def service_account(errors: FieldErrors, obj: v1.ServiceAccount) -> None:
    meta.check(errors, obj.metadata)


def service_account_update(errors: FieldErrors, new: v1.ServiceAccount, old: v1.ServiceAccount) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    meta.again(errors, new.metadata, old.metadata, text.subdomain)


def namespace(errors: FieldErrors, obj: v1.Namespace) -> None:
    meta.check(errors, obj.metadata, text.label, namespaced=False)
    _finalizers(errors, obj.spec.finalizers)


def _finalizers(errors: FieldErrors, names: tuple[str, ...]) -> None:
    for name in names:
        _finalizer(errors, "spec.finalizers", name)


def _finalizer(errors: FieldErrors, path: str, name: str) -> None:
    errors.invalid_each(path, name, text.qualified(name))
    meta.qualified_finalizer(errors, path, name)


def namespace_update(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.again(errors, new.metadata, old.metadata, text.label, namespaced=False)
    _finalizers(errors, new.spec.finalizers)
    meta.check_update(errors, new.metadata, old.metadata)


def namespace_finalize(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    for i, name in enumerate(new.spec.finalizers):
        _finalizer(errors, f"spec.finalizers[{i}]", name)


def namespace_status(errors: FieldErrors, new: v1.Namespace, old: v1.Namespace) -> None:
    """A namespace's phase says whether it is going."""
    meta.check_update(errors, new.metadata, old.metadata)
    going = new.metadata.deletionTimestamp is not None
    phase = new.status.phase
    if phase != ("Terminating" if going else "Active"):
        says = (
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
            if going
            else "may only be 'Active' if `deletionTimestamp` is empty"
        )
        errors.invalid("status.Phase", phase, says)
