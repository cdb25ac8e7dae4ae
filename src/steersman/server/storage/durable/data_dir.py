"""DataDir: an open data directory with its store, its transaction log and its blobs.

::

    data_dir = open_data_dir(Path("data"))
    server = Server(clock, store=data_dir.store)
    establishing.install(server)              # serves custom resources, whose objects are loaded already
    data_dir.restart_ttls(server)             # objects with a TTL get it in full again
    created = verbs.create(server, ...)
    await data_dir.log.durable()              # now the write may be acknowledged
    data_dir.close()
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from steersman.api.generated import resources
from steersman.server.registry.resources import Registry
from steersman.server.server import Server
from steersman.server.storage.durable import documents, files
from steersman.server.storage.durable.database import CEILING, REVISION, DatabaseReader, connect, create
from steersman.server.storage.durable.errors import CorruptData, UnusablePath
from steersman.server.storage.durable.log import TransactionLog
from steersman.server.storage.store import WATCH_WINDOW, Store

FIRST_REVISION = 1
"""The revision of an empty store."""


class DataDir:
    """An open data directory. Closing it flushes the log and releases the lock."""

    def __init__(
        self,
        path: Path,
        lock: files.Lock,
        acknowledged: files.AcknowledgedRevision,
        store: Store,
        log: TransactionLog,
        blobs: dict[str, bytes],
        connection: sqlite3.Connection,
    ) -> None:
        self.path = path
        self.store = store
        self.log = log
        self._lock = lock
        self._acknowledged = acknowledged
        self._blobs = blobs
        self._connection = connection
        self._open = True

    def blob(self, key: str) -> bytes | None:
        """A small value of the server, such as a private key or a certificate; None if it is not set."""
        return self._blobs.get(key)

    def put_blob(self, key: str, value: bytes) -> None:
        """Stores a small value; it is durable when this returns."""
        self.log.put_blob(key, value)
        self._blobs[key] = value

    def restart_ttls(self, server: Server) -> None:
        """Restarts the TTL of stored objects, such as Events: the time that was left is not stored."""
        kept = {table.resource for table in self.store.tables() if len(table)}
        for row in resources():
            if (f"{row.plural}.{row.group}" if row.group else row.plural) in kept:
                server.renew(server.registry.find(row.group, row.version, row.plural))

    def close(self) -> None:
        """Writes pending commits and releases the directory."""
        if self._open:
            self._open = False
            self.log.close()
            self._connection.close()
            self._acknowledged.close()
            self._lock.release()

    def __enter__(self) -> DataDir:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_data_dir(
    path: Path, *, registry: Registry | None = None, watch_window: int = WATCH_WINDOW, threaded: bool = True
) -> DataDir:
    """Opens or creates a data directory. Raises a `DataDirError` if that fails, and then changes nothing.

    ``registry`` has the built-in resources; all others are custom resources. Without ``threaded``, commits are
    written when a caller waits for them.
    """
    has_database = files.has_database(path)
    if has_database:
        # Checked first: a foreign directory does not even get a lock file.
        DatabaseReader(path / files.DATABASE, display_path=path, full_check=False).close()
    files.prepare(path)
    lock = files.Lock(path)
    try:
        if not has_database:
            create(path, FIRST_REVISION)
        with DatabaseReader(path / files.DATABASE, display_path=path) as contents:
            acknowledged = files.AcknowledgedRevision(path)
            try:
                store, revision = _load(contents, registry or Registry(), watch_window)
                if acknowledged.revision > revision:
                    raise CorruptData(
                        path,
                        f"writes up to {acknowledged.revision} were acknowledged and those after {revision} are missing",
                        f"restore a snapshot into a new directory, or remove {path / files.ACKNOWLEDGED} to go on without them",
                    )
                connection = connect(path / files.DATABASE)
                log = TransactionLog(store, connection, acknowledged, documents.encode, threaded=threaded)
            except BaseException:
                acknowledged.close()
                raise
            return DataDir(path, lock, acknowledged, store, log, contents.blobs(), connection)
    except (OSError, sqlite3.Error) as error:
        lock.release()
        raise UnusablePath(path, str(error), "check its permissions and its disk") from None
    except BaseException:
        lock.release()
        raise


def _load(contents: DatabaseReader, registry: Registry, watch_window: int) -> tuple[Store, int]:
    """The store and the last durable revision: the store continues above every revision that was ever in use."""
    marks = contents.marks()
    revision = marks[REVISION]
    reader = documents.DocumentDecoder(registry)
    # CustomResourceDefinitions come before their custom resources.
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
    store = Store(watch_window=watch_window, revision=start, compacted=start if start > FIRST_REVISION else 0)
    for resource, found in tables.items():
        store.table(resource).load(found)
    return store, revision
