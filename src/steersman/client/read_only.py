"""A read-only client: get, list and watch pass, everything else raises before it is sent.

For verbs that must not change a cluster whatever they compute. That not one write is sent does not depend on the caller: there is
no path through this class to a verb that writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware

T = TypeVar("T")

READS = frozenset({"get", "list", "watch"})
"""The RBAC verbs that pass."""


class WriteAttempted(Exception):
    """A write was asked of a read-only client. Nothing was sent."""

    def __init__(self, request: ApiCall) -> None:
        of = f"/{request.subresource}" if request.subresource else ""
        super().__init__(
            f"{request.verb} {request.kind.resource}{of} is a write, and this client only reads: nothing was sent"
        )


class ReadOnlyApi(Middleware):
    """An `Api` of which only the reading verbs work. Others raise `WriteAttempted`."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        # Reads are passed on as they are, so what is promised of them still holds.
        self.capabilities = api.capabilities
        self.refused = 0
        """How many writes were attempted."""

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        if request.verb not in READS:
            self.refused += 1
            raise WriteAttempted(request)
        return send()

    def _handle_watch(
        self,
        request: ApiCall,
        send_initial_events: bool,
        watch: Callable[[], AsyncIterator[WatchEvent[T]]],
    ) -> AsyncIterator[WatchEvent[T]]:
        return watch()
