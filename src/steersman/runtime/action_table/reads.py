"""Interpretations of the actions that read from the API server, past any cache."""

from __future__ import annotations

from typing import Any, TypeVar

from steersman.api.discovery import DiscoveryResult
from steersman.api.scheme import Key, Kind
from steersman.client.api import UndecodableObject
from steersman.client.pager import PAGE_SIZE, list_all
from steersman.intent.actions import (
    Address,
    CreateReview,
    Discover,
    LatestResourceVersion,
    List,
    Read,
    ReadDocument,
)
from steersman.intent.undecodable import stand_in
from steersman.runtime.action_table.interpretation import (
    Environment,
    Interpretation,
    SimulatedServer,
    address_of,
    interprets,
)
from steersman.runtime.action_table.text import (
    kind_if_known,
    name_target,
)

T = TypeVar("T")


@interprets(Read)
class ReadInterpretation(Interpretation[Read[Any]]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: Read[Any]) -> Any:
        at = address_of(action.target)
        if action.subresource:
            return await env.api.subresource(at.kind, at.namespace, at.name, action.subresource, verb="get")
        return await env.api.get(at.kind, at.namespace, at.name)

    def describe(self, action: Read[Any]) -> str:
        return f"read {name_target(action.target)}{action.subresource and ' ' + action.subresource}"

    def kind(self, action: Read[Any]) -> Kind[Any] | None:
        return kind_if_known(action.target)

    def simulate(self, server: SimulatedServer, action: Read[Any]) -> Any:
        return None if isinstance(action.target, Address) else action.target


@interprets(List)
class ListInterpretation(Interpretation[List[Any]]):
    verb = "list"

    async def perform(self, env: Environment, key: Key, action: List[Any]) -> list[Any]:
        page = await list_all(
            env.manager_api if action.as_manager else env.api,
            action.kind,
            action.namespace,
            label_selector=action.label_selector,
            field_selector=action.field_selector,
            page_size=action.limit or PAGE_SIZE,
            at_least=action.limit,
        )
        # An object that cannot be decoded still exists.
        return [
            stand_in(action.kind, item.metadata, item.error) if isinstance(item, UndecodableObject) else item
            for item in page.items
        ]

    def describe(self, action: List[Any]) -> str:
        return f"list {action.kind.resource} in {action.namespace}"

    def kind(self, action: List[Any]) -> Kind[Any]:
        return action.kind

    def simulate(self, server: SimulatedServer, action: List[Any]) -> list[Any]:
        return []


@interprets(LatestResourceVersion)
class LatestResourceVersionInterpretation(Interpretation[LatestResourceVersion]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: LatestResourceVersion) -> str:
        return (await env.api.list(action.kind, limit=1)).resource_version

    def describe(self, action: LatestResourceVersion) -> str:
        return f"read the resourceVersion of {action.kind.resource}"

    def kind(self, action: LatestResourceVersion) -> Kind[Any]:
        return action.kind

    def simulate(self, server: SimulatedServer, action: LatestResourceVersion) -> str:
        return str(server.revision)


@interprets(CreateReview)
class CreateReviewInterpretation(Interpretation[CreateReview[Any]]):
    verb = "create"

    async def perform(self, env: Environment, key: Key, action: CreateReview[T]) -> T:
        return await env.api.create(action.kind, action.namespace, action.body)

    def describe(self, action: CreateReview[Any]) -> str:
        return f"create {action.kind.name.lower()}"

    def kind(self, action: CreateReview[Any]) -> Kind[Any]:
        return action.kind


@interprets(Discover)
class DiscoverInterpretation(Interpretation[Discover]):
    verb = "discover"

    async def perform(self, env: Environment, key: Key, action: Discover) -> DiscoveryResult:
        return await env.api.discover()

    def describe(self, action: Discover) -> str:
        return "discover"

    def simulate(self, server: SimulatedServer, action: Discover) -> DiscoveryResult:
        return DiscoveryResult()


@interprets(ReadDocument)
class ReadDocumentInterpretation(Interpretation[ReadDocument]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: ReadDocument) -> dict[str, Any]:
        return await env.api.document(action.path)

    def describe(self, action: ReadDocument) -> str:
        return f"read {action.path}"

    def simulate(self, server: SimulatedServer, action: ReadDocument) -> dict[str, Any]:
        return {}
