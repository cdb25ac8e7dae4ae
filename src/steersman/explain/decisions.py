"""Asks the controllers: their own decisions, run over objects that are listed once, with writes answered and not sent.

A decision only hands out actions. A write is answered as a willing server would; a read is carried out, since it changes
nothing. So the verdict is that of the real controller, with get and list rights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias, cast

from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api, UndecodableObject
from steersman.client.pager import list_all
from steersman.explain.model import Decision, Ref
from steersman.explain.owners import controller_of_kind
from steersman.explain.words import count
from steersman.intent.actions import (
    Action,
    Batch,
    CreateReview,
    DirectoryError,
    Done,
    Failed,
    FileUnreadable,
    List,
    Outcome,
    Read,
    Write,
)
from steersman.intent.controller import Controller
from steersman.intent.undecodable import stand_in
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.runtime.action_table import describe, interpretation_of
from steersman.runtime.action_table.interpretation import address_of
from steersman.runtime.decision_driver import StaticCaches, WillingServer
from steersman.runtime.trace import span
from steersman.runtime.undecodable_caches import UndecodableCaches

Listed: TypeAlias = list[Object | UndecodableObject]

ASKED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "PodDisruptionBudget")
"""Kinds whose controllers decide from what is in the namespace and the nodes alone."""
MAX_ASKED = 6
"""Objects whose controllers are asked."""
MAX_ACTIONS = 1000
"""Actions after which a decision is not followed any further."""
SHOWN = 3
"""Writes of one decision that are shown."""


async def ask_controllers(
    api: Api, controllers: Iterable[Controller[Any]], subjects: Sequence[Ref], now: datetime
) -> tuple[Decision, ...]:
    """The decisions about some objects, as far as their controllers can be asked."""
    by_name = {controller.name: controller for controller in controllers}
    lists: dict[tuple[str, str], Listed | None] = {}
    found: list[Decision] = []
    for subject in subjects:
        controller = by_name.get(controller_of_kind(subject.kind))
        if subject.kind not in ASKED or controller is None or len(found) == MAX_ASKED:
            continue
        caches = await _caches(api, controller, subject.namespace, lists)
        if caches is not None:
            found.append(await _ask(api, controller, caches, subject, now))
    return tuple(found)


async def _caches(
    api: Api, controller: Controller[Any], namespace: str, lists: dict[tuple[str, str], Listed | None]
) -> StaticCaches | None:
    """The caches of a controller, of one namespace; None if a kind may not be listed."""
    caches = StaticCaches(controller)
    for watch in controller.watches:
        kind: Kind[Any] = watch.kind
        place = (kind.resource, kind.type.__qualname__)
        if place not in lists:
            lists[place] = await _list(api, kind, namespace if kind.namespaced else "")
        objects = lists[place]
        if objects is None:
            return None
        for obj in objects:
            if isinstance(obj, UndecodableObject):
                caches.put_undecodable(kind, obj.metadata, obj.error)
            else:
                caches[kind].put(obj)
    return caches


async def _list(api: Api, kind: Kind[Any], namespace: str) -> Listed | None:
    try:
        page = await list_all(api, kind, namespace, field_selector=kind.fields)
    except NotFound:
        return []
    except ApiError:
        return None
    return page.items


async def _ask(
    api: Api, controller: Controller[Any], caches: StaticCaches, subject: Ref, now: datetime
) -> Decision:
    would: list[str] = []
    try:
        seen = controller.see(UndecodableCaches(caches), Key(subject.namespace, subject.name))
        if seen is None:
            verdict = "does not see it"
        else:
            verdict = describe_verdict(await _drive(api, controller.decide(seen, now), would))
    except (ApiError, InvalidSpec) as error:
        verdict = f"fails: {error}"
    except Exception as error:  # a decision over odd objects must not hide the findings
        verdict = f"fails: {type(error).__name__}: {error}"
    more = (count(len(would) - SHOWN, "more write"),) if len(would) > SHOWN else ()
    return Decision(controller.name, subject, (*would[:SHOWN], *more), verdict)


def describe_verdict(verdict: Verdict) -> str:
    """A verdict in words."""
    match verdict:
        case Rest(because):
            return f"rests: {because}"
        case Wake(after, because):
            return f"wakes in {span(after.total_seconds())}: {because}"


async def _drive(api: Api, decision: Any, would: list[str]) -> Verdict:
    """Run a decision to its verdict; its writes are described and answered, not sent."""
    server = WillingServer()
    script = decision.__await__()
    try:
        action = script.send(None)
        for _ in range(MAX_ACTIONS):
            try:
                answer = await _answer(api, server, action, would)
            except (ApiError, FileUnreadable, DirectoryError) as error:
                action = script.throw(error)
            else:
                action = script.send(answer)
    except StopIteration as stop:
        return cast("Verdict", stop.value)
    finally:
        with suppress(RuntimeError):
            script.close()
    return Rest(f"no verdict after {MAX_ACTIONS} actions")


async def _answer(api: Api, server: WillingServer, action: Action[Any], would: list[str]) -> Any:
    if isinstance(action, Batch):
        would.append(describe(action))
        return await _batch(api, server, action)
    if isinstance(action, CreateReview):
        raise Forbidden("a review is not asked for by an explanation, which only reads")
    reader: Callable[..., Any] | None = _READERS.get(type(action))
    if reader is not None:
        return await reader(api, action)
    if isinstance(action, Write) and not _changes_nothing(action):
        would.append(describe(action))
    return interpretation_of(action).simulate(server, action)


def _changes_nothing(action: Action[Any]) -> bool:
    """Whether a status update is equal to what there is already."""
    target, status = getattr(action, "target", None), getattr(action, "status", None)
    return isinstance(target, Object) and status is not None and status == getattr(target, "status", None)


async def _batch(api: Api, server: WillingServer, batch: Batch[Any]) -> list[Outcome[Any]]:
    outcomes: list[Outcome[Any]] = []
    for action in batch.actions:
        try:
            outcomes.append(Done(await _answer(api, server, action, [])))
        except ApiError as error:
            outcomes.append(Failed(error))
    return outcomes


async def _read(api: Api, action: Read[Any]) -> Any:
    at = address_of(action.target)
    if action.subresource:
        return await api.subresource(at.kind, at.namespace, at.name, action.subresource, None, verb="get")
    return await api.get(at.kind, at.namespace, at.name)


async def _list_action(api: Api, action: List[Any]) -> list[Any]:
    page = await list_all(
        api,
        action.kind,
        action.namespace,
        label_selector=action.label_selector,
        field_selector=action.field_selector,
    )
    return [
        stand_in(action.kind, item.metadata, item.error) if isinstance(item, UndecodableObject) else item
        for item in page.items
    ]


_READERS: Mapping[type[Action[Any]], Callable[..., Any]] = {Read: _read, List: _list_action}
