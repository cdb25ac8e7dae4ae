"""Views of ConfigMaps and Secrets.

No cache holds all of a cluster's ConfigMaps and Secrets, because they are large: `Kind.where` selects those that a
controller needs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from steersman.api.kinds import EMPTY, Object
from steersman.api.scheme import Kind, register


class ConfigMap(Object, frozen=True):
    """All fields."""

    binaryData: Mapping[str, str] = EMPTY
    data: Mapping[str, str] = EMPTY
    immutable: bool | None = None


class Secret(Object, frozen=True):
    data: Mapping[str, str] = EMPTY
    """Values are base64."""
    type: str = ""

    def __repr__(self) -> str:
        """Omit the data, which must not be logged."""
        return f"<Secret {self.key}>"


CONFIGMAPS = register(Kind("", "v1", "ConfigMap", "configmaps", True, ConfigMap))
SECRETS = register(Kind("", "v1", "Secret", "secrets", True, Secret))

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
"""Annotations of a token Secret that name its ServiceAccount."""
ACCOUNT_TOKENS = SECRETS.where("type=kubernetes.io/service-account-token")
"""Secrets with a ServiceAccount token."""


def plain(secret: Secret, key: str) -> bytes:
    """Return one decoded value of a Secret; empty if it is missing or not base64."""
    try:
        return base64.b64decode(secret.data.get(key, ""), validate=True)
    except binascii.Error:
        return b""
