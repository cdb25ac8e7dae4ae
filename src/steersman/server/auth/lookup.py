"""ObjectGetter: the objects that token authentication looks up, in the server's store or a test's dictionary."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # The core types are large; authentication alone must not import them.
    from steersman.api.generated.core_v1 import Node, Pod, Secret, ServiceAccount


class ObjectGetter(Protocol):
    """Gets the objects that tokens are issued for and bound to; None if an object does not exist."""

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None: ...

    def secret(self, namespace: str, name: str) -> Secret | None: ...

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def node(self, name: str) -> Node | None: ...


class ObjectLookup:
    """An `ObjectGetter` over a function that finds an object by resource, namespace and name."""

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
    """One value of a Secret; empty if it is missing or not valid base64."""
    try:
        return b64decode(secret.data.get(key, ""))
    except ValueError:
        return b""
