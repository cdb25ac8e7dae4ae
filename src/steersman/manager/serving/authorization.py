"""May they: paths that are everybody's, the group that may do anything, and else the API server is asked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.bounded_cache import ExpiringCache
from steersman.client.api import Api
from steersman.manager.flags import UsageError
from steersman.manager.serving.reviews import ACCESS, review, subject
from steersman.runtime.clock import Clock
from steersman.server.auth.attributes import Decision
from steersman.server.auth.users import MASTERS, User

LARGEST = 10_000
"""Bytes of a question beyond which its answer is not remembered."""


class Paths:
    """Paths that everybody may read; one that ends in ``*`` stands for all that begin so."""

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


class Access:
    """Asks the API server whether somebody may, and remembers what it said."""

    def __init__(self, api: Api, clock: Clock, *, allowed: float, denied: float) -> None:
        """``allowed`` and ``denied`` are the seconds for which an answer holds."""
        self._api = api
        self._clock = clock
        self._ttl = {True: allowed, False: denied}
        self._known: ExpiringCache[bytes, Decision] = ExpiringCache(clock.monotonic, 8192)

    async def ask(self, user: User, verb: str, path: str) -> Decision:
        """Raises `ApiError` where there is no answer."""
        spec = {**subject(user), "nonResourceAttributes": {"path": path, "verb": verb}}
        key = msgspec.json.encode(spec)
        known = self._known.get(key)
        if known is not None:
            return known
        status = await review(self._api, self._clock, ACCESS, spec)
        decision = Decision(
            bool(status.get("allowed")) and not status.get("denied"), str(status.get("reason") or "")
        )
        if len(key) < LARGEST:
            self._known.put(key, decision, self._ttl[decision.allowed])
        return decision


class Authorizer:
    """Says what clients may do."""

    def __init__(self, paths: Paths, access: Access | None = None) -> None:
        """Without ``access`` only the paths are allowed, and everything to administrators."""
        self._paths = paths
        self._access = access

    async def authorize(self, user: User, verb: str, path: str) -> Decision:
        """Raises `ApiError` where nobody could say."""
        if MASTERS in user.groups or path in self._paths:
            return Decision(True)
        if self._access is None:
            return Decision(False)
        return await self._access.ask(user, verb, path)
