"""TokenReview and SubjectAccessReview: delegated authentication and authorization."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from steersman.api.clock import Clock
from steersman.api.errors import ServerError, TooManyRequests, Unreachable
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.server.auth.users import User

Document: TypeAlias = dict[str, Any]

TOKENS: Kind[Document] = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False, dict)
ACCESS: Kind[Document] = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False, dict
)

TIMEOUT = 10.0
"""Seconds for a review, with all its retries."""
ATTEMPTS = 5
PAUSE, GROWTH, JITTER = 0.5, 1.5, 0.2
"""Seconds before the first retry, the factor by which they grow, and the random part."""


async def review(api: Api, clock: Clock, kind: Kind[Document], spec: Document) -> Mapping[str, Any]:
    """Create a review and return its status. Raises `ApiError` where there is no answer in time."""
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}, "spec": spec}
    pause = PAUSE
    # A request starts outside any task, but asyncio.timeout needs one.
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(TIMEOUT):
            for left in reversed(range(ATTEMPTS)):
                try:
                    answer = await api.create(kind, "", body)
                    break
                except (ServerError, TooManyRequests):
                    # Temporary errors. Any other error would be the same again.
                    if not left:
                        raise
                await asyncio.sleep(pause * (1 + JITTER * clock.random.random()))
                pause *= GROWTH
    except TimeoutError:
        raise Unreachable("context deadline exceeded") from None
    status = answer.get("status")
    return status if isinstance(status, Mapping) else {}


def subject(user: User) -> Document:
    """The user fields of a SubjectAccessReviewSpec."""
    subject: Document = {"user": user.name, "groups": list(user.groups)}
    if user.uid:
        subject["uid"] = user.uid
    if user.extra:
        subject["extra"] = {key: list(values) for key, values in user.extra.items()}
    return subject


def reviewed_user(info: Mapping[str, Any]) -> User:
    """The user in the status of a TokenReview."""
    extra = info.get("extra") or {}
    return User(
        str(info.get("username", "")),
        str(info.get("uid", "")),
        tuple(info.get("groups") or ()),
        {key: tuple(values) for key, values in extra.items()},
    )
