"""``steersman snapshot``: save the data directory of an embedded server to a file, or restore it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from steersman.server.storage.durable.errors import DataDirError
from steersman.server.storage.durable.snapshot import restore, save


def main(argv: Sequence[str]) -> int:
    """Entry point of ``steersman snapshot``."""
    given = _parser().parse_args(argv)
    try:
        if given.what == "save":
            header = save(given.data_dir, given.file)
            print(f"Saved {header.objects} objects at revision {header.revision} to {given.file}")
        else:
            header = restore(given.file, given.data_dir, bump=given.bump_revision)
            print(f"Restored {header.objects} objects at revision {header.revision} to {given.data_dir}")
    except DataDirError as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="steersman snapshot", description=__doc__)
    words = parser.add_subparsers(dest="what", required=True, metavar="save|restore")
    saving = words.add_parser(
        "save", help="write a snapshot, also while the server runs; it holds the server's keys: keep it safe"
    )
    saving.add_argument("file", type=Path, metavar="FILE")
    restoring = words.add_parser("restore", help="make a new data directory from a snapshot")
    restoring.add_argument("file", type=Path, metavar="FILE")
    restoring.add_argument(
        "--bump-revision",
        type=_count,
        default=0,
        metavar="N",
        help="add to the revision, so that clients which saw later writes than the snapshot has list again",
    )
    for each in (saving, restoring):
        each.add_argument("--data-dir", type=Path, required=True, metavar="DIR")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number
