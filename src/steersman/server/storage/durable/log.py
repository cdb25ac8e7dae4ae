"""Writes on their way to the disk: all that come while one group is written make up the next one.

The store tells of each write; the log takes note, which costs an append, and one thread writes groups. Who
must not speak before a write is safe waits for its revision; all who wait for a group share one future.

A group is one SQL statement where it can be: the interpreter's lock is let go and taken again around every
statement, and taking it again from a busy event loop takes milliseconds.

When a group cannot be written nothing after it is: the log has failed for good, whoever waits is told so, and
the store takes no more writes. Memory is then ahead of the disk by what nobody was told is safe, so it is not to be shown
any more, and the only way on is a new process.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeAlias
from zlib import crc32

from steersman.api.errors import ServerError, ServiceUnavailable
from steersman.client.api import EventType
from steersman.server.storage.durable.database import CEILING, REVISION, checksum
from steersman.server.storage.durable.files import Witness
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit

RESERVE = 10_000
"""How many revisions may be in use that the disk does not know of yet.

The disk holds a ceiling no revision in use is above. A server that crashed goes on above it, so a revision
that somebody saw in a watch, of a write that was lost, is never given to another write.
"""
_ROWS = 5_000
"""How many objects fit into one statement: SQLite allows 32,766 values."""
_TOMBSTONES = 20_000
"""After this many deletions what is left of them is swept."""

Encode: TypeAlias = Callable[[Store, str, Any], bytes]

_UPSERT = (
    " ON CONFLICT (resource, key) DO UPDATE SET"
    " revision=excluded.revision, checksum=excluded.checksum, document=excluded.document"
)


class Group:
    """Writes that reach the disk together."""

    __slots__ = ("blobs", "commits", "done", "last", "waiter")

    def __init__(self) -> None:
        self.commits: dict[tuple[str, str], Commit] = {}
        """The last of each object: what came between nobody will ever read."""
        self.blobs: dict[str, bytes] = {}
        self.last = 0
        """The revision of the last write."""
        self.done = threading.Event()
        self.waiter: asyncio.Future[None] | None = None

    def __bool__(self) -> bool:
        return bool(self.commits or self.blobs)


class Log:
    """Follows a store and keeps a database up with it."""

    def __init__(
        self,
        store: Store,
        connection: sqlite3.Connection,
        witness: Witness,
        encode: Encode,
        *,
        threaded: bool = True,
    ) -> None:
        """Everything in the store is on the disk already.

        Without a thread groups are written when somebody waits for them: for worlds in which nothing
        happens by chance.
        """
        self.revision = store.revision
        """The last that is safe."""
        self.failure: Exception | None = None
        """Why nothing is written any more; None while all is well."""
        self.failed: Callable[[Exception], None] | None = None
        """Told of the failure when it happens, in the thread that writes."""
        self.groups = 0
        """How many were written."""
        self._store = store
        self._connection = connection
        self._witness = witness
        self._encode = encode
        self._filling = Group()
        self._writing: Group | None = None
        self._tombstones = 0
        self._closed = False
        self._news = threading.Condition()
        self._ceiling = store.revision + RESERVE
        self._transact(lambda: self._mark(CEILING, self._ceiling))
        self._thread = threading.Thread(target=self._run, name="durable", daemon=True) if threaded else None
        if self._thread is not None:
            self._thread.start()
        store.taps.append(self._tap)
        store.gate = self.check

    # -- what comes ---------------------------------------------------------------------------

    def _tap(self, commit: Commit) -> None:
        if self.failure is not None:
            # Nobody will write it; who waits for it is told.
            return
        if commit.revision > self._ceiling:
            # The disk is thousands of writes behind: nothing may run further ahead of it.
            self._catch_up(commit.revision - 1)
        with self._news:
            group = self._filling
            idle = not group
            group.commits[commit.resource, commit.key] = commit
            group.last = commit.revision
            if idle:
                self._news.notify()

    def keep(self, key: str, value: bytes) -> None:
        """Store a small value of the server's own, and wait until it is safe."""
        self.check()
        with self._news:
            group = self._filling
            group.blobs[key] = value
            self._news.notify()
        if self._thread is None:
            self._flush()
        else:
            group.done.wait()
        self.check()

    # -- who waits ----------------------------------------------------------------------------

    def check(self) -> None:
        """Raises `ServiceUnavailable` where no write could be made safe. The store asks before each."""
        if self.failure is not None:
            raise ServiceUnavailable(
                f"nothing can be written to the data directory: {self.failure}", reason="ServiceUnavailable"
            )
        if self._closed:
            raise ServiceUnavailable("the server is shutting down", reason="ServiceUnavailable")

    async def durable(self, revision: int | None = None) -> None:
        """Wait until the write of a revision, by default the last, is safe.

        Raises `ServerError` where it will not be; it must then not be acknowledged.
        """
        revision = self._store.revision if revision is None else revision
        if revision <= self.revision:
            return
        if self._thread is None:
            self._flush()
        else:
            with self._news:
                group = self._group(revision)
                if group is not None and group.waiter is None:
                    group.waiter = asyncio.get_running_loop().create_future()
                waiter = group.waiter if group is not None else None
            if waiter is not None:
                # One who gives up must not take the others along.
                await asyncio.shield(waiter)
        self._answer(revision)

    def wait(self, revision: int | None = None) -> None:
        """The same for who has no event loop."""
        revision = self._store.revision if revision is None else revision
        self._catch_up(revision)
        self._answer(revision)

    def _catch_up(self, revision: int) -> None:
        if self._thread is None:
            self._flush()
            return
        with self._news:
            group = self._group(revision)
        if group is not None:
            group.done.wait()

    def _group(self, revision: int) -> Group | None:
        """The group a revision is in; None where its fate is known."""
        if revision <= self.revision or self.failure is not None:
            return None
        if self._writing is not None and revision <= self._writing.last:
            return self._writing
        return self._filling if self._filling else None

    def _answer(self, revision: int) -> None:
        if revision > self.revision:
            message = f"the write is not safe on the disk: {self.failure or 'the server is shutting down'}"
            raise ServerError(message, code=500, reason="InternalError", uncertain=True)

    def close(self) -> None:
        """Write what is left, and where all went well leave no gap in the revisions."""
        if self._closed:
            return
        with self._news:
            self._closed = True
            self._news.notify()
        self._store.taps.remove(self._tap)
        if self._thread is not None:
            self._thread.join()
        else:
            self._flush()
        if self.failure is None:
            try:
                self._transact(self._finish)
            except (sqlite3.Error, OSError) as error:
                self.failure = error

    # -- writing ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._filling and not self._closed:
                    self._news.wait()
                if not self._filling:
                    return
            self._flush()

    def _flush(self) -> None:
        """Write what has come so far as one group."""
        with self._news:
            group = self._filling
            if not group:
                return
            self._filling, self._writing = Group(), group
        fresh: Exception | None = None
        if self.failure is None:
            try:
                self._write(group)
                if group.last:
                    self._witness.note(group.last)
            except Exception as error:  # whatever it is: not to have written must not go unsaid
                self.failure = fresh = error
        with self._news:
            if self.failure is None:
                self.revision = max(group.last, self.revision)
                self.groups += 1
            self._writing = None
        group.done.set()
        waiter = group.waiter
        try:
            if waiter is not None:
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)
            if fresh is not None and self.failed is not None:
                self.failed(fresh)
        except RuntimeError:
            # The loop has ended, and with it everybody who waited.
            pass

    def _write(self, group: Group) -> None:
        rows: list[Any] = []
        for commit in group.commits.values():
            document = None
            if commit.event.type is EventType.DELETED:
                self._tombstones += 1
            else:
                document = self._encode(self._store, commit.resource, commit.obj)
            where = commit.resource, commit.key, commit.revision
            rows += (*where, checksum(*where, document), document)
        raises = group.last > self._ceiling - RESERVE // 2
        ceiling = group.last + RESERVE if raises else self._ceiling
        sweeps = self._tombstones > _TOMBSTONES
        if len(rows) <= 5 * _ROWS and not (group.blobs or raises or sweeps):
            self._upsert(rows)
            return

        def everything() -> None:
            for start in range(0, len(rows), 5 * _ROWS):
                self._upsert(rows[start : start + 5 * _ROWS])
            for key, value in group.blobs.items():
                checked = crc32(value, crc32(key.encode()))
                self._connection.execute(
                    "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)", (key, value, checked)
                )
            if sweeps:
                self._sweep(max(group.last, self.revision))
            self._mark(CEILING, ceiling)

        self._transact(everything)
        # Only now: what is above the ceiling on the disk must not be in use.
        self._ceiling = ceiling

    def _upsert(self, values: list[Any]) -> None:
        places = ",".join(["(?,?,?,?,?)"] * (len(values) // 5))
        self._connection.execute(f"INSERT INTO objects VALUES {places}{_UPSERT}", values)

    def _transact(self, work: Callable[[], None]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            work()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _mark(self, name: str, value: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

    def _sweep(self, revision: int) -> None:
        """Forget deleted objects, whose revisions have to be remembered otherwise then."""
        self._mark(REVISION, revision)
        self._connection.execute("DELETE FROM objects WHERE document IS NULL")
        self._tombstones = 0

    def _finish(self) -> None:
        self._sweep(self.revision)
        # Not less than what somebody may have seen who was served to the last.
        self._mark(CEILING, max(self.revision, self._store.revision))


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
