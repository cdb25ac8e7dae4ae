"""``steersman snapshot``: save a cluster, or the data directory of an embedded server, to a file; restore a data directory."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from steersman import __version__
from steersman.api.errors import ApiError
from steersman.api.printable import one_line
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.http import HttpApi
from steersman.manager import process
from steersman.manager.connection_errors import explain
from steersman.manager.flags import UsageError
from steersman.manager.node import connect
from steersman.manager.output import DOCUMENTS, document, table
from steersman.manager.progress import ProgressBar
from steersman.manager.verb import Given
from steersman.server.storage.durable.errors import DataDirError
from steersman.server.storage.durable.snapshot import restore, save
from steersman.snapshot.file import FileWriter
from steersman.snapshot.model import Header
from steersman.snapshot.read_cluster import Progress, read_cluster
from steersman.snapshot.redaction import Redactor


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """A data directory that was saved or restored: its file, objects and revision."""

    file: str
    data_dir: str
    objects: int
    revision: int


class ClusterSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot that was saved of a cluster: its file, objects and gaps."""

    file: str
    server: str
    objects: int
    kinds: int
    redacted: bool
    unread: dict[str, str]
    """Resources that could not be read, with the reason."""
    omitted: dict[str, str]


def main(given: Given) -> int:
    """Entry point of ``steersman snapshot``."""
    values = given.values
    file = Path(given.arguments[0])
    try:
        if given.verb.name == "save":
            if file.exists() and not values["force"]:
                raise UsageError(f"{file} exists: pass another name, or --force to overwrite it")
            if not values["data-dir"]:
                return _save_cluster(file, given)
            for name in ("kubeconfig", "with-data", "events"):
                if name in given.set:
                    raise UsageError(f"--{name} is for the snapshot of a cluster: leave out --data-dir")
            return _data_dir(given, file)
        if not values["data-dir"]:
            raise UsageError("--data-dir is missing: name the data directory of `steersman up`")
        if values["bump-revision"] < 0:
            raise UsageError(f"--bump-revision must be at least 0, but got {values['bump-revision']}")
        return _data_dir(given, file)
    except DataDirError as refusal:
        print(f"Error: {one_line(str(refusal))}", file=sys.stderr)
        return 1


def _data_dir(given: Given, file: Path) -> int:
    values, data_dir = given.values, Path(given.values["data-dir"])
    if given.verb.name == "save":
        header, done, target = save(data_dir, file), "Saved", file
    else:
        header = restore(file, data_dir, bump=values["bump-revision"])
        done, target = "Restored", data_dir
    summary = Summary(str(file), str(data_dir), header.objects, header.revision)
    if values["output"] in DOCUMENTS:
        print(document(summary, values["output"]))
    elif values["output"] == "table":
        row = (summary.file, summary.data_dir, str(summary.objects), str(summary.revision))
        print(*table((("FILE", "DATA DIRECTORY", "OBJECTS", "REVISION"), row), right=(2, 3)), sep="\n")
    else:
        print(f"{done} {header.objects} objects at revision {header.revision} to {target}")
    return 0


# -- clusters ---------------------------------------------------------------------------------


def _save_cluster(file: Path, given: Given) -> int:
    try:
        connection = connect(given.values["kubeconfig"])
        header = process.run(_read(connection, file, given))
    except ConfigError as error:
        raise UsageError(str(error)) from None
    form = given.values["output"]
    summary = ClusterSummary(
        str(file),
        header.server,
        header.objects,
        len(header.kinds),
        header.redacted,
        dict(header.unread),
        dict(header.omitted),
    )
    if form in DOCUMENTS:
        print(document(summary, form))
    elif form == "table":
        rows = [(kind.id, kind.version, str(kind.objects)) for kind in header.kinds if kind.objects]
        print(*table((("RESOURCE", "VERSION", "OBJECTS"), *rows), right=(2,)), sep="\n")
    else:
        data = (
            "data of Secrets and ConfigMaps as hashes"
            if header.redacted
            else "with the data of Secrets: keep it safe"
        )
        print(f"Saved {header.objects} objects of {len(header.kinds)} kinds to {file} ({data})")
    for resource, why in sorted(header.unread.items()):
        print(f"Not read: {one_line(f'{resource}: {why}')}", file=sys.stderr)
    return 0


async def _read(connection: ClientConfig, file: Path, given: Given) -> Header:
    with_data = given.values["with-data"]
    with FileWriter(file) as writer, ProgressBar("reading the cluster") as bar:

        def told(progress: Progress) -> None:
            bar.update(progress.done, progress.total, f"{progress.objects:,} objects {progress.resource}")

        async with HttpApi(connection, qps=0) as api:
            try:
                found = await read_cluster(
                    api,
                    writer,
                    redactor=None if with_data else Redactor(),
                    events=given.values["events"],
                    progress=told,
                )
            except ApiError as error:
                raise UsageError(one_line(explain(error, connection))) from None
        return writer.finish(
            tool=__version__,
            server=found.server,
            time=datetime.now(UTC),
            redacted=not with_data,
            unread=found.unread,
            omitted=found.omitted,
        )
