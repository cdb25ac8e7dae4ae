"""Config maps and secrets, as the controllers read them: always a few of them, never all.

A cluster's config maps and secrets are large and mostly nobody's business, so no cache follows them
all: `Kind.where` picks those a controller is about.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from steersman.api.kinds import EMPTY, Object
from steersman.api.scheme import Kind, register


class ConfigMap(Object, frozen=True):
    """All its fields."""

    binaryData: Mapping[str, str] = EMPTY
    data: Mapping[str, str] = EMPTY
    immutable: bool | None = None


class Secret(Object, frozen=True):
    data: Mapping[str, str] = EMPTY
    """Base64, as on the wire."""
    type: str = ""

    def __repr__(self) -> str:
        """Without the data: it must not get into a log by way of a message."""
        return f"<Secret {self.key}>"


CONFIGMAPS = register(Kind("", "v1", "ConfigMap", "configmaps", True, ConfigMap))
SECRETS = register(Kind("", "v1", "Secret", "secrets", True, Secret))

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
"""The annotations of a secret that holds a token: whose it is."""
ACCOUNT_TOKENS = SECRETS.where("type=kubernetes.io/service-account-token")
"""The secrets that hold a ServiceAccount's token."""


def plain(secret: Secret, key: str) -> bytes:
    """One value of a secret; empty where it is missing or not base64."""
    try:
        return base64.b64decode(secret.data.get(key, ""), validate=True)
    except binascii.Error:
        return b""
