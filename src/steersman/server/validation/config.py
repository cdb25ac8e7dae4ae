"""ConfigMaps, Secrets, ServiceAccounts and Namespaces."""

from __future__ import annotations

import binascii
from base64 import b64decode

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.kinds.config import ACCOUNT_NAME
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import Found

_MAX_SIZE = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"


# -- ConfigMaps -------------------------------------------------------------------------------


def config_map(found: Found, obj: v1.ConfigMap) -> None:
    meta.check(found, obj.metadata)
    _content(found, obj)


def config_map_update(found: Found, new: v1.ConfigMap, old: v1.ConfigMap) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    _sealed(found, new, old, ("data", "binaryData"))
    meta.again(found, new.metadata, old.metadata, text.subdomain)
    _content(found, new)


def _content(found: Found, obj: v1.ConfigMap) -> None:
    size = 0
    for key, value in obj.data.items():
        found.each(f"data[{key}]", key, text.config_key(key))
        if key in obj.binaryData:
            found.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in obj.binaryData.items():
        found.each(f"binaryData[{key}]", key, text.config_key(key))
        size += decoded_size(value)
    if size > _MAX_SIZE:
        # The root of an object, as the real server writes it.
        found.too_long("[]", _MAX_SIZE)


def decoded_size(value: str) -> int:
    """The size of what a base64 text stands for, without decoding it."""
    return len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")


def _sealed(
    found: Found, new: v1.ConfigMap | v1.Secret, old: v1.ConfigMap | v1.Secret, names: tuple[str, ...]
) -> None:
    """What was declared immutable stays so, and as it is."""
    if not old.immutable:
        return
    if not new.immutable:
        found.forbidden("immutable", _SEALED)
    for name in names:
        if getattr(new, name) != getattr(old, name):
            found.forbidden(name, _SEALED)


# -- Secrets ----------------------------------------------------------------------------------

_NEEDED = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def secret(found: Found, obj: v1.Secret) -> None:
    meta.check(found, obj.metadata)
    _secret(found, obj)


def secret_update(found: Found, new: v1.Secret, old: v1.Secret) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    found.changed("type", new.type, old.type)
    _sealed(found, new, old, ("data",))
    meta.again(found, new.metadata, old.metadata, text.subdomain)
    _secret(found, new)


def _secret(found: Found, obj: v1.Secret) -> None:
    data, type_ = obj.data, obj.type
    for key in data:
        found.each(f"data[{key}]", key, text.config_key(key))
    if sum(map(decoded_size, data.values())) > _MAX_SIZE:
        found.too_long("data", _MAX_SIZE)
    if type_ == "kubernetes.io/service-account-token":
        if not obj.metadata.annotations.get(ACCOUNT_NAME):
            found.required(f"metadata.annotations[{ACCOUNT_NAME}]")
    elif type_ in _DOCKER:
        _docker(found, data.get(_DOCKER[type_]), _DOCKER[type_])
    elif type_ == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            found.required("data[username]")
            found.required("data[password]")
    elif type_ in _NEEDED:
        for key in _NEEDED[type_]:
            if key not in data or (key == "ssh-privatekey" and not data[key]):
                found.required(f"data[{key}]")


def _docker(found: Found, content: str | None, key: str) -> None:
    if content is None:
        found.required(f"data[{key}]")
        return
    raw = b64decode(content)
    try:
        msgspec.json.decode(raw, type=dict)
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError):
        # differs: it does not say where the JSON ends.
        why = "unexpected end of JSON input" if not raw.strip() else "invalid JSON"
        found.invalid(f"data[{key}]", "<secret contents redacted>", why)


# -- ServiceAccounts and Namespaces -----------------------------------------------------------


def service_account(found: Found, obj: v1.ServiceAccount) -> None:
    meta.check(found, obj.metadata)


def service_account_update(found: Found, new: v1.ServiceAccount, old: v1.ServiceAccount) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    meta.again(found, new.metadata, old.metadata, text.subdomain)


def namespace(found: Found, obj: v1.Namespace) -> None:
    meta.check(found, obj.metadata, text.label, namespaced=False)
    _finalizers(found, obj.spec.finalizers)


def _finalizers(found: Found, names: tuple[str, ...]) -> None:
    for name in names:
        _finalizer(found, "spec.finalizers", name)


def _finalizer(found: Found, path: str, name: str) -> None:
    found.each(path, name, text.qualified(name))
    meta.qualified_finalizer(found, path, name)


def namespace_update(found: Found, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.again(found, new.metadata, old.metadata, text.label, namespaced=False)
    _finalizers(found, new.spec.finalizers)
    meta.check_update(found, new.metadata, old.metadata)


def namespace_finalize(found: Found, new: v1.Namespace, old: v1.Namespace) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    for i, name in enumerate(new.spec.finalizers):
        _finalizer(found, f"spec.finalizers[{i}]", name)


def namespace_status(found: Found, new: v1.Namespace, old: v1.Namespace) -> None:
    """A namespace's phase says whether it is going."""
    meta.check_update(found, new.metadata, old.metadata)
    going = new.metadata.deletionTimestamp is not None
    phase = new.status.phase
    if phase != ("Terminating" if going else "Active"):
        says = (
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
            if going
            else "may only be 'Active' if `deletionTimestamp` is empty"
        )
        found.invalid("status.Phase", phase, says)
