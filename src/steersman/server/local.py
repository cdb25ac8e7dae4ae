"""LocalApi: the `Api` of a server in the same process, on the server's own frozen structs.

Clients that use a view of a kind are given the full struct, which has all fields of the view; clients of plain
documents are given documents. Every request takes one turn of the event loop before it is served, so that
other tasks run between any two requests of a client, as they would over a network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import MethodNotAllowed, NotFound
from steersman.api.partial_object import metadata_only
from steersman.api.scheme import Kind
from steersman.client.api import Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import Capabilities
from steersman.server import status_errors
from steersman.server.apply.options import validate_patch_options
from steersman.server.auth.users import ADMIN, User
from steersman.server.codec.convert import CODECS, to_document, to_struct
from steersman.server.discovery.in_process import discover, openapi_document
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.registry.resources import Resource
from steersman.server.rest.listing import get, list_objects
from steersman.server.rest.patch import MERGE
from steersman.server.rest.perform import body_type, perform
from steersman.server.rest.request import ListOptions, Request, Result
from steersman.server.rest.restart import restartable
from steersman.server.rest.scale import get_scale
from steersman.server.rest.selection import select
from steersman.server.rest.subresources import KUBELET_SUBRESOURCES, connect, kubelets_of
from steersman.server.rest.watch import watch
from steersman.server.server import Server
from steersman.server.storage.stream import WatchStream, turn
from steersman.server.storage.watch import IdleWatch, Subscription

T = TypeVar("T")


class InProcess(Capabilities):
    """The capabilities of a server in the same process."""

    def __init__(self, server: Server) -> None:
        super().__init__(steady=True)
        self._server = server

    def when_not_empty(self, kind: Kind[Any], wake: Callable[[], None]) -> IdleWatch | None:
        try:
            resource = self._server.registry.of(kind)
        except NotFound:
            return None
        return self._server.table(resource).idle_watch(select(resource, "", "", kind.fields), wake)


class LocalApi:
    """A client of a server in the same process."""

    def __init__(self, server: Server, user: User = ADMIN, manager: str = "steersman") -> None:
        """``manager`` is the field manager of requests that do not name one."""
        self.server = server
        self.user = user
        self.manager = manager
        self.capabilities: Capabilities = InProcess(server)

    # -- reading ------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        request = Request(self.user, "get", resource, _scope(resource, namespace), name)
        if resource.serve_all is not None:
            # Another version may be a webhook's.
            return _answer(kind, resource, await restartable(self.server, partial(get, self.server, request)))
        return _answer(kind, resource, get(self.server, request))

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: Literal["", "Exact", "NotOlderThan"] = "",
    ) -> Page[T | UndecodableObject]:
        await turn()
        resource = self.server.registry.of(kind)
        options = ListOptions(
            label_selector, field_selector, limit, continue_, resource_version, resource_version_match
        )
        request = Request(self.user, "list", resource, namespace, list_options=options)
        run = partial(self._list, kind, resource, request)
        return run() if resource.serve_all is None else await restartable(self.server, run)

    def _list(self, kind: Kind[T], resource: Resource, request: Request) -> Page[T | UndecodableObject]:
        found = list_objects(self.server, request)
        items = found.items
        shape = _shape(kind, resource)
        if shape is not None:
            items = [shape(obj) for obj in items]
        return Page(items, str(found.revision), found.continue_)

    def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
        level_triggered: bool = False,
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        server = self.server
        options = ListOptions(
            label_selector,
            field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            send_initial_events=send_initial_events or None,
            level_triggered=level_triggered,
        )

        def begin() -> Subscription:
            resource = server.registry.of(kind)
            return watch(server, Request(self.user, "watch", resource, namespace, list_options=options))

        return WatchStream(
            server.store,
            begin,
            transform=lambda: _shape(kind, server.registry.of(kind)),
            timeout=timeout_seconds,
            waiting=partial(restartable, server),
        )

    async def discover(self) -> DiscoveryResult:
        await turn()
        return discover(self.server.registry)

    async def document(self, path: str) -> dict[str, Any]:
        await turn()
        return openapi_document(self.server, path)

    # -- writing ------------------------------------------------------------------------------

    async def _perform(self, request: Request, body: Any = None) -> Result:
        """Carries out a write; only one that webhooks match waits for anything."""
        return await restartable(self.server, partial(perform, self.server, request, body))

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        obj = _body(resource, body)
        request = Request(self.user, "create", resource, namespace, field_manager=self.manager)
        created = (await self._perform(request, obj)).obj
        # A Binding is answered with a Status.
        return created if isinstance(created, dict) else _answer(kind, resource, created)  # type: ignore[return-value]

    def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        return self._update(kind, namespace, name, body, "")

    def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        return self._update(kind, namespace, name, body, "status")

    async def _update(self, kind: Kind[T], namespace: str, name: str, body: object, subresource: str) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        obj = _body(resource, body)
        namespace = _scope(resource, namespace)
        request = Request(
            self.user, "update", resource, namespace, name, subresource, field_manager=self.manager
        )
        return _answer(kind, resource, (await self._perform(request, obj)).obj)

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        if subresource:
            _check_served(resource, subresource, name)
        validate_patch_options(content_type, field_manager, force or None)
        request = Request(
            self.user,
            "patch",
            resource,
            _scope(resource, namespace),
            name,
            subresource,
            field_manager=field_manager or self.manager,
            patch_type=content_type,
            force=force,
        )
        patched = (await self._perform(request, body)).obj
        if subresource == "scale":
            return to_document("autoscaling/v1", "Scale", patched)  # type: ignore[return-value]
        return _answer(kind, resource, patched)

    async def delete(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace: int | None = None,
    ) -> None:
        await turn()
        resource = self.server.registry.of(kind)
        options = DeletionOptions(uid or None, resource_version or None, propagation, grace)
        namespace = _scope(resource, namespace)
        await self._perform(Request(self.user, "delete", resource, namespace, name, deletion=options))

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        await turn()
        resource = self.server.registry.of(kind)
        request = Request(
            self.user,
            "deletecollection",
            resource,
            namespace,
            list_options=ListOptions(label_selector, field_selector),
            deletion=DeletionOptions(propagation=propagation),
        )
        await self._perform(request)

    async def subresource(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        verb: Literal["get", "create", "update"] = "create",
    ) -> dict[str, Any]:
        await turn()
        resource = self.server.registry.of(kind)
        _check_served(resource, subresource, name)
        namespace = _scope(resource, namespace)
        request = Request(self.user, verb, resource, namespace, name, subresource, field_manager=self.manager)
        if subresource in KUBELET_SUBRESOURCES:
            if subresource != "proxy":
                connect(self.server, request)
            kubelets_of(self.server, request)
            raise MethodNotAllowed(
                f"{resource.plural}/{subresource} is a stream: it is served over HTTP, not in process",
                reason="MethodNotAllowed",
            )
        if verb == "get":
            if subresource == "scale":
                scale = await restartable(self.server, partial(get_scale, self.server, request))
                return to_document("autoscaling/v1", "Scale", scale)
            found = await restartable(self.server, partial(get, self.server, request))
            return to_document(resource.api_version, resource.kind, found)
        type_, group, version, form = body_type(resource, subresource)
        result = (await self._perform(request, to_struct(type_, body or {}))).obj
        if isinstance(result, Mapping):
            return dict(result)
        return to_document(f"{group}/{version}" if group else version, form, result)


def _scope(resource: Resource, namespace: str) -> str:
    """The namespace of a request: none for cluster-scoped resources."""
    return namespace if resource.namespaced else ""


def _check_served(resource: Resource, subresource: str, name: str) -> None:
    """Refuses a subresource that the resource does not have."""
    if subresource not in resource.subresources:
        if resource.type in CODECS:
            raise status_errors.not_found(resource.group, resource.plural, name)
        raise NotFound("the server could not find the requested resource", reason="NotFound")


def _answer(kind: Kind[T], resource: Resource, obj: Any) -> T:
    if kind.type is dict:
        return to_document(resource.api_version, resource.kind, obj)  # type: ignore[return-value]
    form = CODECS.get(resource.type)
    if form is not None and not metadata_only(kind):
        return form.view(kind.type, resource.api_version, resource.kind, obj)  # type: ignore[no-any-return]
    return obj  # type: ignore[no-any-return]


def _shape(kind: Kind[Any], resource: Resource) -> Callable[[Any], Any] | None:
    """Converts stored objects to what a client of the kind is given; None where they are the same."""
    serve = resource.serve
    if kind.type is not dict and (resource.type not in CODECS or metadata_only(kind)):
        # differs: clients in the same process that read metadata alone do not ask a conversion webhook for it.
        return serve if resource.serve_all is None else None

    def shape(obj: Any) -> Any:
        try:
            return _answer(kind, resource, obj if serve is None else serve(obj))
        except ValueError as error:
            return UndecodableObject(obj.metadata, str(error))

    return shape


def _body(resource: Resource, body: object) -> Any:
    """The body of a request as a full struct. Raises `BadRequest` if it is not one of the resource."""
    if not isinstance(body, msgspec.Struct) and isinstance(body, Mapping):
        _check_kind(resource, body)
    try:
        return to_struct(resource.type, body)
    except (ValueError, RecursionError) as error:
        raise status_errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        ) from None


def _check_kind(resource: Resource, body: Mapping[str, Any]) -> None:
    """Refuses a document whose apiVersion or kind is not the resource's."""
    version, kind = body.get("apiVersion"), body.get("kind")
    if version and version != resource.api_version:
        raise status_errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind and kind != resource.kind:
        if resource.type in CODECS:
            # Upstream decodes any kind as a custom resource, and then finds the object invalid.
            name = (body.get("metadata") or {}).get("name") or ""
            wrong = [status_errors.field_invalid("kind", kind, f"must be {resource.kind}")]
            raise status_errors.invalid(resource.group, str(kind), name, wrong)
        raise status_errors.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"converting ({resource.group}.{kind}) to ({resource.group}.{resource.kind}): unknown conversion"
        )
