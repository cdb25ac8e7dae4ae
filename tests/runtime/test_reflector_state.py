"""What follows from what happens: the whole table of a reflector's states."""

from __future__ import annotations

import pytest

from steersman.api.errors import (
    ApiError,
    BadRequest,
    Cause,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from steersman.client.pager import PageRequest
from steersman.runtime.reflector_state import (
    MAX_SERVER_ERRORS,
    Broken,
    Empty,
    Ended,
    Failed,
    Paged,
    Paging,
    Proceed,
    ReflectorEvent,
    ShortWatch,
    State,
    Streaming,
    Synced,
    Watching,
    step,
)

EXPIRED = Expired("too old resource version")
AHEAD = ServerTimeout(
    "Too large resource version", causes=(Cause("ResourceVersionTooLarge", "Too large resource version", ""),)
)
REFUSED = Unreachable("connection refused")
RESET = Unreachable("connection reset", uncertain=True)
BUSY = TooManyRequests("later", retry_after=7.0)
BUG = ZeroDivisionError("a bug")

PASSING: list[Exception] = [
    REFUSED,
    RESET,
    BUSY,
    ServiceUnavailable("down"),
    ServerTimeout("slow"),
    Unauthorized("who?"),
    Forbidden("no"),
]
FINAL: list[Exception] = [
    BadRequest("what?"),
    NotFound("where?"),
    Invalid("no"),
    ApiError("odd", code=418),
    BUG,
]


def name(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize(
    ("state", "event", "follows"),
    [
        (Empty(), Proceed(), Streaming()),
        (Streaming(), Synced("7"), Watching("7")),
        (Paging(), Paged("more"), Paging(PageRequest("more"))),
        (Paging(PageRequest("more")), Paged("even more"), Paging(PageRequest("even more"))),
        (Paging(), Synced("7"), Watching("7")),
        (Paging(PageRequest("more")), Synced("7"), Watching("7")),
        (Watching("7"), Ended("9", short=False), Watching("9")),
        (Watching("7"), Ended("7", short=False), Watching("7")),
        (Broken(BUSY, Streaming()), Proceed(), Streaming()),
        (Broken(BUSY, Paging(PageRequest("more"))), Proceed(), Paging(PageRequest("more"))),
        (Broken(BUSY, Watching("7", 2)), Proceed(), Watching("7", 2)),
    ],
)
def test_when_all_goes_well(state: State, event: ReflectorEvent, follows: State) -> None:
    assert step(state, event) == follows


@pytest.mark.parametrize(
    "error",
    [
        BadRequest("unknown"),
        Invalid("sendInitialEvents is forbidden"),
        Forbidden("no"),
        MethodNotAllowed("no"),
        NotFound("where?"),
        ServerError("broken"),
        RESET,
        BUG,
    ],
    ids=name,
)
def test_what_cannot_be_streamed_is_listed(error: Exception) -> None:
    assert step(Streaming(), Failed(error)) == Paging()


@pytest.mark.parametrize("short", [True, False])
def test_a_stream_that_ends_before_its_initial_events_did_is_replaced_by_a_list(short: bool) -> None:
    assert step(Streaming(), Ended("", short=short)) == Paging()


@pytest.mark.parametrize("error", [BUSY, REFUSED, EXPIRED, AHEAD], ids=name)
def test_a_server_that_would_not_answer_a_list_either_is_left_alone_for_a_while(error: Exception) -> None:
    assert step(Streaming(), Failed(error)) == Broken(error, Streaming())


@pytest.mark.parametrize("error", [EXPIRED, AHEAD], ids=name)
def test_pages_that_expire_are_read_again_in_one_piece_at_once(error: Exception) -> None:
    assert step(Paging(PageRequest("more")), Failed(error)) == Paging(PageRequest("", 0))


@pytest.mark.parametrize("state", [Paging(), Paging(PageRequest("", 0)), Paging(PageRequest("more", 0))])
def test_a_list_that_expires_without_pages_is_begun_anew_after_a_pause(state: Paging) -> None:
    assert step(state, Failed(EXPIRED)) == Broken(EXPIRED, Streaming())


@pytest.mark.parametrize("error", PASSING, ids=name)
def test_a_list_goes_on_at_the_page_it_had_reached(error: Exception) -> None:
    assert step(Paging(PageRequest("more")), Failed(error)) == Broken(error, Paging(PageRequest("more")))
    assert step(Paging(), Failed(error)) == Broken(error, Streaming())


@pytest.mark.parametrize("error", FINAL, ids=name)
def test_a_list_that_is_refused_begins_anew(error: Exception) -> None:
    assert step(Paging(PageRequest("more")), Failed(error)) == Broken(error, Streaming())


@pytest.mark.parametrize("error", PASSING, ids=name)
def test_a_watch_that_breaks_goes_on_where_it_was(error: Exception) -> None:
    assert step(Watching("7"), Failed(error, "9")) == Broken(error, Watching("9"))


@pytest.mark.parametrize("error", [EXPIRED, AHEAD, *FINAL], ids=name)
def test_a_watch_whose_place_is_gone_leads_to_a_new_list(error: Exception) -> None:
    assert step(Watching("7"), Failed(error, "9")) == Broken(error, Streaming())


@pytest.mark.parametrize("cannot_resume", ["", "0"])
def test_a_watch_from_nowhere_leads_to_a_new_list(cannot_resume: str) -> None:
    assert step(Watching(cannot_resume), Failed(REFUSED, cannot_resume)) == Broken(REFUSED, Streaming())
    assert step(Watching(cannot_resume), Ended(cannot_resume, short=False)) == Streaming()


def test_a_watch_that_brought_nothing_in_all_its_time_leads_to_a_new_list() -> None:
    assert step(Watching("7"), Ended("7", short=False, silent=True)) == Streaming()


def test_a_watch_that_ends_at_once_without_a_word_is_a_failure() -> None:
    state = step(Watching("7"), Ended("7", short=True))
    assert isinstance(state, Broken)
    assert isinstance(state.error, ShortWatch)
    assert state.then == Watching("7")


def test_a_watch_the_server_stumbles_over_again_and_again_is_given_up_for_a_list() -> None:
    error = ServerError("etcd event received with PrevKv=nil")
    state: State = Watching("7")
    for failures in range(1, MAX_SERVER_ERRORS):
        state = step(state, Failed(error, "7"))
        assert state == Broken(error, Watching("7", failures))
        state = step(state, Proceed())
    assert step(state, Failed(error, "7")) == Broken(error, Streaming())


def test_getting_further_clears_a_watch_of_its_failures() -> None:
    error = ServerError("oops")
    assert step(Watching("7", 4), Failed(error, "8")) == Broken(error, Watching("8", 1))
    assert step(Watching("7", 4), Failed(REFUSED, "7")) == Broken(REFUSED, Watching("7"))


def test_the_server_may_say_how_long_to_stay_away() -> None:
    assert Broken(BUSY, Streaming()).at_least == 7.0
    assert Broken(REFUSED, Streaming()).at_least == 0.0
    assert Broken(BUG, Streaming()).at_least == 0.0


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (Empty(), Synced("7")),
        (Streaming(), Paged("more")),
        (Streaming(), Proceed()),
        (Paging(), Ended("7", short=False)),
        (Watching("7"), Synced("7")),
        (Watching("7"), Paged("more")),
        (Broken(BUSY, Streaming()), Failed(BUSY)),
    ],
)
def test_what_cannot_happen_is_a_mistake(state: State, event: ReflectorEvent) -> None:
    with pytest.raises(ValueError, match="is impossible"):
        step(state, event)


ERRORS: list[Exception] = [*PASSING, *FINAL, EXPIRED, AHEAD, ServerError("oops")]


@pytest.mark.parametrize("error", ERRORS, ids=name)
@pytest.mark.parametrize(
    "state",
    [
        Streaming(),
        Paging(),
        Paging(PageRequest("t")),
        Paging(PageRequest("t", 0)),
        Watching("7"),
        Watching(""),
    ],
)
def test_after_any_error_something_follows_and_no_error_spins(state: State, error: Exception) -> None:
    """The same error over and over must lead to a pause within two steps."""
    for _ in range(3):
        state = step(state, Failed(error, "7"))
        if isinstance(state, Broken):
            return
    pytest.fail(f"{error!r} is answered by asking again at once, for ever")
