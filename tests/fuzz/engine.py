"""Fuzzes one target for a while: guided by coverage where atheris is installed, else by random mutation.

Each target has a process of its own (``python -m tests.fuzz.engine NAME SECONDS SEED``): libFuzzer, on which atheris
is built, does not return, and instruments only modules that were not imported before.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

from tests.fuzz.bounds import Finding, examine
from tests.fuzz.mutation import Mutator, minimize
from tests.fuzz.target import CORPUS, Target, load

PROGRESS = 10.0
"""Seconds between two lines of progress."""
DRAWN = 200
"""Inputs that a target's strategy is asked for at once."""
DRAW_SHARE = 0.2
"""The share of time in which random mutation starts from newly drawn inputs."""
FOUND, INTERRUPTED = 1, 130
"""Exit codes."""


def draw(strategy: SearchStrategy[bytes], count: int, seed: int) -> list[bytes]:
    """Return inputs that a strategy builds. The same seed gives the same inputs."""
    drawn: list[bytes] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate,),
        suppress_health_check=tuple(HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(data: bytes) -> None:
        drawn.append(data)

    collect()
    return drawn


class Session:
    """One run of a target: counts its inputs, shows progress, and keeps what was found."""

    def __init__(
        self, target: Target, seconds: float, seed: int, say: Callable[[str], None], corpus: Path = CORPUS
    ) -> None:
        self.target = target
        self.random = Random(seed)
        self.executions = 0
        self._say = say
        self._corpus = corpus
        self._started = time.monotonic()
        self._until = self._started + seconds
        self._next_progress = self._started + PROGRESS

    @property
    def over(self) -> bool:
        """The time is up."""
        return time.monotonic() >= self._until

    @property
    def progress(self) -> str:
        elapsed = time.monotonic() - self._started
        each = self.executions / max(elapsed, 1e-3)
        return f"{self.target.name}: {self.executions:,} inputs in {elapsed:.0f} s ({each:,.0f}/s)"

    def initial_inputs(self) -> list[bytes]:
        """Return the inputs to start from: seeds, corpus, and some that the target's strategy draws."""
        strategy = self.target.strategy
        drawn = draw(strategy, DRAWN, self.random.getrandbits(32)) if strategy is not None else []
        return [*self.target.kept_inputs(self._corpus), *drawn]

    def mutator(self) -> Mutator:
        return Mutator(self.random, self.target.dictionary, self.target.max_bytes)

    def run(self, data: bytes) -> None:
        """Examine one input. Raises `Finding` once the smallest input that was found is in the corpus."""
        self.executions += 1
        try:
            examine(self.target, data)
        except Finding as finding:
            self._say(f"{self.progress}: found, minimizing {len(data)} bytes")
            smallest, reason = self._minimized(data, finding)
            file = self.target.keep(smallest, str(reason), self._corpus)
            self._say(f"{self.target.name}: {reason}\n  input: {smallest[:200]!r}\n  kept in {file}")
            raise reason from reason.__cause__
        if (now := time.monotonic()) >= self._next_progress:
            self._next_progress = now + PROGRESS
            self._say(self.progress)

    def _minimized(self, data: bytes, finding: Finding) -> tuple[bytes, Finding]:
        reason = finding

        def breaks(shorter: bytes) -> bool:
            nonlocal reason
            try:
                examine(self.target, shorter)
            except Finding as other:
                # Another exception would be another finding.
                if type(other.__cause__) is not type(finding.__cause__):
                    return False
                reason = other
                return True
            return False

        return minimize(data, breaks), reason


def fuzz_by_mutation(session: Session) -> None:
    """Run mutated inputs until the time is up. Raises `Finding`."""
    inputs = session.initial_inputs()
    for data in inputs:
        session.run(data)
    random, mutator, strategy = session.random, session.mutator(), session.target.strategy
    drawn_at = time.monotonic()
    drawing = 0.0
    while not session.over:
        for _ in range(100):
            session.run(mutator.mutate(random.choice(inputs), random.choice(inputs)))
        if strategy is not None and drawing < DRAW_SHARE * (time.monotonic() - drawn_at):
            before = time.monotonic()
            kept = session.target.seeds
            inputs = [*kept, *draw(strategy, DRAWN, random.getrandbits(32))]
            for data in inputs[len(kept) :]:
                session.run(data)
            drawing += time.monotonic() - before


def fuzz_by_coverage(session: Session, atheris: Any, seed: int) -> None:
    """Run inputs that libFuzzer selects by coverage. Ends the process."""
    mutator = session.mutator()
    initial = session.initial_inputs()

    def run(data: bytes) -> None:
        try:
            session.run(data)
        except Finding as finding:
            leave(FOUND, finding)
        if session.over:
            leave(0)

    def leave(code: int, finding: Finding | None = None) -> None:
        finish(session, finding)
        # libFuzzer would take an exception for a crash and dump its state.
        os._exit(code)

    # An exception would be lost where it is raised outside of Python's frames.
    signal.signal(signal.SIGINT, lambda number, frame: leave(INTERRUPTED))

    def mutate(data: bytes, max_size: int, _seed: int) -> bytes:
        # Half of the mutations are libFuzzer's own, which know what other inputs were compared with.
        if session.random.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return mutator.mutate(bytes(data), session.random.choice(initial))[:max_size]

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(initial):
            Path(folder, f"{number:05}").write_bytes(data)
        # A value of 0 would mean a random seed.
        options = [f"-seed={seed % 2**31 or 1}", f"-max_len={session.target.max_bytes}"]
        # Findings are kept in the corpus; libFuzzer would write each to the current folder as well.
        options += [
            f"-artifact_prefix={folder}/",
            "-handle_int=0",
            "-timeout=600",
            "-rss_limit_mb=0",
            "-verbosity=0",
            "-len_control=0",
        ]
        atheris.Setup([sys.argv[0], *options, folder], run, custom_mutator=mutate)
        atheris.Fuzz()


def finish(session: Session, finding: Finding | None) -> None:
    """Print the traceback of a finding, or that there was none."""
    if finding is None:
        _print(f"{session.progress}, no finding")
    elif finding.__cause__ is not None:
        sys.excepthook(type(finding.__cause__), finding.__cause__, finding.__cause__.__traceback__)
    sys.stdout.flush()
    sys.stderr.flush()


def _print(text: str) -> None:
    print(text, flush=True)


def main(name: str, seconds: float, seed: int) -> int:
    """Fuzz one target in this process and return the exit code."""
    if importlib.util.find_spec("atheris") is None:
        session = Session(load(name), seconds, seed, _print)
        try:
            fuzz_by_mutation(session)
        except Finding as finding:
            finish(session, finding)
            return FOUND
        except KeyboardInterrupt:
            finish(session, None)
            return INTERRUPTED
        finish(session, None)
        return 0
    atheris: Any = importlib.import_module("atheris")
    # atheris writes a line to stderr for each module.
    with redirect_stderr(StringIO()), atheris.instrument_imports(include=["steersman"]):
        target = load(name)
    fuzz_by_coverage(Session(target, seconds, seed, _print), atheris, seed)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
