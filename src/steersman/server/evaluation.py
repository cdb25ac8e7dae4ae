"""Evaluation of CEL beside the event loop: expressions that cost much are evaluated in a thread, while other requests go on.

A request is carried out by synchronous functions. What its expressions may cost at once is its `SLICE`; a unit of expressions that would
cost more raises `EvaluationNeeded` before anything is written. `steersman.server.rest.restart` has the `EvaluationThread` evaluate it and runs the
request again with the result, as it does with the answers of webhooks. A server without a thread evaluates everything at once: under virtual
time no client waits.

A unit is a function of a `Meter` that reads nothing but values that do not change. What it asks the server for, which is the decision of an
authorizer alone, is asked on the event loop (`on_loop`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from steersman.server.calls import Call, CallNeeded

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

SLICE = 25_000
"""The cost of expressions that a request evaluates on the event loop: at most some 40 ms, and far more than most objects need."""
UNLIMITED = 1 << 62
_LOOP_TIMEOUT = 30.0
"""Seconds that the thread waits for the event loop."""


class TooCostly(Exception):
    """A unit costs more than the meter has left. Not an `EvaluationError`, which expressions may ignore."""


class Cancelled(Exception):
    """The request of a unit has ended, or its time has."""


class Meter:
    """The cost that expressions may have in all."""

    __slots__ = ("_ended", "left")

    def __init__(self, left: int = UNLIMITED, ended: Callable[[], bool] | None = None) -> None:
        """``ended`` tells whether the result is of no use any more."""
        self.left = left
        self._ended = ended

    def spend(self, cost: int) -> None:
        """Takes the cost of one expression. Raises `TooCostly` or `Cancelled`."""
        if cost > self.left:
            raise TooCostly
        self.left -= cost
        if self._ended is not None and self._ended():
            raise Cancelled


class Computation(msgspec.Struct, frozen=True):
    """A unit of expressions to evaluate beside the event loop."""

    key: bytes
    """The key of the unit: its expressions with all values they depend on."""
    unit: Callable[[Meter], Any]


class EvaluationNeeded(CallNeeded):
    """A request must wait for expressions, and for calls if there are any, and then be carried out again. Nothing has been written."""

    def __init__(self, computations: Sequence[Computation], calls: Sequence[Call] = ()) -> None:
        super().__init__(calls)
        self.computations = tuple(computations)


class _Run(msgspec.Struct, frozen=True):
    """One run of a request that may not evaluate everything at once."""

    meter: Meter
    results: Mapping[bytes, _Result]


class _Result(msgspec.Struct, frozen=True):
    unit: Callable[[Meter], Any]
    """The unit that was evaluated: kept, so that no other has its identity."""
    value: Any = None
    error: Exception | None = None


_run: ContextVar[_Run | None] = ContextVar("evaluation", default=None)
_asker: ContextVar[Callable[[Callable[[], Any]], Any] | None] = ContextVar("asker", default=None)


def evaluated(unit: Callable[[Meter], T], key: Callable[[], bytes]) -> T:
    """The result of a unit of expressions: evaluated now where it is cheap. Raises `EvaluationNeeded`, or what the unit raises."""
    run = _run.get()
    if run is None:
        return unit(Meter())
    if run.results:
        known = run.results.get(key())
        if known is not None:
            if known.error is not None:
                raise known.error
            value: T = known.value
            return value
    try:
        return unit(run.meter)
    except TooCostly:
        # Those that follow need not begin.
        run.meter.left = 0
        raise EvaluationNeeded([Computation(key(), unit)]) from None


def evaluation_key(*values: object) -> bytes:
    """The key of a unit: which one it is, and all values it depends on."""
    return sha256(repr(values).encode("utf-8", "surrogatepass")).digest()


def on_loop(ask: Callable[[], T]) -> T:
    """The result of a function that reads the state of the server: called on the event loop."""
    asker = _asker.get()
    if asker is None:
        return ask()
    answer: T = asker(ask)
    return answer


@contextmanager
def sliced(results: Mapping[bytes, _Result]) -> Iterator[None]:
    """Carries out one run of a request with a slice of its own, and with the results of earlier runs."""
    token = _run.set(_Run(Meter(SLICE), results))
    try:
        yield
    finally:
        _run.reset(token)


class EvaluationThread:
    """Evaluates units one after the other, in a thread that starts with the first of them."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

    async def evaluate(
        self, computations: Sequence[Computation], timeout: float
    ) -> dict[bytes, _Result] | None:
        """The results by key; None where they are not there in time, in seconds."""
        if self._executor is None:
            # Most servers never need it.
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, "cel")
        loop = asyncio.get_running_loop()
        gone, deadline = threading.Event(), monotonic() + timeout

        def ended() -> bool:
            return gone.is_set() or self._closed.is_set() or monotonic() > deadline

        try:
            return await loop.run_in_executor(self._executor, _evaluate, computations, ended, loop)
        except Cancelled:
            return None
        finally:
            # The client may have gone.
            gone.set()

    def close(self) -> None:
        """Ends what is evaluated, after the expression under way."""
        self._closed.set()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


def _evaluate(
    computations: Sequence[Computation], ended: Callable[[], bool], loop: asyncio.AbstractEventLoop
) -> dict[bytes, _Result]:
    """Evaluates units, in the thread."""

    from concurrent.futures import Future

    def ask(function: Callable[[], Any]) -> Any:
        answer: Future[Any] = Future()

        def call() -> None:
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

        loop.call_soon_threadsafe(call)
        return answer.result(_LOOP_TIMEOUT)

    _asker.set(ask)
    results: dict[bytes, _Result] = {}
    for each in computations:
        if ended():
            raise Cancelled
        try:
            results[each.key] = _Result(each.unit, each.unit(Meter(ended=ended)))
        except Cancelled:
            raise
        except Exception as error:
            results[each.key] = _Result(each.unit, error=error)
    return results
