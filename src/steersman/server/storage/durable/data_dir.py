"""A data directory, opened: the store that is in it, the log that keeps it, and small values.

::

    disk = open_disk(Path("data"))
    server = Server(clock, store=disk.store)
    life.install(server)                      # custom resources: their objects are there already
    disk.renew(server)                        # what goes by itself begins its time anew
    created = verbs.create(server, ...)
    await disk.log.durable()                  # now it may be acknowledged
    disk.close()
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from steersman.api.generated import resources
from steersman.server.registry.resources import Registry
from steersman.server.server import Server
from steersman.server.storage.durable import documents, files
from steersman.server.storage.durable.database import CEILING, REVISION, Contents, connect, create
from steersman.server.storage.durable.errors import Corrupt, Unusable
from steersman.server.storage.durable.log import Log
from steersman.server.storage.store import HISTORY, Store

FIRST = 1
"""The revision of a store nobody has written to."""


class Disk:
    """What a server has on disk. Closing it leaves it as if nothing had ever been in a hurry."""

    def __init__(
        self,
        path: Path,
        lock: files.Lock,
        witness: files.Witness,
        store: Store,
        log: Log,
        blobs: dict[str, bytes],
        connection: sqlite3.Connection,
    ) -> None:
        self.path = path
        self.store = store
        self.log = log
        self._lock = lock
        self._witness = witness
        self._blobs = blobs
        self._connection = connection
        self._open = True

    def meta(self, key: str) -> bytes | None:
        """A small value of the server's own, such as a key or a certificate; None where there is none."""
        return self._blobs.get(key)

    def keep(self, key: str, value: bytes) -> None:
        """Store such a value; it is safe on the disk when this returns."""
        self.log.keep(key, value)
        self._blobs[key] = value

    def renew(self, server: Server) -> None:
        """Begin anew the time of what goes by itself: how much of it was left is not stored."""
        kept = {table.resource for table in self.store.tables() if len(table)}
        for row in resources():
            if (f"{row.plural}.{row.group}" if row.group else row.plural) in kept:
                server.renew(server.registry.find(row.group, row.version, row.plural))

    def close(self) -> None:
        """Write what is left, and let others have the directory."""
        if self._open:
            self._open = False
            self.log.close()
            self._connection.close()
            self._witness.close()
            self._lock.release()

    def __enter__(self) -> Disk:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_disk(
    path: Path, *, registry: Registry | None = None, history: int = HISTORY, threaded: bool = True
) -> Disk:
    """Open a data directory, or make one. Raises a `Refused` and leaves alone what it finds otherwise.

    ``registry`` knows what built-in resources are made of; everything else is a custom resource. Without
    a thread writes reach the disk when somebody waits for them.
    """
    occupied = files.occupied(path)
    if occupied:
        # Not even a lock is put beside what is not ours.
        Contents(path / files.DATABASE, shown=path, deep=False).close()
    files.prepare(path)
    lock = files.Lock(path)
    try:
        if not occupied:
            create(path, FIRST)
        with Contents(path / files.DATABASE, shown=path) as contents:
            witness = files.Witness(path)
            try:
                store, revision = _load(contents, registry or Registry(), history)
                if witness.revision > revision:
                    raise Corrupt(
                        path,
                        f"writes up to {witness.revision} were acknowledged and those after {revision} are missing",
                        f"restore a snapshot into a new directory, or remove {path / files.WITNESS} to go on without them",
                    )
                connection = connect(path / files.DATABASE)
                log = Log(store, connection, witness, documents.encode, threaded=threaded)
            except BaseException:
                witness.close()
                raise
            return Disk(path, lock, witness, store, log, contents.blobs(), connection)
    except (OSError, sqlite3.Error) as error:
        lock.release()
        raise Unusable(path, str(error), "check its permissions and its disk") from None
    except BaseException:
        lock.release()
        raise


def _load(contents: Contents, registry: Registry, history: int) -> tuple[Store, int]:
    """The store, and the last revision that is safe: the store goes on above all that were ever in use."""
    marks = contents.marks()
    revision = marks[REVISION]
    reader = documents.Reader(registry)
    # Definitions come before what they define.
    tables: dict[str, dict[str, object]] = {documents.DEFINITIONS: {}}
    for resource, key, at, _, document in contents.rows():
        if at > revision:
            revision = at
        if document is None:
            continue
        try:
            obj = reader.decode(resource, document)
        except ValueError as error:
            raise contents.corrupt(f"{resource} {key!r} cannot be read: {error}") from None
        objects = tables.get(resource)
        if objects is None:
            objects = tables[resource] = {}
        objects[key] = obj
    start = max(revision, marks[CEILING])
    store = Store(history=history, revision=start, floor=start if start > FIRST else 0)
    for resource, found in tables.items():
        store.table(resource).load(found)
    return store, revision
