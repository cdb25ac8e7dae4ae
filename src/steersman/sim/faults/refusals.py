"""Requests that are refused, broken off or late."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from steersman.api.errors import ApiError, Unreachable, from_status
from steersman.sim.faults.crashes import describe
from steersman.sim.faults.fault import WRITES, Armed, Call, Fault
from steersman.sim.faults.injector import Stage

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


@dataclass(frozen=True, slots=True)
class Answers(Fault):
    """The nth request of a verb about a kind is answered with a code and not carried out.

    ``verb`` may be ``write`` for any write, ``read`` for any other; an empty one is any, and so is an empty
    ``kind``. It goes on for ``times`` requests, or for ``seconds``.
    """

    code: int
    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 1
    seconds: float = 0.0
    word: ClassVar[str] = "answers"

    @property
    def excused(self) -> frozenset[str]:
        # Who is told that something is not there takes it for gone, and is right to.
        return frozenset({"state", "expect", "creates", "deletes"}) if self.code == 404 else frozenset()

    def arm(self, stage: Stage) -> Armed:
        return _Refusing(self, stage)

    def error(self, call: Call) -> ApiError:
        status = {"code": self.code, "reason": REASONS.get(self.code, ""), "message": f"no {call.verb} now"}
        error = from_status(status, retry_after=1.0 if self.code in (429, 503) else None)
        error.uncertain = self.code == 504 and call.verb in WRITES
        return error


@dataclass(frozen=True, slots=True)
class Reset(Fault):
    """The connection breaks under the nth request of a verb about a kind, before it was carried out."""

    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 1
    seconds: float = 0.0
    word: ClassVar[str] = "reset"

    def arm(self, stage: Stage) -> Armed:
        return _Refusing(self, stage)

    def error(self, call: Call) -> ApiError:
        return Unreachable("connection reset by peer", uncertain=call.verb in WRITES)


@dataclass(frozen=True, slots=True)
class SlowAnswers(Fault):
    """Requests of a verb about a kind take ``seconds`` longer, from the nth on, ``times`` of them."""

    seconds: float
    verb: str = ""
    kind: str = ""
    nth: int = 1
    times: int = 10
    word: ClassVar[str] = "slow_answers"

    def arm(self, stage: Stage) -> Armed:
        return _Slow(self, stage)


@dataclass(frozen=True, slots=True)
class DiscoveryFails(Fault):
    """What the server serves cannot be learned: discovery answers 503, ``times`` times or for ``seconds``.

    With a ``group`` all else is told, and that group's server does not answer.
    """

    group: str = ""
    nth: int = 1
    times: int = 3
    seconds: float = 0.0
    word: ClassVar[str] = "discovery_fails"

    def arm(self, stage: Stage) -> Armed:
        if self.group:
            return _Partly(self, stage)
        return _Refusing(Answers(503, "discover", "", self.nth, self.times, self.seconds), stage)


class _Matched(Armed):
    """Counts the requests that a fault is about."""

    def __init__(self, verb: str, kind: str) -> None:
        self._verb = verb
        self._kind = kind
        self.count = 0

    def matches(self, call: Call) -> bool:
        verb = self._verb
        if verb in ("write", "read"):
            fits = (call.verb in WRITES) == (verb == "write")
        else:
            fits = verb in ("", call.verb)
        if not fits or not call.about(self._kind):
            return False
        self.count += 1
        return True


class _Refusing(_Matched):
    def __init__(self, fault: Answers | Reset, stage: Stage) -> None:
        super().__init__(fault.verb, fault.kind)
        self._fault = fault
        self._stage = stage
        self._until: float | None = None

    async def before(self, call: Call) -> None:
        fault = self._fault
        if not self.matches(call) or self.count < fault.nth:
            return
        if fault.seconds:
            now = self._stage.world.monotonic()
            if self._until is None:
                self._until = now + fault.seconds
            if now >= self._until:
                return
        elif self.count >= fault.nth + fault.times:
            return
        error = fault.error(call)
        self._stage.strike(f"{error.code or 'reset'} for {describe(call)}")
        # A refusal takes its time, too.
        await asyncio.sleep(0)
        raise error


class _Partly(_Matched):
    def __init__(self, fault: DiscoveryFails, stage: Stage) -> None:
        super().__init__("discover", "")
        self._fault = fault
        self._stage = stage
        self._until: float | None = None

    async def after(self, call: Call, answer: Any) -> Any:
        fault = self._fault
        if not self.matches(call) or self.count < fault.nth:
            return answer
        now = self._stage.world.monotonic()
        self._until = self._until or now + fault.seconds
        if now >= self._until if fault.seconds else self.count >= fault.nth + fault.times:
            return answer
        from steersman.api.discovery import Missing

        lost = dict.fromkeys(each.api_version for each in answer.resources if each.group == fault.group)
        self._stage.strike(f"discovery of {fault.group} fails")
        return replace(
            answer,
            resources=tuple(each for each in answer.resources if each.group != fault.group),
            failed=(*answer.failed, *(Missing(each, "the server does not answer") for each in lost)),
        )


class _Slow(_Matched):
    def __init__(self, fault: SlowAnswers, stage: Stage) -> None:
        super().__init__(fault.verb, fault.kind)
        self._fault = fault
        self._stage = stage

    async def before(self, call: Call) -> None:
        fault = self._fault
        if self.matches(call) and fault.nth <= self.count < fault.nth + fault.times:
            self._stage.strike(f"{fault.seconds:g} s for {describe(call)}")
            await asyncio.sleep(fault.seconds)
