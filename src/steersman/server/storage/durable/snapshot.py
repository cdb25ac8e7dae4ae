"""Snapshots: a data directory as one file, a header line followed by a database.

The header is JSON: format, revision, number of objects, size in bytes and SHA-256 of the database. The file holds the
private keys of the server, so it is readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path
from typing import BinaryIO

import msgspec

from steersman.server.storage.durable import files
from steersman.server.storage.durable.database import CEILING, REVISION, DatabaseReader, connect
from steersman.server.storage.durable.errors import ForeignData, UnusablePath
from steersman.server.storage.durable.snapshot_header import (
    CHUNK_BYTES,
    DATA_DIR,
    FORMAT,
    open_header,
    read_header,
    verify,
)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a snapshot."""

    name: str
    format: int
    revision: int = 0
    objects: int = 0
    size: int = 0
    sha256: str = ""


def save(data: Path, file: Path) -> Header:
    """Writes a snapshot of a data directory, also while a server uses it. Raises `DataDirError`.

    The file is written atomically; it may replace an older snapshot, but no other file.
    """
    if not files.has_database(data):
        raise ForeignData(data, "holds no steersman data", "name the --data-dir of a server")
    if file.exists():
        _header(file)
    copy, partial = (file.with_name(f"{file.name}.{word}") for word in ("copy", "partial"))
    try:
        files.discard(copy)
        partial.unlink(missing_ok=True)
        try:
            files.create(copy)
            with DatabaseReader(data / files.DATABASE, display_path=data) as source:
                _copy(source.connection, copy)
            # Verified now: a copy that cannot be read could not be restored either.
            with DatabaseReader(copy, display_path=data) as contents:
                revision, objects = _revision_and_count(contents)
            with files.create_for_writing(partial) as out, files.open_for_reading(copy) as body:
                header = Header(
                    name=DATA_DIR,
                    format=FORMAT,
                    revision=revision,
                    objects=objects,
                    size=os.fstat(body.fileno()).st_size,
                    sha256=hashlib.file_digest(body, "sha256").hexdigest(),
                )
                body.seek(0)
                out.write(msgspec.json.encode(header) + b"\n")
                for chunk in iter(lambda: body.read(CHUNK_BYTES), b""):
                    out.write(chunk)
                files.commit_written(out, partial, file)
        finally:
            files.discard(copy)
            partial.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise UnusablePath(
            file, f"the snapshot cannot be written: {error}", "check its directory and disk"
        ) from None
    return header


def restore(file: Path, data: Path, *, bump: int = 0) -> Header:
    """Creates a data directory from a snapshot. Raises `DataDirError`, also if the directory is not empty.

    ``bump`` is added to the revision, for clients that saw later revisions than the snapshot's: their watches
    expire and they list again, instead of mistaking new writes for known ones.
    """
    header = _header(file)
    if data.is_dir() and any(data.iterdir()):
        raise ForeignData(data, "the directory is not empty", "restore into an empty or a new directory")
    files.has_database(data)
    files.prepare(data)
    lock = files.Lock(data)
    fresh = data / files.FRESH
    try:
        with files.create_for_writing(fresh) as out:
            _unpack(file, header, out)
        with DatabaseReader(fresh, display_path=file) as contents:
            revision, _ = _revision_and_count(contents)
            start = max(revision, contents.marks()[CEILING]) + bump
        connection = connect(fresh)
        try:
            connection.execute("UPDATE marks SET value=? WHERE name=?", (start, CEILING))
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        files.commit_file(fresh, data / files.DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise UnusablePath(data, f"the snapshot cannot be restored: {error}", "check its disk") from None
    finally:
        files.discard(fresh)
        lock.release()
        if not (data / files.DATABASE).exists():
            (data / files.LOCK).unlink(missing_ok=True)
    return header


def _copy(source: sqlite3.Connection, copy: Path) -> None:
    target = connect(copy)
    try:
        source.backup(target)
        # Without a write-ahead log the copy is a single file.
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()


def _revision_and_count(contents: DatabaseReader) -> tuple[int, int]:
    """The last revision and the number of objects of a database; verifies every row."""
    revision, objects = contents.marks()[REVISION], 0
    contents.blobs()
    for row in contents.rows():
        revision = max(revision, row.revision)
        objects += row.document is not None
    return revision, objects


def _header(file: Path) -> Header:
    return open_header(file, DATA_DIR, Header)


def _unpack(file: Path, header: Header, out: BinaryIO) -> None:
    with file.open("rb") as body:
        read_header(file, body, DATA_DIR, Header)
        verify(file, header, body, out.write)
        out.flush()
        os.fsync(out.fileno())
