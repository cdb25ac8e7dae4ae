"""The files of the page, and the headers that keep a browser from loading anything else. They hold no data of a cluster."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

JSON = "application/json"
PREFIX = "/ui"
INDEX = "index.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: scripts, styles and requests of this origin alone, and no page may show this one in a frame."""
SECURITY = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
STATIC_HEADERS = (("Cache-Control", "no-cache"), *SECURITY)
JSON_HEADERS = (("Cache-Control", "no-store"), *SECURITY)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}


class StaticFile(msgspec.Struct, frozen=True):
    """A file of the page."""

    content_type: str
    body: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """The files of the page by name, read once: no path of a request ever reaches the file system."""
    found: dict[str, StaticFile] = {}
    for each in resources.files("steersman.dashboard").joinpath("static").iterdir():
        type_ = _TYPES.get(each.name.rpartition(".")[2])
        if type_ is not None and each.is_file():
            found[each.name] = StaticFile(type_, each.read_bytes())
    return found


def find(path: str) -> StaticFile | None:
    """The file that a path names; the index for ``/ui/``."""
    name = path.removeprefix(f"{PREFIX}/")
    return static_files().get(name or INDEX)
