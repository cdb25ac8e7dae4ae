"""The SQLite database of a data directory: its format, its tables and their integrity checks.

A row is one object as a JSON document with its ``apiVersion`` and ``kind``, at the revision of its last
write, with a checksum of the whole row: SQLite detects damage to its own structure only. A row without
a document is a tombstone: the object was deleted at that revision.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from steersman.server.storage.durable import files
from steersman.server.storage.durable.errors import (
    RESTORE,
    CorruptData,
    ForeignData,
    NewerFormat,
    UnusablePath,
)

APPLICATION = 0x53545253
"""The SQLite application id of our databases: ``STRS``."""
FORMAT = 1
"""The format of the tables. Later formats are refused."""
BUSY_TIMEOUT_SECONDS = 30.0
"""How long to wait for a lock of another connection, such as one that takes a snapshot."""

CEILING, REVISION = "ceiling", "revision"

_SCHEMA = """
CREATE TABLE objects (
    resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, checksum INTEGER NOT NULL,
    document BLOB, PRIMARY KEY (resource, key)
);
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs (key TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL);
"""


class Row(NamedTuple):
    """A stored object, or a tombstone."""

    resource: str
    key: str
    revision: int
    checksum: int
    document: bytes | None

    def is_intact(self) -> bool:
        return self.checksum == checksum(self.resource, self.key, self.revision, self.document)


def checksum(resource: str, key: str, revision: int, document: bytes | None) -> int:
    """The checksum of a row. It covers the key, so that a document in another row is detected too."""
    return crc32(document or b"", crc32(f"{resource} {key} {revision}".encode()))


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection to an existing database. Any thread may use it, one at a time."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_SECONDS
    )
    if not readonly:
        # Every COMMIT is flushed to disk before it returns.
        connection.execute("PRAGMA synchronous=FULL")
    return connection


def create(directory: Path, revision: int) -> None:
    """Creates the database of a new data directory atomically."""
    fresh = directory / files.FRESH
    try:
        files.discard(fresh)
        files.create(fresh)
        connection = connect(fresh)
        try:
            connection.executescript(
                f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={FORMAT};" + _SCHEMA
            )
            marks = [(REVISION, revision), (CEILING, revision)]
            connection.executemany("INSERT INTO marks VALUES (?, ?)", marks)
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        files.commit_file(fresh, directory / files.DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise UnusablePath(
            directory, f"cannot create a database: {error}", "check its permissions and its disk"
        ) from None


class DatabaseReader:
    """Reads a database and verifies its format, structure and checksums."""

    def __init__(self, path: Path, *, display_path: Path | None = None, full_check: bool = True) -> None:
        """``display_path`` is the path in messages. Without ``full_check``, only the format is verified.

        Raises `ForeignData`, `NewerFormat` or `CorruptData`.
        """
        self._display_path = display_path or path
        try:
            self._connection = connect(path, readonly=True)
        except sqlite3.Error as error:
            raise UnusablePath(
                self._display_path, f"cannot be opened: {error}", "check its permissions and its disk"
            ) from None
        try:
            self._check(full_check)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> DatabaseReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection

    def _check(self, full_check: bool) -> None:
        try:
            application, version = (
                self._one(f"PRAGMA {name}") for name in ("application_id", "user_version")
            )
            if application != APPLICATION:
                raise ForeignData(
                    self._display_path, "the database in it is not steersman's", "name another directory"
                )
            if version > FORMAT:
                raise NewerFormat(
                    self._display_path,
                    f"it has format {version} and this steersman knows formats up to {FORMAT}",
                    "use the newer steersman that made it",
                )
            verdict = self._one("PRAGMA quick_check(1)") if full_check else "ok"
        except sqlite3.Error as error:
            raise self.corrupt(str(error)) from None
        if verdict != "ok":
            raise self.corrupt(" ".join(str(verdict).split()))

    def _one(self, sql: str) -> Any:
        row = self._connection.execute(sql).fetchone()
        return row[0] if row else None

    def marks(self) -> dict[str, int]:
        """The numbers stored beside the objects: the revision and its ceiling."""
        marks: dict[str, int] = dict(self._rows("SELECT name, value FROM marks"))
        missing = [name for name in (REVISION, CEILING) if not isinstance(marks.get(name), int)]
        if missing:
            raise self.corrupt(f"its {missing[0]} is missing")
        return marks

    def blobs(self) -> dict[str, bytes]:
        """The bytes that `steersman.server.storage.durable.data_dir.DataDir.keep` was given, by key."""
        blobs: dict[str, bytes] = {}
        for key, value, checked in self._rows("SELECT key, value, checksum FROM blobs"):
            if crc32(value, crc32(key.encode())) != checked:
                raise self.corrupt(f"the checksum of {key!r} differs")
            blobs[key] = value
        return blobs

    def rows(self) -> Iterator[Row]:
        """All objects and tombstones, in order of creation."""
        for values in self._rows("SELECT resource, key, revision, checksum, document FROM objects"):
            row = Row(*values)
            if not row.is_intact():
                raise self.corrupt(f"the checksum of {row.resource} {row.key!r} differs")
            yield row

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(sql)
        except sqlite3.Error as error:
            raise self.corrupt(str(error)) from None

    def corrupt(self, reason: str) -> CorruptData:
        """The error for damaged data in this database."""
        return CorruptData(self._display_path, f"the data is damaged ({reason})", RESTORE)
