"""AggregatedApi: an in-process client that also reaches the resources of aggregated API servers.

Aggregated servers are asked over the socket of the control plane itself, with a client certificate of the same user: authorization
and the front proxy's headers are as for any other client. The HTTP client is made when the first such resource is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from steersman.api.discovery import DiscoveryResult, merge_results
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import Capabilities, EmptyKind
from steersman.server.auth.ca import CertificateAuthority
from steersman.server.auth.users import AUTHENTICATED, User

if TYPE_CHECKING:
    from steersman.client.http import HttpApi
    from steersman.server.discovery.remote import RemoteVersion

T = TypeVar("T")


class RemoteVersions(Protocol):
    """The group versions of other servers: the aggregator."""

    @property
    def is_empty(self) -> bool: ...
    def serves(self, group: str, version: str) -> bool: ...
    def versions(self) -> list[RemoteVersion]: ...


class RemoteClients:
    """The HTTP clients of a control plane's own components, one for each user."""

    def __init__(
        self,
        url: str,
        authority: CertificateAuthority,
        aggregator: Callable[[], RemoteVersions | None],
    ) -> None:
        """``aggregator`` returns None while there is no remote APIService."""
        self.aggregator = aggregator
        self._url = url
        self._authority = authority
        self._clients: dict[str, HttpApi] = {}

    def client(self, user: User) -> Api:
        """The client of a user."""
        made = self._clients.get(user.name)
        if made is None:
            # Most control planes have no other server.
            from steersman.client.config import ClientConfig, Pem, TlsConfig
            from steersman.client.http import HttpApi

            pair = self._authority.client(
                user.name, tuple(group for group in user.groups if group != AUTHENTICATED)
            )
            tls = TlsConfig(ca=Pem(self._authority.pair.cert), cert=Pem(pair.cert), key=Pem(pair.key))
            made = self._clients[user.name] = HttpApi(ClientConfig(self._url, tls), qps=0)
        return made

    async def close(self) -> None:
        """Closes all connections."""
        for each in self._clients.values():
            await each.close()


class _AggregatedCapabilities(Capabilities):
    """The capabilities of the server in the process, as long as no aggregated server is concerned."""

    def __init__(self, inner: Capabilities, clients: RemoteClients) -> None:
        super().__init__()
        self._inner = inner
        self._clients = clients

    @property
    def steady(self) -> bool:
        aggregator = self._clients.aggregator()
        return self._inner.steady and (aggregator is None or aggregator.is_empty)

    def when_not_empty(self, kind: Kind[Any], wake: Callable[[], None]) -> EmptyKind | None:
        aggregator = self._clients.aggregator()
        if aggregator is not None and aggregator.serves(kind.group, kind.version):
            return None
        return self._inner.when_not_empty(kind, wake)


class AggregatedApi:
    """An `Api` of one user: in process, or over HTTP for the group versions of other servers."""

    def __init__(self, local: Api, user: User, clients: RemoteClients) -> None:
        self._local = local
        self._user = user
        self._clients = clients
        self.capabilities: Capabilities = _AggregatedCapabilities(local.capabilities, clients)

    def _of(self, kind: Kind[Any]) -> Api:
        aggregator = self._clients.aggregator()
        if aggregator is None or not aggregator.serves(kind.group, kind.version):
            return self._local
        return self._clients.client(self._user)

    def get(self, kind: Kind[T], *args: Any, **options: Any) -> Coroutine[Any, Any, T]:
        return self._of(kind).get(kind, *args, **options)

    def list(
        self, kind: Kind[T], *args: Any, **options: Any
    ) -> Coroutine[Any, Any, Page[T | UndecodableObject]]:
        return self._of(kind).list(kind, *args, **options)

    def watch(
        self, kind: Kind[T], *args: Any, **options: Any
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        return self._of(kind).watch(kind, *args, **options)

    def create(self, kind: Kind[T], *args: Any, **options: Any) -> Coroutine[Any, Any, T]:
        return self._of(kind).create(kind, *args, **options)

    def update(self, kind: Kind[T], *args: Any, **options: Any) -> Coroutine[Any, Any, T]:
        return self._of(kind).update(kind, *args, **options)

    def update_status(self, kind: Kind[T], *args: Any, **options: Any) -> Coroutine[Any, Any, T]:
        return self._of(kind).update_status(kind, *args, **options)

    def patch(self, kind: Kind[T], *args: Any, **options: Any) -> Coroutine[Any, Any, T]:
        return self._of(kind).patch(kind, *args, **options)

    def delete(self, kind: Kind[Any], *args: Any, **options: Any) -> Coroutine[Any, Any, None]:
        return self._of(kind).delete(kind, *args, **options)

    def delete_collection(self, kind: Kind[Any], *args: Any, **options: Any) -> Coroutine[Any, Any, None]:
        return self._of(kind).delete_collection(kind, *args, **options)

    def subresource(self, kind: Kind[Any], *args: Any, **options: Any) -> Coroutine[Any, Any, dict[str, Any]]:
        return self._of(kind).subresource(kind, *args, **options)

    async def discover(self) -> DiscoveryResult:
        """The resources of this server and of all aggregated ones. A group version whose server does not answer counts as failed."""
        found = await self._local.discover()
        aggregator = self._clients.aggregator()
        remote = [] if aggregator is None else aggregator.versions()
        if not remote:
            return found
        from steersman.client.discovery import parse_aggregated

        hidden = {(each.group, each.version) for each in remote}
        own = DiscoveryResult(
            tuple(each for each in found.resources if (each.group, each.version) not in hidden),
            found.failed,
            found.malformed,
        )
        ordered = sorted(remote, key=lambda each: (each.group, -each.version_priority))
        items = [{"metadata": {"name": each.group}, "versions": [each.document]} for each in ordered]
        return merge_results((own, parse_aggregated({"items": items})))

    async def document(self, path: str) -> dict[str, Any]:
        return await self._local.document(path)
