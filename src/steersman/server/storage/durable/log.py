"""The transaction log with group commit: commits that arrive while one group is written form the next group.

The store calls the log for each commit, which costs an append; one thread writes groups. A request waits for
its revision before it is acknowledged; all waiters of a group share one future.

A group is one SQL statement if possible: SQLite releases the interpreter lock around every statement, and taking
it back from a busy event loop takes milliseconds.

If a group cannot be written, the log has failed for good: waiters get an error and the store accepts no more
writes. Memory is then ahead of the disk by writes that were never acknowledged, so the server must stop serving;
only a new process can continue.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias
from zlib import crc32

from steersman.api.errors import ServerError, ServiceUnavailable
from steersman.client.api import EventType
from steersman.server.storage.durable.database import CEILING, REVISION, checksum
from steersman.server.storage.durable.files import AcknowledgedRevision
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit

REVISION_RESERVE = 10_000
"""How many revisions may be in use that are not on disk yet.

The database holds a ceiling above every revision in use. After a crash the server continues above it, so the
revision of a lost write that a watcher has seen is never given to another write.
"""
_MAX_ROWS_PER_STATEMENT = 5_000
"""Objects per statement, of five values each: SQLite allows 32,766 values."""
_MAX_TOMBSTONES = 20_000
"""After this many deletions the rows of deleted objects are removed."""

Encode: TypeAlias = Callable[[Store, str, Any], bytes]

_UPSERT = (
    " ON CONFLICT (resource, key) DO UPDATE SET"
    " revision=excluded.revision, checksum=excluded.checksum, document=excluded.document"
)


class CommitGroup:
    """Commits and blobs that are written in one transaction."""

    __slots__ = ("blobs", "commits", "done", "last", "waiter")

    def __init__(self) -> None:
        self.commits: dict[tuple[str, str], Commit] = {}
        """The last commit of each object; earlier ones need not be written."""
        self.blobs: dict[str, bytes] = {}
        self.last = 0
        """The revision of the last commit."""
        self.done = threading.Event()
        self.waiter: asyncio.Future[None] | None = None

    def __bool__(self) -> bool:
        return bool(self.commits or self.blobs)


class TransactionLog:
    """Writes the commits of a store to a database, in groups."""

    def __init__(
        self,
        store: Store,
        connection: sqlite3.Connection,
        acknowledged: AcknowledgedRevision,
        encode: Encode,
        *,
        threaded: bool = True,
    ) -> None:
        """Everything in the store is on disk already.

        Without ``threaded``, groups are written when a caller waits for them, which is deterministic.
        """
        self.revision = store.revision
        """The last durable revision."""
        self.failure: Exception | None = None
        """The error that stopped the log; None while it works."""
        self.on_failure: Callable[[Exception], None] | None = None
        """Called with the error that stops the log, in the writer thread."""
        self.groups = 0
        """The number of groups written."""
        self._store = store
        self._connection = connection
        self._acknowledged = acknowledged
        self._encode = encode
        self._pending = CommitGroup()
        self._writing: CommitGroup | None = None
        self._tombstones = 0
        self._closed = False
        self._changed = threading.Condition()
        self._ceiling = store.revision + REVISION_RESERVE
        self._in_transaction(lambda: self._write_mark(CEILING, self._ceiling))
        self._thread = threading.Thread(target=self._run, name="durable", daemon=True) if threaded else None
        if self._thread is not None:
            self._thread.start()
        store.commit_hooks.append(self._on_commit)
        store.write_gate = self.check

    # -- commits ------------------------------------------------------------------------------

    def _on_commit(self, commit: Commit) -> None:
        if self.failure is not None:
            # It is never written; waiters of its revision get an error.
            return
        if commit.revision > self._ceiling:
            # The disk is thousands of commits behind: block until it catches up.
            self._wait_written(commit.revision - 1)
        with self._changed:
            group = self._pending
            idle = not group
            group.commits[commit.resource, commit.key] = commit
            group.last = commit.revision
            if idle:
                self._changed.notify()

    def put_blob(self, key: str, value: bytes) -> None:
        """Stores a small value of the server and waits until it is durable."""
        self.check()
        with self._changed:
            group = self._pending
            group.blobs[key] = value
            self._changed.notify()
        if self._thread is None:
            self._flush()
        else:
            group.done.wait()
        self.check()

    # -- waiting ------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises `ServiceUnavailable` if writes cannot become durable. The store calls it before each write."""
        if self.failure is not None:
            raise ServiceUnavailable(
                f"the data directory cannot be written: {self.failure}", reason="ServiceUnavailable"
            )
        if self._closed:
            raise ServiceUnavailable("the server is shutting down", reason="ServiceUnavailable")

    async def durable(self, revision: int | None = None) -> None:
        """Waits until the write of a revision, by default the last, is durable.

        Raises `ServerError` if it will not become durable; it must then not be acknowledged.
        """
        revision = self._store.revision if revision is None else revision
        if revision <= self.revision:
            return
        if self._thread is None:
            self._flush()
        else:
            with self._changed:
                group = self._group(revision)
                if group is not None and group.waiter is None:
                    group.waiter = asyncio.get_running_loop().create_future()
                waiter = group.waiter if group is not None else None
            if waiter is not None:
                # Shielded: a cancelled waiter must not cancel the future of the others.
                await asyncio.shield(waiter)
        self._raise_unless_durable(revision)

    def wait_durable(self, revision: int | None = None) -> None:
        """Waits like `durable`, for callers without an event loop."""
        revision = self._store.revision if revision is None else revision
        self._wait_written(revision)
        self._raise_unless_durable(revision)

    def _wait_written(self, revision: int) -> None:
        if self._thread is None:
            self._flush()
            return
        with self._changed:
            group = self._group(revision)
        if group is not None:
            group.done.wait()

    def _group(self, revision: int) -> CommitGroup | None:
        """The group of a revision; None if it is durable or has failed."""
        if revision <= self.revision or self.failure is not None:
            return None
        if self._writing is not None and revision <= self._writing.last:
            return self._writing
        return self._pending if self._pending else None

    def _raise_unless_durable(self, revision: int) -> None:
        if revision > self.revision:
            message = f"the write is not durable: {self.failure or 'the server is shutting down'}"
            raise ServerError(message, code=500, reason="InternalError", uncertain=True)

    def close(self) -> None:
        """Writes pending commits; if all are durable, the next start leaves no gap in the revisions."""
        if self._closed:
            return
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._store.commit_hooks.remove(self._on_commit)
        if self._thread is not None:
            self._thread.join()
        else:
            self._flush()
        if self.failure is None:
            try:
                self._in_transaction(self._write_final_marks)
            except (sqlite3.Error, OSError) as error:
                self.failure = error

    # -- writing ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closed:
                    self._changed.wait()
                if not self._pending:
                    return
            self._flush()

    def _flush(self) -> None:
        """Writes all pending commits as one group."""
        with self._changed:
            group = self._pending
            if not group:
                return
            self._pending, self._writing = CommitGroup(), group
        if self.failure is None:
            try:
                self._write(group)
                if group.last:
                    self._acknowledged.write(group.last)
            except Exception as error:  # any error: a failed write must be reported
                # Before any write is refused because of it.
                self._report(error)
                self.failure = error
        with self._changed:
            if self.failure is None:
                self.revision = max(group.last, self.revision)
                self.groups += 1
            self._writing = None
        group.done.set()
        waiter = group.waiter
        # Where the event loop is closed, there are no waiters.
        with suppress(RuntimeError):
            if waiter is not None:
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    def _report(self, failure: Exception) -> None:
        # Where the event loop is closed, no failure is waited for.
        with suppress(RuntimeError):
            if self.on_failure is not None:
                self.on_failure(failure)

    def _write(self, group: CommitGroup) -> None:
        rows: list[Any] = []
        for commit in group.commits.values():
            document = None
            if commit.event.type is EventType.DELETED:
                self._tombstones += 1
            else:
                document = self._encode(self._store, commit.resource, commit.obj)
            where = commit.resource, commit.key, commit.revision
            rows += (*where, checksum(*where, document), document)
        raise_ceiling = group.last > self._ceiling - REVISION_RESERVE // 2
        ceiling = group.last + REVISION_RESERVE if raise_ceiling else self._ceiling
        delete_tombstones = self._tombstones > _MAX_TOMBSTONES
        if len(rows) <= 5 * _MAX_ROWS_PER_STATEMENT and not (
            group.blobs or raise_ceiling or delete_tombstones
        ):
            self._upsert(rows)
            return

        def transaction() -> None:
            for start in range(0, len(rows), 5 * _MAX_ROWS_PER_STATEMENT):
                self._upsert(rows[start : start + 5 * _MAX_ROWS_PER_STATEMENT])
            for key, value in group.blobs.items():
                checked = crc32(value, crc32(key.encode()))
                self._connection.execute(
                    "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)", (key, value, checked)
                )
            if delete_tombstones:
                self._delete_tombstones(max(group.last, self.revision))
            self._write_mark(CEILING, ceiling)

        self._in_transaction(transaction)
        # Only after the commit: no revision above the ceiling on disk may be in use.
        self._ceiling = ceiling

    def _upsert(self, values: list[Any]) -> None:
        places = ",".join(["(?,?,?,?,?)"] * (len(values) // 5))
        self._connection.execute(f"INSERT INTO objects VALUES {places}{_UPSERT}", values)

    def _in_transaction(self, work: Callable[[], None]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            work()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _write_mark(self, name: str, value: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

    def _delete_tombstones(self, revision: int) -> None:
        """Removes the rows of deleted objects; the last revision is then kept as a mark."""
        self._write_mark(REVISION, revision)
        self._connection.execute("DELETE FROM objects WHERE document IS NULL")
        self._tombstones = 0

    def _write_final_marks(self) -> None:
        self._delete_tombstones(self.revision)
        # At least the last revision a watcher may have seen.
        self._write_mark(CEILING, max(self.revision, self._store.revision))


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
