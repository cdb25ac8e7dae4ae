"""The database of a data directory: its marker, its tables, and whether it is sound.

One row is one object as a JSON document with its ``apiVersion`` and ``kind``, at the revision of its last
write, with a checksum over all of it: SQLite notices damage to its own structure only. A row without
a document says that the object was deleted at that revision.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from steersman.server.storage.durable import files
from steersman.server.storage.durable.errors import RESTORE, Corrupt, Foreign, Newer, Unusable

APPLICATION = 0x53545253
"""What marks a database as ours: ``STRS``."""
FORMAT = 1
"""Of the tables. A program reads its own format and refuses later ones."""
PATIENCE = 30.0
"""How long to wait for another connection, in seconds: a snapshot is being taken, somebody looks into it."""

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
    """An object as it is stored."""

    resource: str
    key: str
    revision: int
    checksum: int
    document: bytes | None

    def is_sound(self) -> bool:
        return self.checksum == checksum(self.resource, self.key, self.revision, self.document)


def checksum(resource: str, key: str, revision: int, document: bytes | None) -> int:
    """Of a row. Also of where it is: a document at another's place is damage, too."""
    return crc32(document or b"", crc32(f"{resource} {key} {revision}".encode()))


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection to a database that exists. Any thread may use it, one at a time."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE
    )
    if not readonly:
        # Every commit is on the disk before it returns.
        connection.execute("PRAGMA synchronous=FULL")
    return connection


def create(directory: Path, revision: int) -> None:
    """Make the database of a new data directory; it is there as a whole or not at all."""
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
        files.settle(fresh, directory / files.DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise Unusable(
            directory, f"no database can be made in it: {error}", "check its permissions and its disk"
        ) from None


class Contents:
    """A database to read. Everything about it is checked before anything is believed."""

    def __init__(self, path: Path, *, shown: Path | None = None, deep: bool = True) -> None:
        """``shown`` is what messages call it; not ``deep``, only its marker is looked at.

        Raises `Foreign`, `Newer` or `Corrupt`.
        """
        self._shown = shown or path
        try:
            self._connection = connect(path, readonly=True)
        except sqlite3.Error as error:
            raise Unusable(
                self._shown, f"cannot be opened: {error}", "check its permissions and its disk"
            ) from None
        try:
            self._check(deep)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection

    def _check(self, deep: bool) -> None:
        try:
            application, version = (
                self._one(f"PRAGMA {name}") for name in ("application_id", "user_version")
            )
            if application != APPLICATION:
                raise Foreign(self._shown, "the database in it is not steersman's", "name another directory")
            if version > FORMAT:
                raise Newer(
                    self._shown,
                    f"it has format {version} and this steersman knows formats up to {FORMAT}",
                    "use the newer steersman that made it",
                )
            verdict = self._one("PRAGMA quick_check(1)") if deep else "ok"
        except sqlite3.Error as error:
            raise self.corrupt(str(error)) from None
        if verdict != "ok":
            raise self.corrupt(" ".join(str(verdict).split()))

    def _one(self, sql: str) -> Any:
        row = self._connection.execute(sql).fetchone()
        return row[0] if row else None

    def marks(self) -> dict[str, int]:
        """The numbers kept beside the objects."""
        marks: dict[str, int] = dict(self._rows("SELECT name, value FROM marks"))
        missing = [name for name in (REVISION, CEILING) if not isinstance(marks.get(name), int)]
        if missing:
            raise self.corrupt(f"its {missing[0]} is missing")
        return marks

    def blobs(self) -> dict[str, bytes]:
        """What `steersman.server.storage.durable.data_dir.Disk.keep` was given."""
        blobs: dict[str, bytes] = {}
        for key, value, checked in self._rows("SELECT key, value, checksum FROM blobs"):
            if crc32(value, crc32(key.encode())) != checked:
                raise self.corrupt(f"{key!r} is not what was written")
            blobs[key] = value
        return blobs

    def rows(self) -> Iterator[Row]:
        """All objects and what is left of deleted ones, in the order they first came."""
        for values in self._rows("SELECT resource, key, revision, checksum, document FROM objects"):
            row = Row(*values)
            if not row.is_sound():
                raise self.corrupt(f"{row.resource} {row.key!r} is not what was written")
            yield row

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(sql)
        except sqlite3.Error as error:
            raise self.corrupt(str(error)) from None

    def corrupt(self, what: str) -> Corrupt:
        """The refusal of this database for some reason."""
        return Corrupt(self._shown, f"the data is damaged ({what})", RESTORE)
