"""The state machine of a reflector, without asyncio and without the network.

`step` is all of it: a state and an event give the next state.

::

    Empty ──> Streaming ──(initial events end)──> Watching <──┐
                 │  ^                               │  │      │ the server ended it
      refused or │  │ waited                        │  └──────┘
       cut short v  │                               │
              Paging ──(last page)──> Watching      │
                 │                                  │
                 └──────────> Broken <──────────────┘  waited, then: Watching where it was,
                                                       or Streaming when that is no longer possible
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from steersman.api.errors import (
    ApiError,
    Forbidden,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    resource_version_unavailable,
)
from steersman.client.pager import PageRequest

MAX_SERVER_ERRORS = 5
"""Internal errors in a row at the same resourceVersion after which a watch is given up for a new list."""


# -- states -----------------------------------------------------------------------------------


class Empty(msgspec.Struct, frozen=True):
    """No request has been sent yet."""


class Streaming(msgspec.Struct, frozen=True):
    """A streamed list that continues as a watch (WatchList): the cheapest list for the server."""


class Paging(msgspec.Struct, frozen=True):
    """A list in pages."""

    page: PageRequest = PageRequest()
    """The page to request next."""


class Watching(msgspec.Struct, frozen=True):
    """A watch."""

    since: str
    """The resourceVersion the watch began at."""
    failures: int = 0
    """Internal errors in a row without progress."""


class Broken(msgspec.Struct, frozen=True):
    """A failure, and the state to go on with after a delay."""

    error: Exception
    then: Streaming | Paging | Watching

    @property
    def at_least(self) -> float:
        """The seconds of the server's Retry-After; 0 without one."""
        return (self.error.retry_after or 0.0) if isinstance(self.error, ApiError) else 0.0


State: TypeAlias = Empty | Streaming | Paging | Watching | Broken


# -- events -----------------------------------------------------------------------------------


class Proceed(msgspec.Struct, frozen=True):
    """The reflector was started, or a delay has passed."""


class Paged(msgspec.Struct, frozen=True):
    """A page that is not the last was read."""

    token: str


class Synced(msgspec.Struct, frozen=True):
    """A list is complete."""

    at: str


class Ended(msgspec.Struct, frozen=True):
    """The server ended a stream."""

    at: str
    short: bool
    """Whether the stream ended at once and without progress."""
    silent: bool = False
    """Whether the stream lasted its full time without any event, not even a bookmark."""


class Failed(msgspec.Struct, frozen=True):
    """A request was refused or a stream broke."""

    error: Exception
    at: str = ""
    """For a watch: the resourceVersion reached."""


ReflectorEvent: TypeAlias = Proceed | Paged | Synced | Ended | Failed


class ShortWatch(Exception):
    """The server ends watches as soon as they begin."""


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed later, so that the cached state stays valid."""
    return isinstance(error, Unreachable | TooManyRequests | ServerError | Unauthorized | Forbidden)


def cannot_resume(resource_version: str) -> bool:
    """Whether a watch cannot continue from a resourceVersion."""
    return resource_version in ("", "0")


def step(state: State, event: ReflectorEvent) -> State:
    """The next state. Raises `ValueError` for an event that is impossible in a state."""
    match state, event:
        case Empty(), Proceed():
            return Streaming()
        case Broken(then=then), Proceed():
            return then
        case ((Streaming() | Paging()), Synced(at=at)):
            return Watching(at)
        case Paging(page=page), Paged(token=token):
            return Paging(page.following(token))

        case Streaming(), Failed(error=error):
            # An overloaded or unreachable server would not answer a list either. Otherwise a list may work where
            # a stream does not: servers without WatchList, proxies that cut streams.
            if (
                isinstance(error, TooManyRequests)
                or resource_version_unavailable(error)
                or (isinstance(error, Unreachable) and not error.uncertain)
            ):
                return Broken(error, Streaming())
            return Paging()
        case Streaming(), Ended():
            # differs: client-go streams again at once unless the stream was short.
            return Paging()

        case Paging(page=page), Failed(error=error):
            restarted = page.restarted(error)
            if restarted is not None:
                return Paging(restarted)
            # differs: client-go starts over; pages that were read stay valid as long as their token.
            return Broken(error, state if page.token and is_transient(error) else Streaming())

        case Watching(), Ended(at=at, short=short, silent=silent):
            # A server that was restored from a backup does not refuse a watch from a future resourceVersion: it
            # sends nothing until it gets there. Bookmarks would come every minute.
            onward = Streaming() if silent or cannot_resume(at) else Watching(at)
            return Broken(ShortWatch("the server ends watches at once"), onward) if short else onward
        case Watching(since=since, failures=failures), Failed(error=error, at=at):
            # differs: client-go lists anew after most errors; a resourceVersion outlives a connection.
            if resource_version_unavailable(error) or not is_transient(error) or cannot_resume(at):
                return Broken(error, Streaming())
            if type(error) is not ServerError:
                return Broken(error, Watching(at))
            # The server itself may stumble over one event each time; a list steps over it.
            failures = failures + 1 if at == since else 1
            return Broken(error, Watching(at, failures) if failures < MAX_SERVER_ERRORS else Streaming())
    raise ValueError(f"{event} is impossible in {state}")
