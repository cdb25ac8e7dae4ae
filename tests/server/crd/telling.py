"""How answers are told: one line each, without what differs by nature. Told of two servers, lines must match."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from steersman.api.errors import ApiError, NotFound
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType

CRDS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped
NAMESPACES = load("", "v1", "Namespace").untyped
GROUP = "crd.test"

_HIDDEN = ("managedFields", "resourceVersion", "uid")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GENERATED = re.compile(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}")
_PRINTED = re.compile(r'\{"ID":.*\}: only')


class Teller:
    """Tells what an API server answers."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.lines: list[str] = []

    async def tell(self, title: str, request: Awaitable[Any]) -> None:
        self.lines.append(f"{title}: {await self.told(request)}")

    async def told(self, request: Awaitable[Any]) -> str:
        """An answer, or a refusal, as one line."""
        try:
            answer = await request
        except ApiError as error:
            return self._plain(_refusal(error))
        return self._plain(json.dumps(_shown(answer), ensure_ascii=False, sort_keys=True))

    def _plain(self, text: str) -> str:
        text = _GENERATED.sub("<name>", _UID.sub("<uid>", _TIME.sub("<time>", text)))
        return text.replace(self.namespace, "<ns>")


def _refusal(error: ApiError) -> str:
    if isinstance(error, NotFound) and not error.details:
        # Where nothing is served, a real server does not even answer with a Status.
        return "404 no such path"
    # A real server looks through fields in no particular order, and checks metadata twice.
    causes = sorted({(cause.field, cause.reason, cause.message): 0 for cause in error.causes})
    told = [f"{error.code} {error.reason}"]
    # differs: a schema as a whole is printed in the form it has in memory.
    told.append(
        _PRINTED.sub("{…}: only", error.message if len(causes) < 2 else error.message.partition(": ")[0])
    )
    if len(causes) > 1:
        told += [f"{field} {reason} {message}" for field, reason, message in causes]
    elif causes:
        told.append(f"{causes[0][0]} {causes[0][1]}")
    return " | ".join(told)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items() if name not in _HIDDEN}
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "lastTransitionTime" in value[0]:
            value = sorted(value, key=lambda condition: str(condition["type"]))
        return [_shown(item) for item in value]
    return value


# -- waiting, for servers that take their time ------------------------------------------------


async def when(api: Api, name: str, seen: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until a definition looks like this."""
    stream = api.watch(CRDS, field_selector=f"metadata.name={name}", send_initial_events=True)
    async with asyncio.timeout(30):
        async for event in stream:
            if event.type in (EventType.ADDED, EventType.MODIFIED) and seen(event.obj):  # type: ignore[arg-type]
                return


async def gone(api: Api, kind: Kind[dict[str, Any]], namespace: str, name: str) -> None:
    """Wait until an object is no more."""
    stream = api.watch(kind, namespace, field_selector=f"metadata.name={name}", send_initial_events=True)
    async with asyncio.timeout(30):
        async for event in stream:
            if event.type is EventType.DELETED:
                return
            if event.initial_end and not await _is_there(api, kind, namespace, name):
                return


async def _is_there(api: Api, kind: Kind[dict[str, Any]], namespace: str, name: str) -> bool:
    try:
        await api.get(kind, namespace, name)
    except NotFound:
        return False
    return True


def is_(type_: str, status: str = "True", reason: str = "") -> Callable[[dict[str, Any]], bool]:
    """Whether a definition has a condition."""

    def seen(definition: dict[str, Any]) -> bool:
        return any(
            each["type"] == type_ and each["status"] == status and reason in (each["reason"], "")
            for each in definition["status"].get("conditions") or ()
        )

    return seen


async def redefine(
    teller: Teller, title: str, kind: Kind[dict[str, Any]], change: Callable[[dict[str, Any]], None]
) -> None:
    """Change a definition, and wait until it counts: then whoever watches its objects is sent away."""
    api, name = teller.api, kind.resource
    stream = api.watch(kind, teller.namespace, send_initial_events=True)
    async with asyncio.timeout(30):
        async for event in stream:
            if event.initial_end:
                break
        live = await api.get(CRDS, "", name)
        change(live)
        await teller.tell(title, api.update(CRDS, "", name, live))
        async for _ in stream:
            pass
