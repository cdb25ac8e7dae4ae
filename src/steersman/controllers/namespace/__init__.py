"""namespace (a service): empty a namespace that is being deleted, and let it go when nothing is left in it.

Pods first, then everything else that discovery knows of. What is left is said in the namespace's conditions.
It is let go only after a complete look at everything the server serves: what could not be discovered,
listed or deleted keeps it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from steersman.api.discovery import Discovered, Resource
from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import NAMESPACES, Namespace
from steersman.controllers.namespace import conditions
from steersman.controllers.namespace.conditions import Word
from steersman.controllers.namespace.content import Remains, empty, empty_pods, is_pods
from steersman.intent.actions import Action, Address, Discover, Read, Update
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

FINALIZER = "kubernetes"
"""The one in a namespace's spec that is ours."""
GRACE = 5.0
"""Seconds until a change is looked at: other API servers must have seen that nothing may be created here."""
LONGEST = 60.0
"""Seconds between two tries, at most."""
TRIES = 5

DOCUMENTS = NAMESPACES.untyped
"""Namespaces as they are on the wire: what is not ours passes through untouched."""


async def decide(seen: Namespace, now: datetime) -> Verdict:
    name = seen.metadata.name
    try:
        # Others edit a namespace that is going, too: the cache may not show it yet.
        namespace = await _terminating(await Read(Address(DOCUMENTS, "", name)))
    except NotFound:
        return Rest("gone")
    since = _deleted_at(namespace)
    if since is None:
        return Rest("is not being deleted")
    if not _finalizers(namespace):
        return Rest("is empty, and waits for others to let it go")
    words: dict[str, Word] = {}
    found = await _discover(words)
    remains = await _empty(found, name, since, now, words)
    namespace = await _say(namespace, words, now)
    if words.keys() & {conditions.DISCOVERY, conditions.PARSING, conditions.CONTENT}:
        raise InvalidSpec("; ".join(words[each].message for each in conditions.FINE if each in words))
    if remains.estimate:
        left = ", ".join(f"{count} {resource}" for (resource, _), count in remains.counts.items())
        wait = timedelta(seconds=remains.estimate // 2 + 1)
        return Wake(wait, f"not empty yet: {left}")
    return await _finalize(namespace)


# -- what is in it --------------------------------------------------------------------------------


async def _discover(words: dict[str, Word]) -> tuple[Resource, ...]:
    """All that may be in a namespace and can be deleted; says so where that is not all."""
    try:
        found = await Discover()
    except ApiError as error:
        words[conditions.DISCOVERY] = conditions.undiscovered(error.message, 0)
        return ()
    if found.failed:
        words[conditions.DISCOVERY] = conditions.undiscovered(found.complaint, len(found.failed))
    if found.malformed:
        words[conditions.PARSING] = conditions.unparsed(found.malformed)
    return deletable(found)


def deletable(found: Discovered) -> tuple[Resource, ...]:
    """What of all that is served may be in a namespace and can be deleted."""
    return tuple(each for each in found.preferred if each.namespaced and each.can("delete"))


async def _empty(
    resources: tuple[Resource, ...], name: str, since: datetime, now: datetime, words: dict[str, Word]
) -> Remains:
    pods = next(filter(is_pods, resources), None)
    if pods is not None:
        remains = await empty_pods(pods, name, since, now)
        if remains.counts:
            # As upstream: of pods that keep all else waiting no condition says that they remain.
            if remains.errors:
                words[conditions.CONTENT] = conditions.failed(remains.errors)
            return remains
        errors = remains.errors
    else:
        errors = []
    remains = await empty([each for each in resources if each is not pods], name)
    remains.errors[:0] = errors
    if remains.errors:
        words[conditions.CONTENT] = conditions.failed(remains.errors)
    if remains.counts:
        words[conditions.REMAINING] = conditions.remaining(remains.counts)
    if remains.finalizers:
        words[conditions.FINALIZERS] = conditions.finalizers(remains.finalizers)
    return remains


# -- the namespace itself -------------------------------------------------------------------------


async def _terminating(namespace: dict[str, Any]) -> dict[str, Any]:
    """A namespace that is being deleted, with the phase that says so."""
    status = namespace.get("status") or {}
    if _deleted_at(namespace) is None or status.get("phase") == "Terminating":
        return namespace
    body = {**namespace, "status": {**status, "phase": "Terminating"}}
    return await _written(Update(Address(DOCUMENTS, "", _name(namespace)), body, "status"))


async def _say(namespace: dict[str, Any], words: dict[str, Word], now: datetime) -> dict[str, Any]:
    """Write the conditions, where they change. A failure is no reason to stop: they are said again."""
    status = namespace.get("status") or {}
    before = status.get("conditions") or []
    after = conditions.updated(before, words, now)
    if after == before:
        return namespace
    body = {**namespace, "status": {**status, "conditions": after}}
    try:
        return await _written(Update(Address(DOCUMENTS, "", _name(namespace)), body, "status"))
    except ApiError:
        return namespace


async def _finalize(namespace: dict[str, Any]) -> Verdict:
    """Take our finalizer off: nothing is left."""
    name, uid = _name(namespace), namespace["metadata"].get("uid")
    for left in reversed(range(TRIES)):
        others = sorted(each for each in _finalizers(namespace) if each != FINALIZER)
        body = {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": others}}
        try:
            await _written(Update(Address(DOCUMENTS, "", name), body, "finalize"))
        except NotFound:
            return Rest("gone")
        except Conflict:
            if not left:
                raise
        else:
            return Rest(f"empty, but others hold it: {', '.join(others)}" if others else "empty: let go")
        try:
            namespace = await Read(Address(DOCUMENTS, "", name))
        except NotFound:
            return Rest("gone")
        if namespace["metadata"].get("uid") != uid:
            return Rest("gone, and another has its name")
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


def _going(namespace: Namespace) -> bool:
    return namespace.metadata.deletionTimestamp is not None


PERIOD = Flag(
    "namespace-sync-period", 300.0, "How often namespaces that are being deleted are looked at again."
)


def configure(settings: Settings) -> Controller[Namespace]:
    return Controller(
        name="namespace-controller",
        aliases=("namespace",),
        watches=(Watch(NAMESPACES, when=_going, delay=GRACE),),
        workers=Flag("concurrent-namespace-syncs", 10),
        flags=(PERIOD,),
        configure=configure,
        decide=decide,
        resync=settings[PERIOD],
        max_backoff=LONGEST,
        qps_factor=20.0,
        burst_factor=100.0,
    )


controller = configure(DEFAULTS)
