"""namespace-controller (a service): deletes the content of a terminating namespace, then its finalizer.

Pods first, then the objects of every other resource that discovery knows. The namespace's conditions say what
remains. The finalizer is removed only after a complete pass: a resource that cannot be discovered, listed or
deleted keeps the namespace.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import NAMESPACES, Namespace
from steersman.controllers.namespace import conditions
from steersman.controllers.namespace.conditions import State
from steersman.controllers.namespace.resources_deleter import Remaining, delete_content, delete_pods, is_pods
from steersman.intent.actions import Action, Address, Discover, Read, Update
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

FINALIZER = "kubernetes"
"""The finalizer in a namespace's spec that this controller removes."""
DELETION_GRACE = 5.0
"""Seconds between a deletion and the first round: until then other API servers may still admit new objects."""
MAX_BACKOFF = 60.0
"""The longest back-off, in seconds."""
FINALIZE_ATTEMPTS = 5
"""How often the finalizer is removed anew after a conflict."""

SYNC_PERIOD = Flag("namespace-sync-period", 300.0, "The period for syncing terminating namespaces.")

DOCUMENTS = NAMESPACES.untyped
"""Namespaces as plain documents, so that unknown fields survive an update."""


async def decide(seen: Namespace, now: datetime) -> Verdict:
    name = seen.metadata.name
    try:
        # Read live: other controllers edit a terminating namespace, too.
        namespace = await _set_terminating(await Read(Address(DOCUMENTS, "", name)))
    except NotFound:
        return Rest("namespace already gone")
    since = _deleted_at(namespace)
    if since is None:
        return Rest("not being deleted")
    if not _finalizers(namespace):
        return Rest("content deleted; waiting for finalizers of other controllers")
    states: dict[str, State] = {}
    resources = await _discover(states)
    remaining = await _delete_all(resources, name, since, now, states)
    namespace = await _write_conditions(namespace, states, now)
    if states.keys() & {conditions.DISCOVERY, conditions.PARSING, conditions.CONTENT}:
        raise InvalidSpec("; ".join(states[each].message for each in conditions.HEALTHY if each in states))
    if remaining.estimate:
        counts = ", ".join(f"{count} {resource}" for (resource, _), count in remaining.counts.items())
        wait = timedelta(seconds=remaining.estimate // 2 + 1)
        return Wake(wait, f"content remaining: {counts}")
    return await _finalize(namespace)


# -- content --------------------------------------------------------------------------------------


async def _discover(states: dict[str, State]) -> tuple[ApiResource, ...]:
    """The namespaced resources that can be deleted; sets the discovery conditions in ``states``."""
    try:
        found = await Discover()
    except ApiError as error:
        states[conditions.DISCOVERY] = conditions.discovery_failed(error.message, 0)
        return ()
    if found.failed:
        states[conditions.DISCOVERY] = conditions.discovery_failed(found.error_message, len(found.failed))
    if found.malformed:
        states[conditions.PARSING] = conditions.parsing_failed(found.malformed)
    return deletable(found)


def deletable(found: DiscoveryResult) -> tuple[ApiResource, ...]:
    """The namespaced resources that can be deleted."""
    return tuple(each for each in found.preferred if each.namespaced and each.supports("delete"))


async def _delete_all(
    resources: tuple[ApiResource, ...], name: str, since: datetime, now: datetime, states: dict[str, State]
) -> Remaining:
    """Deletes the content of a namespace; sets the content conditions in ``states``."""
    pods = next(filter(is_pods, resources), None)
    errors: list[str] = []
    if pods is not None:
        remaining = await delete_pods(pods, name, since, now)
        if remaining.counts:
            # As upstream: no condition says that pods remain while they keep all other objects.
            if remaining.errors:
                states[conditions.CONTENT] = conditions.deletion_failed(remaining.errors)
            return remaining
        errors = remaining.errors
    remaining = await delete_content([each for each in resources if each is not pods], name)
    remaining.errors[:0] = errors
    if remaining.errors:
        states[conditions.CONTENT] = conditions.deletion_failed(remaining.errors)
    if remaining.counts:
        states[conditions.REMAINING] = conditions.content_remaining(remaining.counts)
    if remaining.finalizers:
        states[conditions.FINALIZERS] = conditions.finalizers_remaining(remaining.finalizers)
    return remaining


# -- the namespace itself -------------------------------------------------------------------------


async def _set_terminating(namespace: dict[str, Any]) -> dict[str, Any]:
    """Sets the phase of a namespace that is being deleted to Terminating."""
    status = namespace.get("status") or {}
    if _deleted_at(namespace) is None or status.get("phase") == "Terminating":
        return namespace
    body = {**namespace, "status": {**status, "phase": "Terminating"}}
    return await _written(Update(Address(DOCUMENTS, "", _name(namespace)), body, "status"))


async def _write_conditions(
    namespace: dict[str, Any], states: dict[str, State], now: datetime
) -> dict[str, Any]:
    """Writes the conditions where they change. A failure is ignored: the next round writes them again."""
    status = namespace.get("status") or {}
    before = status.get("conditions") or []
    after = conditions.update_conditions(before, states, now)
    if after == before:
        return namespace
    body = {**namespace, "status": {**status, "conditions": after}}
    try:
        return await _written(Update(Address(DOCUMENTS, "", _name(namespace)), body, "status"))
    except ApiError:
        return namespace


async def _finalize(namespace: dict[str, Any]) -> Verdict:
    """Removes the finalizer of an empty namespace."""
    name, uid = _name(namespace), namespace["metadata"].get("uid")
    for left in reversed(range(FINALIZE_ATTEMPTS)):
        others = sorted(each for each in _finalizers(namespace) if each != FINALIZER)
        body = {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": others}}
        try:
            await _written(Update(Address(DOCUMENTS, "", name), body, "finalize"))
        except NotFound:
            return Rest("namespace already gone")
        except Conflict:
            if not left:
                raise
        else:
            if not others:
                return Rest("content deleted; finalizer removed")
            return Rest(f"content deleted; waiting for finalizers: {', '.join(others)}")
        try:
            namespace = await Read(Address(DOCUMENTS, "", name))
        except NotFound:
            return Rest("namespace already gone")
        if namespace["metadata"].get("uid") != uid:
            return Rest("namespace already gone; its name is in use again")
    raise AssertionError("unreachable")


async def _written(action: Action[dict[str, Any]]) -> dict[str, Any]:
    return await action


def _name(namespace: dict[str, Any]) -> str:
    name: str = namespace["metadata"]["name"]
    return name


def _finalizers(namespace: dict[str, Any]) -> list[str]:
    return (namespace.get("spec") or {}).get("finalizers") or []


def _deleted_at(namespace: dict[str, Any]) -> datetime | None:
    at = namespace["metadata"].get("deletionTimestamp")
    return datetime.fromisoformat(at) if isinstance(at, str) else at


def _is_terminating(namespace: Namespace) -> bool:
    return namespace.metadata.deletionTimestamp is not None


def configure(settings: Settings) -> Controller[Namespace]:
    return Controller(
        name="namespace-controller",
        aliases=("namespace",),
        watches=(Watch(NAMESPACES, when=_is_terminating, delay=DELETION_GRACE),),
        workers=Flag("concurrent-namespace-syncs", 10),
        flags=(SYNC_PERIOD,),
        configure=configure,
        decide=decide,
        resync=settings[SYNC_PERIOD],
        max_backoff=MAX_BACKOFF,
        qps_factor=20.0,
        burst_factor=100.0,
    )


controller = configure(DEFAULTS)
