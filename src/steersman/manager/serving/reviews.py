"""Questions to the API server: whose token is this, and may somebody do that?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from steersman.api.errors import ServerError, TooManyRequests, Unreachable
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.runtime.clock import Clock
from steersman.server.auth.users import User

Document: TypeAlias = dict[str, Any]

TOKENS: Kind[Document] = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False, dict)
ACCESS: Kind[Document] = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False, dict
)

PATIENCE = 10.0
"""Seconds for an answer, all tries together."""
TRIES = 5
PAUSE, GROWTH, JITTER = 0.5, 1.5, 0.2
"""Seconds between the first two tries, how that grows, and by what part it varies."""


async def review(api: Api, clock: Clock, kind: Kind[Document], spec: Document) -> Mapping[str, Any]:
    """The status of a review. Raises `ApiError` where there is no answer in time."""
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}, "spec": spec}
    pause = PAUSE
    # A request is begun where it was read, outside any task; only within one can time be limited.
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(PATIENCE):
            for left in reversed(range(TRIES)):
                try:
                    answer = await api.create(kind, "", body)
                    break
                except (ServerError, TooManyRequests):
                    # The server had a bad moment; whatever else it says, it would say again.
                    if not left:
                        raise
                await asyncio.sleep(pause * (1 + JITTER * clock.random.random()))
                pause *= GROWTH
    except TimeoutError:
        raise Unreachable("context deadline exceeded") from None
    status = answer.get("status")
    return status if isinstance(status, Mapping) else {}


def subject(user: User) -> Document:
    """A user as a SubjectAccessReview names one."""
    told: Document = {"user": user.name, "groups": list(user.groups)}
    if user.uid:
        told["uid"] = user.uid
    if user.extra:
        told["extra"] = {key: list(values) for key, values in user.extra.items()}
    return told


def named(told: Mapping[str, Any]) -> User:
    """A user as a TokenReview names one."""
    extra = told.get("extra") or {}
    return User(
        str(told.get("username", "")),
        str(told.get("uid", "")),
        tuple(told.get("groups") or ()),
        {key: tuple(values) for key, values in extra.items()},
    )
