"""What authentication must be able to look up. The server's store is behind it, or a test's dictionary."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # The core types are many; nobody should wait for them who only wants to know a user.
    from steersman.api.generated.core_v1 import Node, Pod, Secret, ServiceAccount


class Objects(Protocol):
    """The objects tokens are made for and bound to, as they are now. None where there is none."""

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None: ...

    def secret(self, namespace: str, name: str) -> Secret | None: ...

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def node(self, name: str) -> Node | None: ...


def secret_data(secret: Secret, key: str) -> bytes:
    """One value of a secret; empty where there is none, or none that can be read."""
    try:
        return b64decode(secret.data.get(key, ""))
    except ValueError:
        return b""
