"""The files of a data directory: its lock, its acknowledged revision, and atomic file creation.

::

    state.db        the objects, in SQLite; state.db-wal and state.db-shm are SQLite's own
    acknowledged    the last revision that was acknowledged to a client
    lock            locked while a server uses the directory; holds its process id
    fresh.db        a database that is being created; may be deleted

All files are readable by their owner alone: they hold private keys.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from io import BufferedReader, BufferedWriter
from pathlib import Path

from steersman.server.storage.durable.errors import DataDirInUse, ForeignData, UnusablePath

DATABASE, LOCK, ACKNOWLEDGED, FRESH = "state.db", "lock", "acknowledged", "fresh.db"
_OURS_WHEN_EMPTY = (LOCK, ACKNOWLEDGED, FRESH, f"{FRESH}-journal", f"{FRESH}-wal", f"{FRESH}-shm")


def has_database(path: Path) -> bool:
    """Whether a directory has a database. Raises `ForeignData` if it holds other files.

    Files left by an interrupted first start are ignored.
    """
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise ForeignData(path, "not a directory", "name another for --data-dir") from None
    except OSError as error:
        raise _unusable(path, error) from None
    if DATABASE in names:
        return True
    foreign = [name for name in names if name not in _OURS_WHEN_EMPTY]
    if foreign:
        raise ForeignData(
            path,
            f"the directory is not empty and holds no steersman data (there is {foreign[0]!r})",
            "name an empty or a new directory",
        )
    return False


def prepare(path: Path) -> None:
    """Creates the directory with mode 0700."""
    try:
        if not path.exists():
            path.mkdir(mode=0o700, parents=True)
            sync(path.parent)
        elif path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise _unusable(path, error) from None


class Lock:
    """The lock of a data directory: held by one server until it is released or the process ends."""

    def __init__(self, path: Path) -> None:
        """Takes the lock. Raises `DataDirInUse` if another process holds it."""
        try:
            self._file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 20, 0).decode(errors="replace").strip()
            os.close(self._file)
            holder = f"process {owner}" if owner.isdigit() else "another process"
            raise DataDirInUse(
                path, f"the directory is in use by {holder}", "stop that server or name another directory"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Releases the lock."""
        os.close(self._file)


class AcknowledgedRevision:
    """The last acknowledged revision, in a file beside the database.

    SQLite treats a truncated or damaged write-ahead log as one whose last writes never finished, and drops them.
    It cannot know that they were acknowledged; this file does. It is written after the database is flushed and
    before the write is acknowledged, so it is never ahead of the database. It is not flushed: it survives a crash of
    the process, and after a loss of power it may be too low, which is harmless.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / ACKNOWLEDGED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def revision(self) -> int:
        """The last acknowledged revision; 0 if unknown."""
        text = os.pread(self._file, 21, 0)
        return int(text) if len(text) == 21 and text[:20].isdigit() else 0

    def write(self, revision: int) -> None:
        """Records a revision as acknowledged."""
        os.pwrite(self._file, b"%020d\n" % revision, 0)

    def close(self) -> None:
        os.close(self._file)


def create(path: Path) -> None:
    """Creates an empty file with mode 0600. SQLite gives its other files the permissions of the database."""
    create_for_writing(path).close()


def create_for_writing(path: Path) -> BufferedWriter:
    """Creates a file with mode 0600 and returns it opened: what takes its name later is not written to."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def open_for_reading(path: Path) -> BufferedReader:
    """Opens a file of our own; a symlink is refused."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def commit_written(file: BufferedWriter, fresh: Path, final: Path) -> None:
    """Moves a file that is complete and still open to its final name, atomically and flushed.

    Raises `OSError` if another file has taken its name.
    """
    file.flush()
    os.fsync(file.fileno())
    if not os.path.samestat(os.fstat(file.fileno()), os.lstat(fresh)):
        raise FileExistsError(errno.EEXIST, "another file has taken its name", str(fresh))
    fresh.replace(final)
    sync(final.parent)


def discard(path: Path) -> None:
    """Removes an unfinished database and its journal files."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def commit_file(fresh: Path, final: Path) -> None:
    """Moves a finished file to its final name, atomically and flushed."""
    sync(fresh)
    fresh.replace(final)
    sync(final.parent)


def sync(path: Path) -> None:
    """Flushes a file or directory to disk (fsync)."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Some file systems cannot fsync directories, and need not.
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(file)
    finally:
        os.close(file)


def _unusable(path: Path, error: OSError) -> UnusablePath:
    return UnusablePath(path, error.strerror or str(error), "check its permissions and its disk")
