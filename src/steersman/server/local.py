"""`Api` in the same process: the server's own frozen structs, nothing serialised.

Whoever asks with a view of a kind is given the full struct, which has all the view's fields; whoever asks
for documents is given documents. Every request takes one turn of the event loop before it is served, so
others get theirs between any two requests of a client, as they would over a network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from steersman.api.discovery import Discovered
from steersman.api.errors import NotFound
from steersman.api.partial_object import metadata_only
from steersman.api.scheme import Kind
from steersman.client.api import Page, UndecodableObject, WatchEvent
from steersman.server import status_errors
from steersman.server.apply.options import APPLY_YAML, validate_patch_options
from steersman.server.codec.convert import FORMS, adopt, document
from steersman.server.discovery.in_process import discovered
from steersman.server.registry.graceful_deletion import Options
from steersman.server.registry.resources import Resource
from steersman.server.rest import apply as applying
from steersman.server.rest import list as listing
from steersman.server.rest import patch as patching
from steersman.server.rest import subresources, verbs
from steersman.server.server import Server
from steersman.server.storage.selection import select
from steersman.server.storage.stream import WatchStream, turn
from steersman.server.storage.watch import IdleWatch, Subscription

T = TypeVar("T")


class LocalApi:
    """A client of a server in the same process."""

    steady = True

    def __init__(self, server: Server, user: str = "system:admin", manager: str = "steersman") -> None:
        """``manager`` is who owns the fields that are written here, unless a request says otherwise."""
        self.server = server
        self.user = user
        self.manager = manager
        self._discovered = (-1, Discovered())

    # -- reading ------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        return _answer(kind, resource, self.server.get(resource, _scope(resource, namespace), name))

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
        self.server.reap(resource)
        found = listing.page(
            self.server.store,
            self.server.table(resource),
            select(resource, namespace, label_selector, field_selector),
            limit=limit,
            continue_=continue_,
            version=resource_version,
            match=resource_version_match,
        )
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
    ) -> AsyncIterator[WatchEvent[T | UndecodableObject]]:
        server = self.server

        def begin() -> Subscription:
            resource = server.registry.of(kind)
            server.reap(resource)
            selection = select(resource, namespace, label_selector, field_selector)
            version = listing.parse_version(resource_version)
            if send_initial_events and version > server.store.revision:
                raise status_errors.too_new(version, server.store.revision)
            since = None if send_initial_events else version or None
            return server.table(resource).watch(selection, since=since, initial_end=send_initial_events)

        return WatchStream(
            server.store,
            begin,
            transform=lambda: _shape(kind, server.registry.of(kind)),
            timeout=timeout_seconds,
        )

    def rests(self, kind: Kind[Any], wake: Callable[[], None]) -> IdleWatch | None:
        """See `steersman.client.capabilities.rests`."""
        try:
            resource = self.server.registry.of(kind)
        except NotFound:
            return None
        self.server.reap(resource)
        return self.server.table(resource).idle_watch(select(resource, "", "", kind.fields), wake)

    async def discover(self) -> Discovered:
        await turn()
        generation = self.server.registry.generation
        if self._discovered[0] != generation:
            self._discovered = generation, discovered(self.server.registry)
        return self._discovered[1]

    async def document(self, path: str) -> dict[str, Any]:
        # Loaded when somebody asks: most never do.
        from steersman.server.discovery import openapi_documents

        await turn()
        return openapi_documents.document(self.server, path)

    # -- writing ------------------------------------------------------------------------------

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        obj = _body(resource, body)
        made = verbs.create(self.server, resource, namespace, obj, user=self.user, manager=self.manager)
        return _answer(kind, resource, made)

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        obj = _body(resource, body)
        namespace = _scope(resource, namespace)
        updated = verbs.update(
            self.server, resource, namespace, name, obj, user=self.user, manager=self.manager
        )
        return _answer(kind, resource, updated)

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        obj = _body(resource, body)
        namespace = _scope(resource, namespace)
        updated = verbs.update_status(
            self.server, resource, namespace, name, obj, user=self.user, manager=self.manager
        )
        return _answer(kind, resource, updated)

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = patching.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        await turn()
        resource = self.server.registry.of(kind)
        namespace = _scope(resource, namespace)
        if subresource:
            _has(resource, subresource, name)
        validate_patch_options(content_type, field_manager, force or None)
        manager = field_manager or self.manager
        if subresource == "scale" and content_type == APPLY_YAML and resource.type not in FORMS:
            said = body if isinstance(body, Mapping) else {}
            scale = subresources.apply_scale(
                self.server, resource, namespace, name, said, manager=manager, force=force, user=self.user
            )
            return document("autoscaling/v1", "Scale", scale)  # type: ignore[return-value]
        if subresource == "scale":
            answer: Any = subresources.scale(
                self.server,
                resource,
                namespace,
                name,
                lambda scale: patching.applied(scale, body, content_type),
                self.user,
                manager,
            )
            return answer  # type: ignore[no-any-return]
        if content_type == APPLY_YAML:
            applied = applying.apply(
                self.server,
                resource,
                namespace,
                name,
                body if isinstance(body, Mapping) else {},
                manager=manager,
                force=force,
                subresource=subresource,
                user=self.user,
            )
            return _answer(kind, resource, applied.obj)
        patched = verbs.patch(
            self.server,
            resource,
            namespace,
            name,
            lambda old: patching.patched(resource, old, body, content_type),
            subresource=subresource,
            user=self.user,
            manager=manager,
        )
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
        options = Options(uid, resource_version, propagation, grace)
        verbs.delete(self.server, resource, _scope(resource, namespace), name, options, user=self.user)

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
        if resource.namespaced and not namespace:
            raise status_errors.unsupported(resource.group, resource.plural, "deletecollection")
        selection = select(resource, namespace, label_selector, field_selector)
        options = Options(propagation=propagation)
        verbs.delete_collection(self.server, resource, selection, options, user=self.user)

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
        _has(resource, subresource, name)
        namespace = _scope(resource, namespace)
        return subresources.call(
            self.server, resource, namespace, name, subresource, verb, body or {}, self.user, self.manager
        )


def _scope(resource: Resource, namespace: str) -> str:
    return namespace if resource.namespaced else ""


def _has(resource: Resource, subresource: str, name: str) -> None:
    if subresource not in resource.subresources:
        if resource.type in FORMS:
            # What custom resources have is no part of the paths there are.
            raise status_errors.not_found(resource.group, resource.plural, name)
        raise NotFound("the server could not find the requested resource", reason="NotFound")


def _answer(kind: Kind[T], resource: Resource, obj: Any) -> T:
    if kind.type is dict:
        return document(resource.api_version, resource.kind, obj)  # type: ignore[return-value]
    form = FORMS.get(resource.type)
    if form is not None and not metadata_only(kind):
        return form.view(kind.type, resource.api_version, resource.kind, obj)  # type: ignore[no-any-return]
    return obj  # type: ignore[no-any-return]


def _shape(kind: Kind[Any], resource: Resource) -> Callable[[Any], Any] | None:
    """What makes a stored object into what a client asks for; None where it is that already."""
    serve = resource.serve
    if kind.type is not dict and (resource.type not in FORMS or metadata_only(kind)):
        return serve

    def shape(obj: Any) -> Any:
        try:
            return _answer(kind, resource, obj if serve is None else serve(obj))
        except ValueError as error:
            return UndecodableObject(obj.metadata, str(error))

    return shape


def _body(resource: Resource, body: object) -> Any:
    """The body of a request as a full struct. Raises `BadRequest` for what is none."""
    if not isinstance(body, msgspec.Struct) and isinstance(body, Mapping):
        _meant(resource, body)
    try:
        return adopt(resource.type, body)
    except (ValueError, RecursionError) as error:
        raise status_errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        ) from None


def _meant(resource: Resource, body: Mapping[str, Any]) -> None:
    """A document that says what it is must be what the path says."""
    version, kind = body.get("apiVersion"), body.get("kind")
    if version and version != resource.api_version:
        raise status_errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind and kind != resource.kind:
        if resource.type in FORMS:
            # Any kind can be read as such a resource; it is the object that is wrong.
            name = (body.get("metadata") or {}).get("name") or ""
            wrong = [status_errors.wrong("kind", kind, f"must be {resource.kind}")]
            raise status_errors.invalid(resource.group, str(kind), name, wrong)
        raise status_errors.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"converting ({resource.group}.{kind}) to ({resource.group}.{resource.kind}): unknown conversion"
        )
