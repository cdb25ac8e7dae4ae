"""The shell: drives a decision and performs its actions, the only place where a decision meets the world.

Each awaited action is checked against the fence, performed as the action table says with the controller's own
credentials, and recorded as a step of the round; the answer or the error goes back into the decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.client.pager import list_all
from steersman.intent.actions import Action, DirectoryError, FileUnreadable, Write
from steersman.intent.cloud import CloudWrite
from steersman.intent.verdict import Verdict
from steersman.runtime.action_table import (
    Directories,
    Environment,
    InstantInterpretation,
    Interpretation,
    describe,
    doubt_of,
    interpretation_of,
    read_file,
)
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.ledger import Ledger
from steersman.runtime.metrics import Metrics
from steersman.runtime.trace import Step, keep_writes, outcome

T = TypeVar("T")

LATENCY_WEIGHT = 0.1
"""The weight of the latest write in the moving average `Shell.latency`."""


class Deposed(Exception):
    """A write was refused because this process no longer leads. Nothing was sent."""


class Shell:
    """Performs the actions of one controller with that controller's credentials."""

    def __init__(
        self,
        api: Api,
        recorder: Recorder,
        ledger: Ledger,
        clock: Clock,
        metrics: Metrics,
        fence: Callable[[], bool] = lambda: True,
        files: Callable[[str], bytes] = read_file,
        manager_api: Api | None = None,
        cloud: CloudProvider | None = None,
        directories: Directories | None = None,
    ) -> None:
        """``fence`` says whether this process leads; ``manager_api`` has the credentials of the informers."""
        self._ledger = ledger
        self._clock = clock
        self._fence = fence
        self._env = Environment(
            api,
            manager_api or api,
            recorder,
            ledger,
            clock,
            metrics,
            files,
            self._perform,
            cloud,
            directories,
        )
        self.latency = 0.0
        """Seconds a write takes, as a moving average: how busy the server is."""

    def lend_workers(self, lend: Callable[[], AbstractContextManager[None]]) -> None:
        """Set how a worker that waits for a slow answer lends its place to another."""
        self._env.lend_worker = lend

    async def drive(self, key: Key, decision: Awaitable[Verdict], steps: list[Step] | None) -> Verdict:
        """Run a decision to its verdict, recording each action as a step, unless ``steps`` is None."""
        script = cast("Generator[Action[Any], Any, Verdict]", decision.__await__())
        begun = self._clock.monotonic()
        try:
            action = next(script)
            while True:
                started = self._clock.monotonic()
                interpretation = interpretation_of(action)
                if isinstance(interpretation, InstantInterpretation):
                    action = script.send(interpretation.answer(self._env, started - begun, action))
                    continue
                try:
                    answer = await self._perform(key, action)
                except (ApiError, FileUnreadable, DirectoryError) as error:
                    if steps is not None:
                        seconds = self._clock.monotonic() - started
                        steps.append(Step(interpretation.describe(action), outcome(error), seconds))
                    action = script.throw(error)
                else:
                    if steps is not None and not interpretation.skipped(action, answer):
                        steps.append(self._step(interpretation, action, answer, started))
                    action = script.send(answer)
        except StopIteration as stop:
            return cast("Verdict", stop.value)
        finally:
            script.close()

    def _step(
        self, interpretation: Interpretation[Any], action: Action[Any], answer: object, started: float
    ) -> Step:
        seconds = self._clock.monotonic() - started
        text = interpretation.describe(action)
        # Only a batch has outcomes in its answer.
        told = outcome(answer) if type(answer) is list else ""
        writes = interpretation.written(action, answer)
        return Step(text, told, seconds, *keep_writes(writes)) if writes else Step(text, told, seconds)

    async def resolve(self, key: Key) -> None:
        """Read the objects that the key's lost answers leave in doubt, and settle the doubts with them."""
        for doubt in self._ledger.doubts(key):
            # With the informers' credentials: a controller may create objects it has no right to read.
            page = await list_all(
                self._env.manager_api,
                doubt.kind.as_(Object),
                doubt.namespace,
                label_selector=doubt.labels,
                field_selector=f"metadata.name={doubt.name}" if doubt.name else "",
            )
            self._ledger.cleared(key, doubt, [item.metadata for item in page.items])

    async def _perform(self, key: Key, action: Action[T]) -> T:
        interpretation = interpretation_of(action)
        if not isinstance(action, Write | CloudWrite):
            return cast("T", await interpretation.perform(self._env, key, action))
        if not self._fence():
            raise Deposed(f"not leading any more: {describe(action)} was not sent")
        if isinstance(action, CloudWrite):
            return cast("T", await interpretation.perform(self._env, key, action))
        started = self._clock.monotonic()
        try:
            return cast("T", await interpretation.perform(self._env, key, action))
        except ApiError as error:
            if error.uncertain:
                self._ledger.unsure(key, doubt_of(action))
            raise
        finally:
            self.latency += (self._clock.monotonic() - started - self.latency) * LATENCY_WEIGHT
