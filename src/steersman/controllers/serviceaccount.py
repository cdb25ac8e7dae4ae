"""serviceaccount (a decision): every active namespace has a ServiceAccount named default.

The API server admits no pod into a namespace before this account is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.kinds import NAMESPACES, SERVICEACCOUNTS, Namespace, ObjectMeta, ServiceAccount
from steersman.api.scheme import Key
from steersman.intent.actions import Create
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

WANTED = "default"


class Seen(msgspec.Struct, frozen=True):
    namespace: Namespace
    present: bool


def observe(caches: Caches, key: Key) -> Seen | None:
    namespace = caches[NAMESPACES].get(key)
    if namespace is None:
        return None
    account = caches[SERVICEACCOUNTS].get(Key(key.name, WANTED))
    return Seen(namespace, account is not None)


async def decide(seen: Seen, now: datetime) -> Verdict:
    if seen.namespace.status.phase != "Active":
        return Rest("the namespace is not active")
    if seen.present:
        return Rest("the account is there")
    name = seen.namespace.metadata.name
    account = ServiceAccount(metadata=ObjectMeta(name=WANTED, namespace=name))
    try:
        await Create(SERVICEACCOUNTS, name, account)
    except AlreadyExists:
        return Rest("the account is there, the cache will show it")
    except ApiError as error:
        if error.caused_by("NamespaceTerminating"):
            return Rest("the namespace is going away")
        raise
    return Rest("created the account")


def _when_deleted(caches: Caches, change: Change[ServiceAccount]) -> Iterable[Key]:
    """Only a deletion matters: somebody removed an account that must be there."""
    return (Key("", change.obj.metadata.namespace),) if change.new is None else ()


controller = Controller(
    name="serviceaccount-controller",
    aliases=("serviceaccount",),
    service_account="service-account-controller",
    watches=(Watch(NAMESPACES), Watch(SERVICEACCOUNTS, to=_when_deleted)),
    workers=1,
    observe=observe,
    decide=decide,
)
