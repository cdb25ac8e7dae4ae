"""Follow a kind on any `Api` from the outside: what is there, then what changes.

For tests and benchmarks that look on while a manager works; a manager itself has reflectors.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TypeVar

from steersman.api.kinds import Object
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType, UndecodableObject

O = TypeVar("O", bound=Object)


async def follow(api: Api, kind: Kind[O], namespace: str = "") -> AsyncGenerator[tuple[EventType, O], None]:
    """All there is as ADDED, then every change, for ever.

    Raises `TypeError` for an object that is not of its type: an onlooker has no use for half a
    view.
    """
    page = await api.list(kind, namespace)
    for item in page.items:
        yield EventType.ADDED, _readable(item)
    version = page.resource_version
    while True:
        async for event in api.watch(kind, namespace, resource_version=version):
            version = event.resource_version
            if event.obj is not None:
                yield event.type, _readable(event.obj)


def _readable(obj: O | UndecodableObject) -> O:
    if isinstance(obj, UndecodableObject):
        raise TypeError(f"{obj.metadata.namespace}/{obj.metadata.name} cannot be read: {obj.error}")
    return obj


async def until(api: Api, kind: Kind[O], namespace: str, name: str, ready: Callable[[O], bool]) -> O:
    """The object, as soon as it is there and ready."""
    async with contextlib.aclosing(follow(api, kind, namespace)) as changes:
        async for event, obj in changes:
            if obj.metadata.name == name and event is not EventType.DELETED and ready(obj):
                return obj
    raise AssertionError("following has no end")


async def gone(api: Api, kind: Kind[O], namespace: str, name: str) -> None:
    """Wait until there is no object of that name."""
    page = await api.list(kind, namespace)
    if all(item.metadata.name != name for item in page.items):
        return
    version = page.resource_version
    while True:
        async for event in api.watch(kind, namespace, resource_version=version):
            version = event.resource_version
            if event.type is EventType.DELETED and event.obj is not None and event.obj.metadata.name == name:
                return


@contextlib.asynccontextmanager
async def beside(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Run things beside the body, for as long as it takes.

    One of them that fails or ends before the body does is an error: nothing goes on unobserved.
    """

    async def forever(one: Awaitable[None]) -> None:
        await one
        raise RuntimeError("what was to run beside it has ended")

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(forever(one)) for one in work]
        yield
        for task in running:
            task.cancel()
