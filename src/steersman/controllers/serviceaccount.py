"""serviceaccount-controller (a decision): creates the ServiceAccount ``default`` in every active namespace.

The API server admits no pods into a namespace without it.
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

DEFAULT_ACCOUNT = "default"


class Observation(msgspec.Struct, frozen=True):
    """A namespace, and whether its default ServiceAccount exists."""

    namespace: Namespace
    has_account: bool


def observe(caches: Caches, key: Key) -> Observation | None:
    namespace = caches[NAMESPACES].get(key)
    if namespace is None:
        return None
    account = caches[SERVICEACCOUNTS].get(Key(key.name, DEFAULT_ACCOUNT))
    return Observation(namespace, account is not None)


async def decide(seen: Observation, now: datetime) -> Verdict:
    if seen.namespace.status.phase != "Active":
        return Rest("namespace not active")
    if seen.has_account:
        return Rest("ServiceAccount exists")
    name = seen.namespace.metadata.name
    account = ServiceAccount(metadata=ObjectMeta(name=DEFAULT_ACCOUNT, namespace=name))
    try:
        await Create(SERVICEACCOUNTS, name, account)
    except AlreadyExists:
        return Rest("ServiceAccount already exists")
    except ApiError as error:
        if error.caused_by("NamespaceTerminating"):
            return Rest("namespace terminating")
        raise
    return Rest("ServiceAccount created")


def _when_deleted(caches: Caches, change: Change[ServiceAccount]) -> Iterable[Key]:
    """The namespace of a deleted ServiceAccount."""
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
