"""A server with all plugins, and short ways to ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.errors import ApiError
from steersman.api.generated.core_v1 import Namespace, ServiceAccount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server import admission
from steersman.server.bootstrap_objects import create_bootstrap_objects
from steersman.server.codec.convert import to_struct
from steersman.server.server import Server
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock


class Asker:
    """A server's client, in documents and words."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def resource(self, plural: str) -> Any:
        name, _, group = plural.partition(".")
        return self.server.registry.find(group, "v1", name)

    def create(self, plural: str, document: dict[str, Any], namespace: str = "default") -> Any:
        resource = self.resource(plural)
        body = to_struct(resource.type, document)
        return verbs.create(self.server, resource, namespace if resource.namespaced else "", body)

    def patch(self, plural: str, name: str, make: Callable[[Any], Any], namespace: str = "default") -> Any:
        resource = self.resource(plural)
        return verbs.patch(self.server, resource, namespace if resource.namespaced else "", name, make)

    def delete(self, plural: str, name: str, namespace: str = "default") -> None:
        resource = self.resource(plural)
        verbs.delete(self.server, resource, namespace if resource.namespaced else "", name)

    def get(self, plural: str, name: str, namespace: str = "default") -> Any:
        resource = self.resource(plural)
        return self.server.get(resource, namespace if resource.namespaced else "", name)

    def forbidden_error(self, plural: str, document: dict[str, Any], namespace: str = "default") -> str:
        with pytest.raises(ApiError) as caught:
            self.create(plural, document, namespace)
        return caught.value.message


@pytest.fixture
def server() -> Server:
    server = Server(FakeClock())
    server.extend(admission.default())
    namespaces = server.registry.find("", "v1", "namespaces")
    for name in ("default", "other"):
        verbs.create(server, namespaces, "", Namespace(metadata=ObjectMeta(name=name)))
    create_bootstrap_objects(server)
    return server


@pytest.fixture
def ask(server: Server) -> Asker:
    """Of a server where pods can be created in ``default``."""
    accounts = server.registry.find("", "v1", "serviceaccounts")
    verbs.create(server, accounts, "default", ServiceAccount(metadata=ObjectMeta(name="default")))
    return Asker(server)
