"""z-pages: ``/statusz`` and ``/flagz``, as text and as versioned documents."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import NotAcceptable
from steersman.manager.serving.responses import JSON, TEXT, Response, not_acceptable
from steersman.server.codec.negotiation import YAML, Target, negotiate

COMPONENT = "kube-controller-manager"
GROUP = "config.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
PLAIN = "text/plain"
CBOR = "application/cbor"
PATHS = ("/configz", "/flagz", "/healthz", "/metrics")
"""The paths that statusz lists."""

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only."
)


class Page(msgspec.Struct, frozen=True):
    """A z-page: its text, and the fields of its document."""

    kind: str
    text: Callable[[], str]
    fields: Callable[[], Mapping[str, Any]]
    cbor: bool = False
    """Whether CBOR is offered."""

    def answer(self, accept: str) -> Response:
        """The page in a media type that the client accepts."""
        if not accept.strip():
            return self._plain()
        structured = (JSON, YAML, CBOR) if self.cbor else (JSON, YAML)
        try:
            # Without a kind (as=) only text is served, so it comes first.
            clauses = ",".join(one for one in accept.split(",") if "as=" in one or _takes_text(one))
            if not clauses:
                raise NotAcceptable("")
            choice = negotiate(clauses, self._allows, (PLAIN, *structured))
        except NotAcceptable:
            served = ", ".join((*structured, PLAIN))
            return not_acceptable(f"only the following media types are accepted: {served}")
        if choice.media_type == PLAIN or choice.target is None:
            return self._plain()
        version = choice.target.version
        document = {
            "kind": self.kind,
            "apiVersion": f"{GROUP}/{version}",
            "metadata": {"name": COMPONENT},
            **self.fields(),
        }
        form = f"{choice.media_type};g={GROUP};v={version};as={self.kind}"
        path = self.kind.lower()
        old = f'299 - "This version of the {path} endpoint is deprecated. Please use a newer version."'
        headers = (("Warning", old),) if version == "v1alpha1" else ()
        return Response(_encode(document, choice.media_type), 200, form, headers)

    def _plain(self) -> Response:
        return Response(self.text().encode(), 200, TEXT)

    def _allows(self, media_type: str, target: Target | None) -> bool:
        return target is None or target in [Target(GROUP, version, self.kind) for version in VERSIONS]


def _takes_text(clause: str) -> bool:
    return clause.partition(";")[0].strip() in ("*/*", "*", "text/*", PLAIN)


def _encode(document: Mapping[str, Any], media_type: str) -> bytes:
    if media_type == CBOR:
        return encode_cbor(document)
    if media_type == JSON:
        return msgspec.json.encode(document) + b"\n"
    import yaml

    return yaml.safe_dump(dict(document), default_flow_style=False).encode()


def page(kind: str) -> str:
    """The head of a text page."""
    return f"\n{COMPONENT} {kind}\n{WARNING}\n"


def statusz(
    started: datetime, now: Callable[[], datetime], binary: str, emulated: str, cbor: bool = False
) -> Page:
    """The page ``/statusz``: start time and versions. ``binary`` is such as ``1.36.4``, ``emulated`` such as ``1.36``."""
    language = f"{platform.python_implementation().lower()}{platform.python_version()}"

    def up() -> int:
        return max(0, int((now() - started).total_seconds()))

    def text() -> str:
        minutes, seconds = divmod(up(), 60)
        hours, minutes = divmod(minutes, 60)
        lines = {
            "Started": f"{started:%a %b} {started.day:2d} {started:%H:%M:%S} UTC {started.year}",
            "Up": f"{hours} hr {minutes:02d} min {seconds:02d} sec",
            # differs: upstream has the version of Go.
            "Python version": platform.python_version(),
            "Binary version": binary,
            "Emulation version": emulated,
            "Paths": " ".join(PATHS),
        }
        # differs: upstream picks a random delimiter, so that the page is not parsed by programs.
        return page("statusz") + "\n" + "".join(f"{name}:  {value}\n" for name, value in lines.items())

    def fields() -> Mapping[str, Any]:
        return {
            "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": up(),
            "goVersion": language,
            "binaryVersion": binary,
            "emulationVersion": emulated,
            "paths": list(PATHS),
        }

    return Page("Statusz", text, fields, cbor)


def flagz(values: Callable[[], Mapping[str, str]], cbor: bool = False) -> Page:
    """The page ``/flagz``: the value of every flag, by name."""

    def text() -> str:
        return page("flagz") + "".join(f"{name}={value}\n" for name, value in values().items())

    def fields() -> Mapping[str, Any]:
        return {"flags": values()}

    return Page("Flagz", text, fields, cbor)


# -- CBOR (RFC 8949) --------------------------------------------------------------------------

_TAG = b"\xd9\xd9\xf7"
"""The self-described CBOR tag."""
_BYTES, _LIST, _MAP = 2, 4, 5


def encode_cbor(document: object) -> bytes:
    """Encode strings, integers, lists and maps as Kubernetes does: tagged, and with strings as byte strings of UTF-8."""
    return _TAG + _cbor(document)


def _cbor(value: object) -> bytes:
    match value:
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return _cbor_head(0, value) if value >= 0 else _cbor_head(1, -1 - value)
        case str():
            data = value.encode()
            return _cbor_head(_BYTES, len(data)) + data
        case Mapping():
            pairs = sorted((_cbor(key), _cbor(item)) for key, item in value.items())
            return _cbor_head(_MAP, len(pairs)) + b"".join(key + item for key, item in pairs)
        case Sequence():
            return _cbor_head(_LIST, len(value)) + b"".join(map(_cbor, value))
    raise TypeError(f"cannot encode {type(value).__qualname__} as CBOR")


def _cbor_head(major: int, number: int) -> bytes:
    """The initial bytes of a data item: its major type, and its value or length."""
    if number < 24:
        return bytes([major << 5 | number])
    for width, code in ((1, 24), (2, 25), (4, 26), (8, 27)):
        if number < 1 << (8 * width):
            return bytes([major << 5 | code]) + number.to_bytes(width)
    raise ValueError(f"{number} does not fit into a CBOR integer")
