"""A writer to be killed, and what must be true of its data directory afterwards.

``python -m tests.harness.data_dir_crash DIR SEED`` writes without end. On its output it says what it is about
to write (``t``), and once that is safe what it may acknowledge (``a``)::

    t 17 put thing-3
    a 17

`check` holds what was said against what the disk has: exactly the writes up to some revision, no fewer than
were acknowledged, each of them whole; and no revision that was ever in use is given out again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import IO

import msgspec
from msgspec import field

from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.storage.durable.data_dir import open_data_dir
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Selection

RESOURCE = "configmaps"
WRITERS = 8
_KEYS = 40


def content(revision: int) -> str:
    """What the write of a revision writes: of very different lengths, and never the same."""
    return Random(revision).randbytes(Random(revision).choice((10, 500, 9000))).hex()


# -- the writer -------------------------------------------------------------------------------


async def write(path: Path, seed: int) -> None:
    """Write until killed, from several tasks at once so that groups have more than one write."""
    random = Random(seed)
    data_dir = open_data_dir(path)
    await asyncio.gather(*(_writer(data_dir.store, data_dir.log.durable, random) for _ in range(WRITERS)))


async def _writer(store: Store, durable: object, random: Random) -> None:
    assert callable(durable)
    table = store.table(RESOURCE)
    while True:
        name, revision = f"thing-{random.randrange(_KEYS)}", store.revision + 1
        removes = table.get(name) is not None and random.random() < 0.3
        _say(f"t {revision} {'remove' if removes else 'put'} {name}")
        if removes:
            table.remove(name)
        else:
            meta = ObjectMeta(name=name, resourceVersion=store.next_version)
            table.put(name, ConfigMap(metadata=meta, data={"content": content(revision)}))
        if random.random() < 0.5:
            # Others write in between; groups of one are worth a try, too.
            await asyncio.sleep(0)
        await durable(revision)
        _say(f"a {revision}")


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


# -- what must be true ------------------------------------------------------------------------


class Story(msgspec.Struct):
    """All that writers of a directory ever said."""

    writes: list[tuple[int, str, str]] = field(default_factory=list)
    """Revision, operation and name, of this life and those before: without what was lost."""
    acknowledged: int = 0
    highest: int = 0
    """The last revision in use."""

    def hear(self, lines: Iterable[str]) -> None:
        for line in lines:
            words = line.split()
            if not line.endswith("\n"):
                continue
            if words[0] == "t":
                self.writes.append((int(words[1]), words[2], words[3]))
                self.highest = max(self.highest, int(words[1]))
            else:
                self.acknowledged = max(self.acknowledged, int(words[1]))

    def until(self, revision: int) -> dict[str, int]:
        """By name, the revision of each object there is after a write."""
        there: dict[str, int] = {}
        for at, operation, name in self.writes:
            if at > revision:
                break
            if operation == "put":
                there[name] = at
            else:
                del there[name]
        return there


def check(path: Path, story: Story) -> int:
    """Open a directory after a crash. Answers with how many writes were lost that nobody had been told of.

    Raises `AssertionError`.
    """
    data_dir = open_data_dir(path, threaded=False)
    try:
        store = data_dir.store
        assert store.revision >= story.highest, f"goes back to {store.revision}, {story.highest} was in use"
        found = {obj.metadata.name: obj for obj in store.table(RESOURCE).select(Selection())}
        for name, obj in found.items():
            revision = int(obj.metadata.resourceVersion)
            assert obj.data == {"content": content(revision)}, f"{name} at {revision} is not what was written"
        there = {name: int(obj.metadata.resourceVersion) for name, obj in found.items()}
        ends = [at for at, _, _ in story.writes if at >= story.acknowledged] or [0]
        matching = [end for end in ends if story.until(end) == there]
        assert matching, f"is in no state there was since {story.acknowledged} was acknowledged"
        lost = sum(at > matching[-1] for at, _, _ in story.writes)
        story.writes = [each for each in story.writes if each[0] <= matching[-1]]
        return lost
    finally:
        data_dir.log.failure = RuntimeError("as if it had crashed again")
        data_dir.close()


def kill(path: Path, seed: int, story: Story) -> int:
    """Let a writer live for a while, kill it, and check. Answers with how many acknowledgements it gave."""
    random = Random(seed)
    command = [sys.executable, "-m", "tests.harness.data_dir_crash", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        heard: list[str] = []
        try:
            heard.extend(_some(writer.stdout, random.randrange(1, 400)))
        finally:
            writer.send_signal(signal.SIGKILL)
        # What it said between our listening and its end counts.
        heard.extend(writer.stdout)
        story.hear(heard)
    assert writer.returncode == -signal.SIGKILL, f"the writer ended by itself with {writer.returncode}"
    return sum(line.startswith("a") for line in heard)


def _some(lines: IO[str], acknowledgements: int) -> Iterator[str]:
    for line in lines:
        yield line
        acknowledgements -= line.startswith("a")
        if acknowledgements <= 0:
            return


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
