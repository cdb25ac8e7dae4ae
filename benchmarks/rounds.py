"""What benchmarks that compare managers have in common: who runs when, and phases that are measured."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from benchmarks import report
from benchmarks.measure import Cost, Meter
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane

T = TypeVar("T")

_started = time.monotonic()


def say(text: str) -> None:
    """A line of progress."""
    print(f"[{time.monotonic() - _started:6.1f}s] {text}", file=sys.stderr, flush=True)


def turns(names: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """Who runs when: the order is turned round each time, so that no one is always second."""
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            yield number, name


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The flags that all of them have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1, help="runs of each manager; who is first alternates")
    parser.add_argument("--manager", action="append", choices=[report.OURS, report.REFERENCE])
    parser.add_argument("--qps", type=int, default=2000)
    parser.add_argument("--burst", type=int, default=3000)
    parser.add_argument("--timeout", type=float, default=300, help="seconds a phase may take")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    return parser


def flags(options: argparse.Namespace, controllers: str) -> list[str]:
    """What both managers are started with: defaults, but for a throttle that would be measured."""
    return [
        f"--controllers={controllers}",
        f"--kube-api-qps={options.qps}",
        f"--kube-api-burst={options.burst}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
    ]


class Phases:
    """The phases of one manager's run, measured one after the other."""

    def __init__(self, meter: Meter, timeout: float) -> None:
        self._meter = meter
        self._timeout = timeout
        self.costs: list[Cost] = []

    async def run(self, name: str, count: int, act: Callable[[], Awaitable[object]]) -> None:
        """Do something, wait until the manager is quiet, and note what it cost."""
        stretch = self._meter.begin()
        try:
            async with asyncio.timeout(self._timeout):
                await act()
        except TimeoutError:
            raise RuntimeError(f"{name}: not done in {self._timeout:g} s") from None
        stretch.converged()
        await self._meter.quiet()
        cost = stretch.end(name, count)
        self.costs.append(cost)
        say(
            f"{name:<16}{cost.seconds:7.2f} s {cost.rate:7.0f}/s {cost.total:6d} requests {cost.cpu:6.2f} s CPU"
            f" (API server {cost.apiserver_cpu:6.2f} s) {cost.peak_rss / 2**20:6.0f} MiB peak"
        )


def compare(
    options: argparse.Namespace,
    what: str,
    run: Callable[[HttpApi, RealPlane, Binary], Awaitable[list[Cost]]],
) -> None:
    """Run both managers, each on an API server of its own, and print what they cost."""
    names: list[Binary] = options.manager or [report.OURS, report.REFERENCE]
    results: dict[str, list[list[Cost]]] = {name: [] for name in names}

    async def measure() -> None:
        for number, name in turns(names, options.rounds):
            say(f"round {number + 1}: {name}, {what}")
            with RealPlane.start() as plane:
                async with plane.connect() as api:
                    results[name].append(await run(api, plane, name))

    asyncio.run(measure())
    print(report.render(report.converge(results), options.markdown))
    print()
    print(report.render(report.requests(results), options.markdown))
