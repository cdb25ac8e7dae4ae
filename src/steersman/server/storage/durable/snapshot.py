"""A data directory as one file: a line that says what it is, then a database.

The line is JSON: format, revision, how many objects, size and SHA-256 of the rest. Keys and certificates of the
server are in it, so the file is for its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path
from typing import BinaryIO

import msgspec

from steersman.server.storage.durable import files
from steersman.server.storage.durable.database import CEILING, REVISION, Contents, connect
from steersman.server.storage.durable.errors import Corrupt, Foreign, Newer, Refused, Unusable

FORMAT = 1
_NAME = "steersman-snapshot"
_LINE = 4096
_CHUNK = 1 << 20
_AGAIN = "use another snapshot, or take a new one"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a snapshot."""

    name: str
    format: int
    revision: int = 0
    objects: int = 0
    size: int = 0
    sha256: str = ""


def save(data: Path, file: Path) -> Header:
    """Write a snapshot of a data directory, also while a server has it. Raises `Refused`.

    The file is there as a whole or not at all; it may take the place of an older snapshot, of nothing else.
    """
    if not files.occupied(data):
        raise Foreign(data, "there is no steersman data in it", "name the --data-dir of a server")
    if file.exists():
        _header(file)
    copy, partial = (file.with_name(f"{file.name}.{word}") for word in ("copy", "partial"))
    try:
        files.discard(copy)
        partial.unlink(missing_ok=True)
        try:
            files.create(copy)
            with Contents(data / files.DATABASE, shown=data) as source:
                _copy(source.connection, copy)
            # What cannot be read here could not be read after a restore either.
            with Contents(copy, shown=data) as contents:
                revision, objects = _counted(contents)
            header = Header(
                name=_NAME,
                format=FORMAT,
                revision=revision,
                objects=objects,
                size=copy.stat().st_size,
                sha256=_digest(copy),
            )
            files.create(partial)
            with partial.open("wb") as out, copy.open("rb") as body:
                out.write(msgspec.json.encode(header) + b"\n")
                for chunk in iter(lambda: body.read(_CHUNK), b""):
                    out.write(chunk)
            files.settle(partial, file)
        finally:
            files.discard(copy)
            partial.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise Unusable(
            file, f"the snapshot cannot be written: {error}", "check its directory and disk"
        ) from None
    return header


def restore(file: Path, data: Path, *, bump: int = 0) -> Header:
    """Make a data directory from a snapshot. Raises `Refused`, also for a directory with anything in it.

    ``bump`` is added to the revision, for clients that saw later ones than the snapshot has: they are told
    to list again and do not take new writes for ones they know.
    """
    header = _header(file)
    if data.is_dir() and any(data.iterdir()):
        raise Foreign(data, "the directory is not empty", "restore into an empty or a new directory")
    files.occupied(data)
    files.prepare(data)
    lock = files.Lock(data)
    fresh = data / files.FRESH
    try:
        files.create(fresh)
        _unpack(file, header, fresh)
        with Contents(fresh, shown=file) as contents:
            revision, _ = _counted(contents)
            start = max(revision, contents.marks()[CEILING]) + bump
        connection = connect(fresh)
        try:
            connection.execute("UPDATE marks SET value=? WHERE name=?", (start, CEILING))
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        files.settle(fresh, data / files.DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise Unusable(data, f"the snapshot cannot be restored: {error}", "check its disk") from None
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
        # A single file: nothing of it is in a log beside it.
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()


def _counted(contents: Contents) -> tuple[int, int]:
    """The last revision and the number of objects of a database, every row of which is looked at."""
    revision, objects = contents.marks()[REVISION], 0
    contents.blobs()
    for row in contents.rows():
        revision = max(revision, row.revision)
        objects += row.document is not None
    return revision, objects


def _header(file: Path) -> Header:
    try:
        with file.open("rb") as body:
            return _read(file, body)
    except OSError as error:
        raise Unusable(file, error.strerror or str(error), "name a snapshot file") from None


def _read(file: Path, body: BinaryIO) -> Header:
    try:
        header = msgspec.json.decode(body.readline(_LINE), type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        header = Header(name="", format=0)
    if header.name != _NAME:
        raise Foreign(file, "this is no steersman snapshot", "name another file")
    if header.format > FORMAT:
        raise Newer(
            file,
            f"the snapshot has format {header.format} and this steersman knows formats up to {FORMAT}",
            "use the newer steersman that made it",
        )
    return header


def _unpack(file: Path, header: Header, fresh: Path) -> None:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as body, fresh.open("wb") as out:
        _read(file, body)
        for chunk in iter(lambda: body.read(_CHUNK), b""):
            digest.update(chunk)
            size += len(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if size != header.size:
        raise Corrupt(file, f"the snapshot has {size} bytes of data instead of {header.size}", _AGAIN)
    if digest.hexdigest() != header.sha256:
        raise Corrupt(file, "the snapshot is damaged: its checksum differs", _AGAIN)


def _digest(file: Path) -> str:
    with file.open("rb") as body:
        return hashlib.file_digest(body, "sha256").hexdigest()


__all__ = ["FORMAT", "Header", "Refused", "restore", "save"]
