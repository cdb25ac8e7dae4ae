"""Redaction of Secrets and ConfigMaps: values become hashes, keys and sizes stay.

A hash is made with a random key that is never stored, so a value cannot be found by hashing guesses. It is as long as the
value, and equal values of one snapshot have equal hashes: a Secret and a ConfigMap with the same certificate still agree.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from steersman.api.manifest_annotations import may_hold_manifest

TOKEN_TRACKING = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
BOOTSTRAP_TOKEN = "bootstrap.kubernetes.io/token"
PUBLIC_KEYS = ("auth-extra-groups", "description", "expiration", "token-id")
"""Keys of a bootstrap token that are no secret: all but ``token-secret``. The id is part of the Secret's name."""
USAGE = "usage-"
"""The prefix of keys that say what a bootstrap token may be used for."""
_KINDS = {("", "Secret"), ("", "ConfigMap")}


class Redactor:
    """Replaces the data of Secrets and ConfigMaps. One redactor serves one snapshot."""

    def __init__(self, key: bytes | None = None) -> None:
        """``key`` is for tests; by default it is random."""
        self._key = secrets.token_bytes(32) if key is None else key

    def hashed(self, value: bytes) -> str:
        """Hexadecimal digits, as many as the value has bytes."""
        size = len(value)
        return hashlib.shake_256(self._key + value).hexdigest((size + 1) // 2)[:size]

    def redacted(self, group: str, kind: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document with hashes for its data, and without annotations that may repeat them."""
        if (group, kind) not in _KINDS or _is_public(kind, document):
            return document
        secret = kind == "Secret"
        made = dict(document)
        kept = _is_public_key if secret and document.get("type") == BOOTSTRAP_TOKEN else _is_no_key
        _replace(
            made, "data" if secret else "binaryData", lambda text: _encode(self.hashed(_decode(text))), kept
        )
        _replace(made, "stringData" if secret else "data", lambda text: self.hashed(text.encode()), kept)
        metadata = made.get("metadata") or {}
        if metadata.get("annotations"):
            kept_annotations = {
                name: text
                for name, text in metadata["annotations"].items()
                if not may_hold_manifest(name, text)
            }
            made["metadata"] = {**metadata, "annotations": kept_annotations}
        return made


def _is_public(kind: str, document: Mapping[str, Any]) -> bool:
    """Whether a document is left as it is: the ConfigMap with the day since which tokens are tracked, which a controller reads."""
    meta = document.get("metadata") or {}
    return kind == "ConfigMap" and (meta.get("namespace"), meta.get("name")) == TOKEN_TRACKING


def _is_public_key(name: str) -> bool:
    """Whether a key of a bootstrap token is left as it is. token-cleaner deletes a token whose expiration it cannot read."""
    return name in PUBLIC_KEYS or name.startswith(USAGE)


def _is_no_key(name: str) -> bool:
    return False


def without_managed_fields(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document without ``managedFields``: they are a third of an object, and no control loop reads them."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or "managedFields" not in metadata:
        return document
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": kept}


def _replace(
    document: dict[str, Any], field: str, make: Callable[[str], str], is_kept: Callable[[str], bool]
) -> None:
    values = document.get(field)
    if isinstance(values, Mapping):
        document[field] = {
            name: text if is_kept(name) else make(text) if isinstance(text, str) else ""
            for name, text in values.items()
        }
    elif values is not None:
        # What is no map is no data that an API server stores; nothing of it is kept.
        del document[field]


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
