"""Something that is counted and timed, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from steersman.intent.actions import Elapsed, Measure
from steersman.intent.metrics import Metric


class Timed:
    """Around a part of a decision: counts it, and how long it took, when it ends.

    ::

        async with Timed(SECONDS, TOTAL, {"action": "none", "result": "success"}, failed) as told:
            ...
            told.labels["action"] = "scale_up"
    """

    def __init__(
        self,
        seconds: Metric,
        total: Metric,
        labels: Mapping[str, str],
        failed: Callable[[Exception], Mapping[str, str]] = lambda error: {},
    ) -> None:
        assert seconds.labels == total.labels
        self.labels = dict(labels)
        self._seconds = seconds
        self._total = total
        self._failed = failed
        self._began = 0.0

    async def __aenter__(self) -> Timed:
        self._began = await Elapsed()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.labels.update(self._failed(error))
        elif error is not None:
            return  # it was broken off: nobody is there to count
        values = tuple(self.labels[label] for label in self._total.labels)
        await Measure(self._seconds, await Elapsed() - self._began, values)
        await Measure(self._total, labels=values)
