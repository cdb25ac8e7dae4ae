"""The header of a snapshot file, for both formats: a line of JSON with the name, the format, the size and the SHA-256 of what follows.

A snapshot of a data directory (`steersman.server.storage.durable.snapshot`) and one of a live cluster (`steersman.snapshot.file`) differ
in their names and in what follows. Each is refused where the other is expected, with the way to use it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from steersman.server.storage.durable.errors import CorruptData, ForeignData, NewerFormat, UnusablePath

DATA_DIR = "steersman-snapshot"
"""The name in the header of a data directory's snapshot."""
CLUSTER = "steersman-cluster-snapshot"
"""The name in the header of a live cluster's snapshot."""
FORMAT = 1
"""The newest format of both."""
CHUNK_BYTES = 1 << 20
OTHER_SNAPSHOT = "use another snapshot, or take a new one"
_MAX_HEADER_BYTES = 4 << 20
_USES = {
    DATA_DIR: (
        "a snapshot of a data directory, not of a live cluster",
        "make a data directory of it (steersman snapshot restore {file} --data-dir=DIR)",
    ),
    CLUSTER: (
        "a snapshot of a live cluster, not of a data directory",
        "start a control plane from it (steersman up --from={file})",
    ),
}
"""By name: what a file is that is not the one expected, and what it is good for."""


class Checksums(Protocol):
    """The fields of a header that tell whether the data are whole."""

    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


class _Identity(msgspec.Struct, frozen=True):
    """The fields that every version of both formats has in its header."""

    name: str = ""
    format: int = 0


H = TypeVar("H")


def open_header(file: Path, name: str, type_: type[H]) -> H:
    """The header of a file that is expected to be a snapshot of this name. Raises `DataDirError`."""
    try:
        with file.open("rb") as body:
            return read_header(file, body, name, type_)
    except OSError as error:
        raise unreadable(file, error) from None


def read_header(file: Path, body: BinaryIO, name: str, type_: type[H]) -> H:
    """Read the header; ``body`` is then at the data. Raises `DataDirError`."""
    line = body.readline(_MAX_HEADER_BYTES)
    try:
        found = msgspec.json.decode(line, type=_Identity)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if any(line.startswith(f'{{"name":"{each}"'.encode()) for each in _USES):
            raise CorruptData(
                file, "the header of the snapshot is damaged or cut off", OTHER_SNAPSHOT
            ) from None
        found = _Identity()
    if found.name not in _USES:
        raise ForeignData(file, "not a steersman snapshot", "name another file")
    if found.name != name:
        problem, remedy = _USES[found.name]
        raise ForeignData(file, problem, remedy.format(file=file))
    if found.format > FORMAT:
        raise NewerFormat(
            file,
            f"the snapshot has format {found.format} and this steersman knows formats up to {FORMAT}",
            "use the newer steersman that made it",
        )
    try:
        return msgspec.json.decode(line, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptData(file, f"the header of the snapshot is damaged ({error})", OTHER_SNAPSHOT) from None


def verify(
    file: Path, header: Checksums, body: BinaryIO, copy: Callable[[bytes], object] = lambda chunk: None
) -> None:
    """Read the data that follow a header to their end, and compare size and checksum. Raises `CorruptData`.

    ``copy`` is given each chunk before it is known whether all are right.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in iter(lambda: body.read(CHUNK_BYTES), b""):
        digest.update(chunk)
        size += len(chunk)
        copy(chunk)
    if size != header.size:
        raise CorruptData(
            file, f"the snapshot has {size} bytes of data instead of {header.size}", OTHER_SNAPSHOT
        )
    if digest.hexdigest() != header.sha256:
        raise CorruptData(file, "the snapshot is damaged: its checksum differs", OTHER_SNAPSHOT)


def unreadable(file: Path, error: OSError) -> UnusablePath:
    """The error of a snapshot that the file system does not let be read."""
    return UnusablePath(file, error.strerror or str(error), "name a snapshot file")
