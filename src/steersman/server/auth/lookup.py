"""What authentication must be able to look up. The server's store is behind it, or a test's dictionary."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # The core types are many; nobody should wait for them who only wants to know a user.
    from steersman.api.generated.core_v1 import Node, Pod, Secret, ServiceAccount


class Objects(Protocol):
    """The objects tokens are made for and bound to, as they are now. None where there is none."""

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None: ...

    def secret(self, namespace: str, name: str) -> Secret | None: ...

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def node(self, name: str) -> Node | None: ...


class Lookup:
    """The same by one function that finds an object by resource, namespace and name."""

    def __init__(self, find: Callable[[str, str, str], Any | None]) -> None:
        self._find = find

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None:
        return self._find("serviceaccounts", namespace, name)

    def secret(self, namespace: str, name: str) -> Secret | None:
        return self._find("secrets", namespace, name)

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._find("pods", namespace, name)

    def node(self, name: str) -> Node | None:
        return self._find("nodes", "", name)


def secret_data(secret: Secret, key: str) -> bytes:
    """One value of a secret; empty where there is none, or none that can be read."""
    try:
        return b64decode(secret.data.get(key, ""))
    except ValueError:
        return b""
