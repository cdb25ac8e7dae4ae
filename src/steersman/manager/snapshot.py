"""``steersman snapshot``: save the data directory of an embedded server to a file, or restore it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from steersman.manager.flags import UsageError
from steersman.manager.output import DOCUMENTS, document, table
from steersman.manager.verb import Given
from steersman.server.storage.durable.errors import DataDirError
from steersman.server.storage.durable.snapshot import restore, save


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """What was saved or restored."""

    file: str
    data_dir: str
    objects: int
    revision: int


def main(given: Given) -> int:
    """Entry point of ``steersman snapshot``."""
    values = given.values
    if not values["data-dir"]:
        raise UsageError("--data-dir is missing: name the data directory of `steersman up`")
    file, data_dir = Path(given.arguments[0]), Path(values["data-dir"])
    try:
        if given.verb.name == "save":
            if file.exists() and not values["force"]:
                raise UsageError(f"{file} exists: pass another name, or --force to overwrite it")
            header = save(data_dir, file)
            done, target = "Saved", file
        else:
            if values["bump-revision"] < 0:
                raise UsageError(f"--bump-revision must be at least 0, but got {values['bump-revision']}")
            header = restore(file, data_dir, bump=values["bump-revision"])
            done, target = "Restored", data_dir
    except DataDirError as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    summary = Summary(str(file), str(data_dir), header.objects, header.revision)
    if values["output"] in DOCUMENTS:
        print(document(summary, values["output"]))
    elif values["output"] == "table":
        row = (summary.file, summary.data_dir, str(summary.objects), str(summary.revision))
        print(*table((("FILE", "DATA DIRECTORY", "OBJECTS", "REVISION"), row), right=(2, 3)), sep="\n")
    else:
        print(f"{done} {header.objects} objects at revision {header.revision} to {target}")
    return 0
