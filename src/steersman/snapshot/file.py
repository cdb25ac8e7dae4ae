"""The file of a snapshot: a header line of JSON, then the documents as JSON lines, compressed with gzip.

``head -1 FILE`` shows what a snapshot holds, and ``tail -n +2 FILE | zcat`` its objects. Each kind is a gzip member of its own: a
list that starts over discards its member alone. Both directions stream, so a large cluster does not have to fit in memory.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from types import TracebackType

import msgspec
from msgspec.structs import replace

from steersman.server.storage.durable import files
from steersman.server.storage.durable.errors import CorruptData, UnusablePath
from steersman.server.storage.durable.snapshot_header import (
    CHUNK_BYTES,
    CLUSTER,
    FORMAT,
    OTHER_SNAPSHOT,
    open_header,
    read_header,
    unreadable,
    verify,
)
from steersman.snapshot.model import Header, Sink, SnapshotKind

_LEVEL = 3
"""Of the compression: the documents are repetitive, and a higher level costs more time than it saves bytes."""


class FileWriter:
    """Writes a snapshot atomically: the file appears when `finish` has written it. Use it in a ``with``."""

    def __init__(self, file: Path) -> None:
        """Raises `DataDirError` where the file cannot be written, or is another program's."""
        self._file = file
        if file.exists():
            open_header(file, CLUSTER, Header)
        self._partial = file.with_name(f"{file.name}.partial")
        self._body_path = file.with_name(f"{file.name}.body")
        self._kinds: list[SnapshotKind] = []
        self._member: gzip.GzipFile | None = None
        self._start = 0
        with self._writing():
            self._discard()
            self._body = files.create_for_writing(self._body_path)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing writes what is left in the buffers. A full disk refuses that, too, and was told before.
        with suppress(OSError):
            if self._member is not None:
                self._member.close()
        with suppress(OSError):
            self._body.close()
        with self._writing():
            self._discard()

    # -- a sink -------------------------------------------------------------------------------

    def begin(self, kind: SnapshotKind) -> None:
        self._kinds.append(kind)
        with self._writing():
            self._start = self._body.tell()
            self._open_member()

    def add(self, document: bytes) -> None:
        assert self._member is not None
        with self._writing():
            self._member.write(document + b"\n")
        self._kinds[-1] = replace(self._kinds[-1], objects=self._kinds[-1].objects + 1)

    def restart(self) -> None:
        assert self._member is not None
        with self._writing():
            self._member.close()
            self._body.seek(self._start)
            self._body.truncate()
            self._open_member()
        self._kinds[-1] = replace(self._kinds[-1], objects=0)

    def end(self, resource_version: str) -> None:
        assert self._member is not None
        with self._writing():
            self._member.close()
            if self._kinds[-1].objects == 0:
                self._body.seek(self._start)
                self._body.truncate()
        self._kinds[-1] = replace(self._kinds[-1], resourceVersion=resource_version)

    def _open_member(self) -> None:
        self._member = gzip.GzipFile(fileobj=self._body, mode="wb", compresslevel=_LEVEL, mtime=0)

    # -- the end ------------------------------------------------------------------------------

    def finish(
        self,
        *,
        tool: str,
        server: str,
        time: datetime,
        redacted: bool,
        unread: Mapping[str, str],
        omitted: Mapping[str, str],
    ) -> Header:
        """Write the header and put the file in its place."""
        with self._writing():
            self._body.flush()
            with files.open_for_reading(self._body_path) as body:
                header = Header(
                    name=CLUSTER,
                    format=FORMAT,
                    tool=tool,
                    server=server,
                    time=time,
                    redacted=redacted,
                    kinds=tuple(self._kinds),
                    unread=unread,
                    omitted=omitted,
                    size=os.fstat(body.fileno()).st_size,
                    sha256=hashlib.file_digest(body, "sha256").hexdigest(),
                )
                body.seek(0)
                with files.create_for_writing(self._partial) as out:
                    out.write(msgspec.json.encode(header) + b"\n")
                    for chunk in iter(lambda: body.read(CHUNK_BYTES), b""):
                        out.write(chunk)
                    files.commit_written(out, self._partial, self._file)
        return header

    def _discard(self) -> None:
        for path in (self._partial, self._body_path):
            path.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raises `UnusablePath` where the file system refuses a write."""
        try:
            yield
        except OSError as error:
            raise UnusablePath(
                self._file, f"the snapshot cannot be written: {error}", "check its directory and disk"
            ) from None


# -- reading ----------------------------------------------------------------------------------


def read(file: Path, sink: Sink, progress: Callable[[int, int], None] = lambda done, total: None) -> Header:
    """Read all objects of a snapshot into a sink. Raises `DataDirError` where it is damaged, foreign or too new.

    ``progress`` is told the number of objects that were read, and of all, once in a while.
    """
    try:
        with file.open("rb") as body:
            header = read_header(file, body, CLUSTER, Header)
            begin = body.tell()
            verify(file, header, body)
            body.seek(begin)
            _documents(file, header, body, sink, progress)
    except OSError as error:
        raise unreadable(file, error) from None
    return header


def _documents(
    file: Path, header: Header, body: BufferedReader, sink: Sink, progress: Callable[[int, int], None]
) -> None:
    done, total = 0, header.objects
    try:
        with gzip.GzipFile(fileobj=body, mode="rb") as lines:
            for kind in header.kinds:
                sink.begin(kind)
                for _ in range(kind.objects):
                    line = lines.readline()
                    if not line.endswith(b"\n"):
                        raise CorruptData(file, f"{kind.id} end too early", OTHER_SNAPSHOT)
                    sink.add(line[:-1])
                    done += 1
                    if done % 500 == 0:
                        progress(done, total)
                sink.end(kind.resourceVersion)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptData(file, f"the snapshot is damaged: {error}", OTHER_SNAPSHOT) from None
    progress(done, total)
