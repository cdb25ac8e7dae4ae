"""A data directory on disk: whose it is, who has it, and how far writes were acknowledged.

::

    state.db        the objects, in SQLite; state.db-wal and state.db-shm are SQLite's own
    acknowledged    the last revision anybody was told is safe
    lock            locked, and naming the process, while a server has the directory
    fresh.db        a database in the making; worthless

Everything in it is for its owner alone: it holds keys.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from steersman.server.storage.durable.errors import Foreign, InUse, Unusable

DATABASE, LOCK, WITNESS, FRESH = "state.db", "lock", "acknowledged", "fresh.db"
_OURS_WHEN_EMPTY = (LOCK, WITNESS, FRESH, f"{FRESH}-journal", f"{FRESH}-wal", f"{FRESH}-shm")


def occupied(path: Path) -> bool:
    """Whether a directory has a database. Raises `Foreign` where it has something else.

    What a first start that was cut short leaves behind does not count.
    """
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise Foreign(path, "this is no directory", "name another for --data-dir") from None
    except OSError as error:
        raise _unusable(path, error) from None
    if DATABASE in names:
        return True
    strange = [name for name in names if name not in _OURS_WHEN_EMPTY]
    if strange:
        raise Foreign(
            path,
            f"the directory is not empty and holds no steersman data (there is {strange[0]!r})",
            "name an empty or a new directory",
        )
    return False


def prepare(path: Path) -> None:
    """Make the directory, for its owner alone."""
    try:
        if not path.exists():
            path.mkdir(mode=0o700, parents=True)
            sync(path.parent)
        elif path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise _unusable(path, error) from None


class Lock:
    """Held by the one server that has a directory, until it is closed or its process ends."""

    def __init__(self, path: Path) -> None:
        """Raises `InUse`."""
        try:
            self._file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 20, 0).decode(errors="replace").strip()
            os.close(self._file)
            whom = f"process {owner}" if owner.isdigit() else "another process"
            raise InUse(
                path, f"the directory is in use by {whom}", "stop that server or name another directory"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others have the directory."""
        os.close(self._file)


class Witness:
    """Remembers, beside the database, up to which revision writes were acknowledged.

    SQLite takes a log that was cut off or damaged for one whose last writes never finished and leaves them
    out. It cannot know that somebody was told they are safe; this does. It is written after the database is
    safe and before anybody is told, so it is never ahead of what the disk promised. It costs no flush:
    it outlives the process, and where it does not outlive the machine it is merely too modest.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / WITNESS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def revision(self) -> int:
        """The last that was acknowledged; 0 where that is not known."""
        text = os.pread(self._file, 21, 0)
        return int(text) if len(text) == 21 and text[:20].isdigit() else 0

    def note(self, revision: int) -> None:
        """Remember a revision."""
        os.pwrite(self._file, b"%020d\n" % revision, 0)

    def close(self) -> None:
        os.close(self._file)


def create(path: Path) -> None:
    """An empty file for its owner alone. SQLite's other files get the permissions of the database."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def discard(path: Path) -> None:
    """Remove a database in the making, with what belongs to it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def settle(fresh: Path, final: Path) -> None:
    """Put a finished file in place, as one step."""
    sync(fresh)
    fresh.replace(final)
    sync(final.parent)


def sync(path: Path) -> None:
    """Flush a file or directory to the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Some file systems cannot flush directories, and need not.
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(file)
    finally:
        os.close(file)


def _unusable(path: Path, error: OSError) -> Unusable:
    return Unusable(path, error.strerror or str(error), "check its permissions and its disk")
