"""Request faults: errors, broken connections, slow responses and the latency of requests."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Any, ClassVar

from msgspec.structs import replace

from steersman.api.errors import ApiError, Unreachable, from_status
from steersman.sim.faults.fault import ANY_READ, ANY_WRITE, WRITES, ActiveFault, Call, Fault, describe
from steersman.sim.faults.injector import FaultInjector

REASONS = {
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ErrorResponse(Fault, frozen=True):
    """The nth request of a verb about a kind is answered with a status code and not carried out.

    ``verb`` may be ``write`` for any write or ``read`` for any other request; an empty ``verb`` or ``kind`` matches any. The
    fault lasts for ``times`` requests, or for ``seconds``.
    """

    code: int
    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 1
    seconds: float = 0.0
    name: ClassVar[str] = "error_response"

    def allows(self) -> frozenset[str]:
        # A manager that is told 404 rightly takes the object for deleted.
        return frozenset({"state", "expect", "creates", "deletes"}) if self.code == 404 else frozenset()

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _FailingRequests(self, injector)

    def error(self, call: Call) -> ApiError:
        status = {"code": self.code, "reason": REASONS.get(self.code, ""), "message": f"no {call.verb} now"}
        error = from_status(status, retry_after=1.0 if self.code in (429, 503) else None)
        error.uncertain = self.code == 504 and call.verb in WRITES
        return error


class ConnectionReset(Fault, frozen=True):
    """The connection breaks before the nth request of a verb about a kind is carried out."""

    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 1
    seconds: float = 0.0
    name: ClassVar[str] = "connection_reset"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _FailingRequests(self, injector)

    def error(self, call: Call) -> ApiError:
        return Unreachable("connection reset by peer", uncertain=call.verb in WRITES)


class SlowResponse(Fault, frozen=True):
    """Responses to a verb about a kind take ``seconds`` longer, from the nth on, ``times`` of them."""

    seconds: float
    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 10
    name: ClassVar[str] = "slow_response"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Slow(self, injector)


class RequestLatency(Fault, frozen=True):
    """Requests of a verb about a kind take ``minimum`` to ``maximum`` seconds, drawn from the seed for each request.

    Some of that time passes before the request takes effect and the rest before its response arrives. The split is drawn as
    well: with a late effect other writes come first, with a late response watches deliver the write before its response.
    """

    minimum: float = 0.001
    maximum: float = 0.3
    verb: str = "write"
    kind: str = ""
    name: ClassVar[str] = "request_latency"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.minimum <= self.maximum < math.inf:
            raise ValueError(
                f"minimum and maximum must be seconds in order, not {self.minimum}, {self.maximum}"
            )

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Latency(self, injector)

    def draw(self, seed: int, number: int) -> tuple[float, float]:
        """Seconds until a request takes effect, and from then until its response arrives."""
        stream = random.Random(f"{seed}/latency/{number}")
        total = stream.uniform(self.minimum, self.maximum)
        effect = total * stream.choice((0.0, stream.random(), 1.0))
        return round(effect, 6), round(total - effect, 6)


class DiscoveryFailure(Fault, frozen=True):
    """Discovery answers 503, ``times`` times or for ``seconds``.

    With a ``group``, only the discovery of that group fails.
    """

    group: str = ""
    nth: int = 1
    times: int = 3
    seconds: float = 0.0
    name: ClassVar[str] = "discovery_failure"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        if self.group:
            return _PartialDiscovery(self, injector)
        return _FailingRequests(
            ErrorResponse(503, "discover", "", self.nth, self.times, self.seconds), injector
        )


class _MatchingRequests(ActiveFault):
    """Counts the requests that a fault matches."""

    def __init__(self, verb: str, kind: str) -> None:
        self._verb = verb
        self._kind = kind
        self.count = 0

    def concerns(self, call: Call) -> bool:
        """Whether the fault is about a request."""
        verb = self._verb
        if verb in (ANY_WRITE, ANY_READ):
            matching = (call.verb in WRITES) == (verb == ANY_WRITE)
        else:
            matching = verb in ("", call.verb)
        return matching and call.about(self._kind)

    def matches(self, call: Call) -> bool:
        """Whether the fault is about a request, which is counted."""
        if not self.concerns(call):
            return False
        self.count += 1
        return True


class _FailingRequests(_MatchingRequests):
    def __init__(self, fault: ErrorResponse | ConnectionReset, injector: FaultInjector) -> None:
        super().__init__(fault.verb, fault.kind)
        self._fault = fault
        self._injector = injector
        self._until: float | None = None

    async def before(self, call: Call) -> None:
        fault = self._fault
        if not self.matches(call) or self.count < fault.nth:
            return
        if fault.seconds:
            now = self._injector.world.monotonic()
            if self._until is None:
                self._until = now + fault.seconds
            if now >= self._until:
                return
        elif self.count >= fault.nth + fault.times:
            return
        error = fault.error(call)
        self._injector.record(self, f"{error.code or 'connection reset'} for {describe(call)}")
        # An error takes a turn of the event loop, like any response.
        await asyncio.sleep(0)
        raise error


class _PartialDiscovery(_MatchingRequests):
    def __init__(self, fault: DiscoveryFailure, injector: FaultInjector) -> None:
        super().__init__("discover", "")
        self._fault = fault
        self._injector = injector
        self._until: float | None = None

    async def after(self, call: Call, answer: Any) -> Any:
        fault = self._fault
        if not self.matches(call) or self.count < fault.nth:
            return answer
        now = self._injector.world.monotonic()
        self._until = self._until or now + fault.seconds
        if now >= self._until if fault.seconds else self.count >= fault.nth + fault.times:
            return answer
        from steersman.api.discovery import FailedGroupVersion

        lost = dict.fromkeys(each.api_version for each in answer.resources if each.group == fault.group)
        self._injector.record(self, f"discovery of {fault.group} fails")
        return replace(
            answer,
            resources=tuple(each for each in answer.resources if each.group != fault.group),
            failed=(
                *answer.failed,
                *(FailedGroupVersion(each, "the server does not answer") for each in lost),
            ),
        )


class _Slow(_MatchingRequests):
    def __init__(self, fault: SlowResponse, injector: FaultInjector) -> None:
        super().__init__(fault.verb, fault.kind)
        self._fault = fault
        self._injector = injector

    async def before(self, call: Call) -> None:
        fault = self._fault
        if self.matches(call) and fault.nth <= self.count < fault.nth + fault.times:
            self._injector.record(self, f"{fault.seconds:g} s delay for {describe(call)}")
            await asyncio.sleep(fault.seconds)


class _Latency(_MatchingRequests):
    """Waits before and after each request. The times of a request depend on its number alone."""

    def __init__(self, fault: RequestLatency, injector: FaultInjector) -> None:
        super().__init__(fault.verb, fault.kind)
        self._fault = fault
        self._injector = injector

    def _draw(self, call: Call) -> tuple[float, float]:
        return self._fault.draw(self._injector.world.seed, call.number)

    async def before(self, call: Call) -> None:
        if not self.matches(call):
            return
        if self.count == 1:
            # Of the others the trace has the durations; a line for each would hide the other faults.
            self._injector.record(
                self, f"requests take {self._fault.minimum:g} s to {self._fault.maximum:g} s"
            )
        await asyncio.sleep(self._draw(call)[0])

    async def after(self, call: Call, answer: Any) -> Any:
        await self.refused(call)
        return answer

    async def refused(self, call: Call) -> None:
        if self.concerns(call):
            await asyncio.sleep(self._draw(call)[1])
