"""Interpretations of the actions that are no request: files, random bits, events, metrics and batches."""

from __future__ import annotations

import asyncio
import os
from typing import Any, TypeVar, cast

from steersman.api.errors import ApiError
from steersman.api.kinds import Object, ObjectReference
from steersman.api.scheme import Key, Kind
from steersman.intent.actions import (
    Action,
    Address,
    Batch,
    DirectoryError,
    Done,
    Emit,
    Failed,
    FileUnreadable,
    MakeDirectory,
    Outcome,
    RandomBits,
    ReadFile,
    RemoveDirectory,
)
from steersman.intent.metrics import DropSeries, Elapsed, Measure
from steersman.runtime.action_table.interpretation import (
    JOIN,
    AnyInterpretation,
    Environment,
    InstantInterpretation,
    Interpretation,
    SimulatedServer,
    Written,
    describe,
    interpretation_of,
    interprets,
)
from steersman.runtime.action_table.text import (
    SHOWN,
    kind_if_known,
    name_target,
    shorten,
)

T = TypeVar("T")


def read_file(path: str) -> bytes:
    """The content of a small file, read every time, so that a replaced key is used from then on."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileUnreadable(f"cannot read {path}: {error.strerror}") from None


@interprets(ReadFile)
class ReadFileInterpretation(Interpretation[ReadFile]):
    verb = "read"

    async def perform(self, env: Environment, key: Key, action: ReadFile) -> bytes:
        return env.read_file(action.path)

    def describe(self, action: ReadFile) -> str:
        return f"read file {action.path}"


class LocalDirectories:
    """The directories of this host; `Directories`. In a thread, because a directory may hold very many files."""

    async def make(self, path: str) -> None:
        try:
            await asyncio.to_thread(os.makedirs, path, 0o750, exist_ok=True)
        except OSError as error:
            raise DirectoryError(f"mkdir {path}: {error.strerror}") from None

    async def remove(self, path: str) -> None:
        import shutil  # which loads every archive format

        try:
            await asyncio.to_thread(shutil.rmtree, path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DirectoryError(f"unlinkat {path}: {error.strerror}") from None


@interprets(MakeDirectory)
class MakeDirectoryInterpretation(Interpretation[MakeDirectory]):
    verb = "make"
    past = "made"

    async def perform(self, env: Environment, key: Key, action: MakeDirectory) -> None:
        await env.directories.make(action.path)

    def describe(self, action: MakeDirectory) -> str:
        return f"make directory {action.path}"


@interprets(RemoveDirectory)
class RemoveDirectoryInterpretation(Interpretation[RemoveDirectory]):
    verb = "remove"
    past = "removed"

    async def perform(self, env: Environment, key: Key, action: RemoveDirectory) -> None:
        await env.directories.remove(action.path)

    def describe(self, action: RemoveDirectory) -> str:
        return f"remove directory {action.path}"


@interprets(RandomBits)
class RandomBitsInterpretation(Interpretation[RandomBits]):
    verb = "draw"

    async def perform(self, env: Environment, key: Key, action: RandomBits) -> int:
        return env.clock.random.getrandbits(action.bits)

    def describe(self, action: RandomBits) -> str:
        return f"draw {action.bits} random bits"

    def simulate(self, server: SimulatedServer, action: RandomBits) -> int:
        return server.revision % (1 << action.bits)


@interprets(Emit)
class EmitInterpretation(Interpretation[Emit]):
    verb = "emit"
    past = "emitted"

    async def perform(self, env: Environment, key: Key, action: Emit) -> None:
        about: Object | ObjectReference | Address[Any] = action.about
        if isinstance(about, Address):
            about = ObjectReference(
                kind=about.kind.name,
                apiVersion=about.kind.api_version,
                namespace=about.namespace,
                name=about.name,
                uid=about.uid,
            )
        env.recorder.emit(about, action.type, action.reason, action.message)

    def describe(self, action: Emit) -> str:
        message = shorten(action.message)
        return f"emit {action.type} {action.reason} about {name_target(action.about)}: {message}"

    def kind(self, action: Emit) -> Kind[Any] | None:
        return kind_if_known(action.about)


@interprets(Measure)
class MeasureInterpretation(InstantInterpretation[Measure]):
    verb = "measure"
    past = "measured"

    def answer(self, env: Environment, elapsed: float, action: Measure) -> None:
        env.metrics.measure(action)

    def describe(self, action: Measure) -> str:
        return f"measure {action.metric.name} {action.value:g}"


@interprets(DropSeries)
class DropSeriesInterpretation(InstantInterpretation[DropSeries]):
    verb = "drop"
    past = "dropped"

    def answer(self, env: Environment, elapsed: float, action: DropSeries) -> None:
        env.metrics.drop_series(action)

    def describe(self, action: DropSeries) -> str:
        return f"drop {action.metric.name} {' '.join(action.labels)}"


@interprets(Elapsed)
class ElapsedInterpretation(InstantInterpretation[Elapsed]):
    verb = "read"

    def answer(self, env: Environment, elapsed: float, action: Elapsed) -> float:
        return elapsed

    def describe(self, action: Elapsed) -> str:
        return "read the clock"

    def simulate(self, server: SimulatedServer, action: Elapsed) -> float:
        return 0.0


# -- batches ----------------------------------------------------------------------------------


@interprets(Batch)
class BatchInterpretation(Interpretation[Batch[Any]]):
    verb = "do"

    async def perform(self, env: Environment, key: Key, action: Batch[T]) -> list[Outcome[T]]:
        async def attempt(one: Action[T]) -> Outcome[T]:
            try:
                return Done(await env.perform(key, one))
            except ApiError as error:
                return Failed(error)

        groups = action.groups()
        try:
            group = next(groups)
            while True:
                if len(group) == 1:
                    outcomes = [await attempt(group[0])]
                else:
                    outcomes = await asyncio.gather(*map(attempt, group))
                group = groups.send(outcomes)
        except StopIteration as stop:
            return cast("list[Outcome[T]]", stop.value)

    def written(self, action: Batch[Any], answer: list[Outcome[Any]]) -> list[Written]:
        made: list[Written] = []
        for one, outcome in zip(action.actions, answer, strict=True):
            if isinstance(outcome, Done):
                made += interpretation_of(one).written(one, outcome.value)
        return made

    def describe(self, action: Batch[Any]) -> str:
        if len(action.actions) == 1:
            return describe(action.actions[0])
        # Hundreds of actions are mostly alike, so words are looked up once for each sort.
        sorts: dict[tuple[AnyInterpretation, Kind[Any] | None], int] = {}
        for one in action.actions:
            interpretation = interpretation_of(one)
            sort = (interpretation, interpretation.kind(one))
            sorts[sort] = sorts.get(sort, 0) + 1
        tally: dict[tuple[str, str, str], int] = {}
        for (interpretation, kind), n in sorts.items():
            names = (kind.name.lower(), kind.plural) if kind is not None else ("action", "actions")
            tally[interpretation.verb, *names] = tally.get((interpretation.verb, *names), 0) + n
        if len(tally) > SHOWN:
            counts: dict[str, list[int]] = {}
            for (verb, _, _), n in tally.items():
                counts.setdefault(verb, []).append(n)
            return JOIN.join(f"{verb} {sum(each)} of {len(each)} kinds" for verb, each in counts.items())
        parts = (f"{verb} {n} {one if n == 1 else many}" for (verb, one, many), n in tally.items())
        return JOIN.join(parts) or "nothing"
