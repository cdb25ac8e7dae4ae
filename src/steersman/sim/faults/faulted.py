"""`Faulted`: an `Api` in which the faults of a stage happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from steersman.api.errors import Unreachable
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, Unreadable, WatchEvent
from steersman.sim.faults.fault import Call, Events
from steersman.sim.faults.stage import Stage, forever
from steersman.sim.faults.watches import close

if TYPE_CHECKING:
    from steersman.api.discovery import Discovered

T = TypeVar("T")


class Faulted:
    """The ten verbs of one manager in one of its lives, through all faults, in the order they are listed."""

    def __init__(self, api: Api, stage: Stage) -> None:
        self._api = api
        self._stage = stage
        self._life = stage.life

    @property
    def dead(self) -> bool:
        """Whether the manager this belongs to is gone."""
        return self._stage.life != self._life

    # -- reading ------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        return await self._ask("get", kind, namespace, name, lambda: self._api.get(kind, namespace, name))

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
    ) -> Page[T | Unreadable]:
        return await self._ask(
            "list",
            kind,
            namespace,
            "",
            lambda: self._api.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_=continue_,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            ),
        )

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
    ) -> AsyncIterator[WatchEvent[T | Unreadable]]:
        def begin() -> Events:
            return self._api.watch(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                resource_version=resource_version,
                send_initial_events=send_initial_events,
                timeout_seconds=timeout_seconds,
            )

        return self._follow(kind, namespace, begin, send_initial_events)

    async def _follow(
        self, kind: Kind[Any], namespace: str, begin: Callable[[], Events], initial: bool
    ) -> Events:
        call = self._call("watch", kind, namespace, "", initial)
        for armed in self._stage.armed:
            await armed.before(call)
        events = begin()
        for armed in self._stage.armed:
            events = armed.stream(call, events)
        try:
            async for event in events:
                if self.dead:
                    await forever()
                yield event
        finally:
            await close(events)

    # -- writing ------------------------------------------------------------------------------

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        return await self._ask("create", kind, namespace, "", lambda: self._api.create(kind, namespace, body))

    async def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        return await self._ask(
            "update", kind, namespace, name, lambda: self._api.update(kind, namespace, name, body)
        )

    async def update_status(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        return await self._ask(
            "update_status",
            kind,
            namespace,
            name,
            lambda: self._api.update_status(kind, namespace, name, body),
        )

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        return await self._ask(
            "patch",
            kind,
            namespace,
            name,
            lambda: self._api.patch(
                kind,
                namespace,
                name,
                body,
                content_type=content_type,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
            ),
        )

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
        await self._ask(
            "delete",
            kind,
            namespace,
            name,
            lambda: self._api.delete(
                kind,
                namespace,
                name,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace=grace,
            ),
        )

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
    ) -> None:
        await self._ask(
            "delete_collection",
            kind,
            namespace,
            "",
            lambda: self._api.delete_collection(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                propagation=propagation,
            ),
        )

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
        return await self._ask(
            "get" if verb == "get" else "subresource",
            kind,
            namespace,
            name,
            lambda: self._api.subresource(kind, namespace, name, subresource, body, verb=verb),
        )

    async def discover(self) -> Discovered:
        call = self._stage.call("discover", "", "", "", "")
        return await self._through(call, self._api.discover)

    async def document(self, path: str) -> dict[str, Any]:
        call = self._stage.call("document", "", "", "", path)
        return await self._through(call, lambda: self._api.document(path))

    # -- through all faults -------------------------------------------------------------------

    def _call(self, verb: str, kind: Kind[Any], namespace: str, name: str, initial: bool = False) -> Call:
        if self.dead:
            raise Unreachable("this manager is gone")
        return self._stage.call(verb, kind.resource, kind.plural, namespace, name, initial)

    async def _ask(
        self,
        verb: str,
        kind: Kind[Any],
        namespace: str,
        name: str,
        send: Callable[[], Awaitable[T]],
    ) -> T:
        return await self._through(self._call(verb, kind, namespace, name), send)

    async def _through(self, call: Call, send: Callable[[], Awaitable[T]]) -> T:
        stage = self._stage
        for armed in stage.armed:
            await armed.before(call)
        answer = await send()
        for armed in stage.armed:
            answer = await armed.after(call, answer)
        if self.dead:
            # The request was on its way when the manager died: it happened, and nobody hears of it.
            await forever()
        return answer
