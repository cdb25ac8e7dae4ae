"""The states a reflector goes through, and what follows from what happens in each.

`step` is the whole of it, and knows neither asyncio nor the network.

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

STUBBORN = 5
"""After so many internal errors in a row at the same place, a watch is given up for a new list."""


# -- states -----------------------------------------------------------------------------------


class Empty(msgspec.Struct, frozen=True):
    """Nothing has been asked yet."""


class Streaming(msgspec.Struct, frozen=True):
    """Everything is being streamed, to go on as a watch: the cheapest list for the server."""


class Paging(msgspec.Struct, frozen=True):
    """Everything is being listed, page by page."""

    page: PageRequest = PageRequest()
    """The page to request next."""


class Watching(msgspec.Struct, frozen=True):
    """Changes are being followed."""

    since: str
    """The resourceVersion the watch began at."""
    failures: int = 0
    """Internal errors in a row without getting any further."""


class Broken(msgspec.Struct, frozen=True):
    """Something failed; a pause, and on."""

    error: Exception
    then: Streaming | Paging | Watching

    @property
    def at_least(self) -> float:
        """How long the server asked us to stay away, in seconds."""
        return (self.error.retry_after or 0.0) if isinstance(self.error, ApiError) else 0.0


State: TypeAlias = Empty | Streaming | Paging | Watching | Broken


# -- what can happen --------------------------------------------------------------------------


class Went(msgspec.Struct, frozen=True):
    """On: it was started, or the pause is over."""


class Paged(msgspec.Struct, frozen=True):
    """A page came, and there are more."""

    token: str


class Synced(msgspec.Struct, frozen=True):
    """Everything that is there has come."""

    at: str


class Ended(msgspec.Struct, frozen=True):
    """The server ended a stream."""

    at: str
    short: bool
    """At once, and without getting any further."""
    silent: bool = False
    """After its full time, and without a word: not even a bookmark."""


class Failed(msgspec.Struct, frozen=True):
    """A request was refused or a stream broke."""

    error: Exception
    at: str = ""
    """For a watch: the resourceVersion reached."""


Happening: TypeAlias = Went | Paged | Synced | Ended | Failed


class ShortWatch(Exception):
    """The server ends watches as soon as they begin."""


def passing(error: Exception) -> bool:
    """Whether the same request may well succeed later, so nothing we know is in doubt."""
    return isinstance(error, Unreachable | TooManyRequests | ServerError | Unauthorized | Forbidden)


def nowhere(resource_version: str) -> bool:
    """Whether a resourceVersion is no place a watch could go on from."""
    return resource_version in ("", "0")


def step(state: State, happening: Happening) -> State:
    """What follows. Raises `ValueError` for what cannot happen in a state."""
    match state, happening:
        case Empty(), Went():
            return Streaming()
        case Broken(then=then), Went():
            return then
        case ((Streaming() | Paging()), Synced(at=at)):
            return Watching(at)
        case Paging(page=page), Paged(token=token):
            return Paging(page.following(token))

        case Streaming(), Failed(error=error):
            # An overloaded or absent server would not answer a list either. For all else a list may
            # work where a stream does not: servers that do not know how, proxies that cut streams.
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
            return Broken(error, state if page.token and passing(error) else Streaming())

        case Watching(), Ended(at=at, short=short, silent=silent):
            # A server that was restored from a backup does not refuse a watch from what is the future
            # to it: it says nothing until it gets there. Bookmarks would come every minute.
            onward = Streaming() if silent or nowhere(at) else Watching(at)
            return Broken(ShortWatch("the server ends watches at once"), onward) if short else onward
        case Watching(since=since, failures=failures), Failed(error=error, at=at):
            # differs: client-go lists anew after most errors; a resourceVersion outlives a connection.
            if resource_version_unavailable(error) or not passing(error) or nowhere(at):
                return Broken(error, Streaming())
            if type(error) is not ServerError:
                return Broken(error, Watching(at))
            # The server itself may stumble over one event each time; a list steps over it.
            failures = failures + 1 if at == since else 1
            return Broken(error, Watching(at, failures) if failures < STUBBORN else Streaming())
    raise ValueError(f"{happening} cannot happen in {state}")
