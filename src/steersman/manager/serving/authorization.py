"""Authorization of requests: always-allowed paths, system:masters, else SubjectAccessReview."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.bounded_cache import ExpiringCache
from steersman.api.clock import Clock
from steersman.client.api import Api
from steersman.manager.flags import UsageError
from steersman.manager.serving.reviews import ACCESS, Document, review, subject
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.users import MASTERS, User

CACHED_SIZE = 10_000
"""Maximum bytes of a review whose result is cached."""


class AllowedPaths:
    """Paths that every client may read; a trailing ``*`` matches all paths with that prefix."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Raises `UsageError`."""
        bare = [path.removeprefix("/") for path in paths]
        for path in bare:
            if "*" in path[:-1]:
                raise UsageError(f'--authorization-always-allow-paths: only trailing * allowed in "{path}"')
        self._whole = frozenset(path for path in bare if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in bare if path.endswith("*"))

    def __contains__(self, path: str) -> bool:
        path = path.removeprefix("/")
        return path in self._whole or path.startswith(self._prefixes)


class AccessReviewer:
    """Authorizes requests by SubjectAccessReview, and caches the results."""

    def __init__(self, api: Api, clock: Clock, *, allowed: float, denied: float) -> None:
        """``allowed`` and ``denied`` are the seconds for which a result is cached."""
        self._api = api
        self._clock = clock
        self._ttl = {True: allowed, False: denied}
        self._known: ExpiringCache[bytes, Decision] = ExpiringCache(clock.monotonic, 8192)

    async def review(self, user: User, verb: str, path: str) -> Decision:
        """Review a request for a path. Raises `ApiError`."""
        return await self._review({**subject(user), "nonResourceAttributes": {"path": path, "verb": verb}})

    async def review_resource(self, attributes: Attributes, version: str) -> Decision:
        """Review a request for a resource. Raises `ApiError`."""
        fields = {
            "group": attributes.group,
            "version": version,
            "resource": attributes.resource,
            "verb": attributes.verb,
            "namespace": attributes.namespace,
            "name": attributes.name,
        }
        wanted = {name: value for name, value in fields.items() if value}
        return await self._review({**subject(attributes.user), "resourceAttributes": wanted})

    async def _review(self, spec: Document) -> Decision:
        key = msgspec.json.encode(spec)
        known = self._known.get(key)
        if known is not None:
            return known
        status = await review(self._api, self._clock, ACCESS, spec)
        decision = Decision(
            bool(status.get("allowed")) and not status.get("denied"), str(status.get("reason") or "")
        )
        if len(key) < CACHED_SIZE:
            self._known.put(key, decision, self._ttl[decision.allowed])
        return decision


class Authorizer:
    """Decides whether a user may access a path."""

    def __init__(self, paths: AllowedPaths, reviewer: AccessReviewer | None = None) -> None:
        """Without ``reviewer`` only the paths are allowed, and everything to system:masters."""
        self._paths = paths
        self._reviewer = reviewer

    async def authorize(self, user: User, verb: str, path: str) -> Decision:
        """Authorize a request. Raises `ApiError` where the review fails."""
        if MASTERS in user.groups or path in self._paths:
            return Decision(True)
        if self._reviewer is None:
            return Decision(False)
        return await self._reviewer.review(user, verb, path)

    async def authorize_resource(self, attributes: Attributes, version: str) -> Decision:
        """Authorize a request for a resource of a version. Raises `ApiError` where the review fails."""
        if MASTERS in attributes.user.groups:
            return Decision(True)
        if self._reviewer is None:
            return Decision(False)
        return await self._reviewer.review_resource(attributes, version)
