"""``/statusz`` and ``/flagz``: what this process is, for people and for programs."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import NotAcceptable
from steersman.manager.serving.cbor import encode as cbor_encode
from steersman.manager.serving.responses import JSON, TEXT, Answer, unacceptable
from steersman.server.codec.negotiation import YAML, Target, negotiate

COMPONENT = "kube-controller-manager"
GROUP = "config.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
PLAIN = "text/plain"
CBOR = "application/cbor"
PATHS = ("/configz", "/flagz", "/healthz", "/metrics")
"""What a status lists."""

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One of the pages: as text, and as fields of a document."""

    kind: str
    text: Callable[[], str]
    fields: Callable[[], Mapping[str, Any]]
    cbor: bool = False
    """Whether it is written as CBOR for who wants that."""

    def answer(self, accept: str) -> Answer:
        """The page in the form a client takes."""
        if not accept.strip():
            return self._plain()
        structured = (JSON, YAML, CBOR) if self.cbor else (JSON, YAML)
        try:
            # Only the text is served to who names no kind, so it comes first.
            clauses = ",".join(one for one in accept.split(",") if "as=" in one or _takes_text(one))
            if not clauses:
                raise NotAcceptable("")
            choice = negotiate(clauses, self._allows, (PLAIN, *structured))
        except NotAcceptable:
            served = ", ".join((*structured, PLAIN))
            return unacceptable(f"only the following media types are accepted: {served}")
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
        return Answer(_encode(document, choice.media_type), 200, form, headers)

    def _plain(self) -> Answer:
        return Answer(self.text().encode(), 200, TEXT)

    def _allows(self, target: Target | None) -> bool:
        return target is None or target in [Target(GROUP, version, self.kind) for version in VERSIONS]


def _takes_text(clause: str) -> bool:
    return clause.partition(";")[0].strip() in ("*/*", "*", "text/*", PLAIN)


def _encode(document: Mapping[str, Any], media_type: str) -> bytes:
    if media_type == CBOR:
        return cbor_encode(document)
    if media_type == JSON:
        return msgspec.json.encode(document) + b"\n"
    import yaml

    return yaml.safe_dump(dict(document), default_flow_style=False).encode()


def page(kind: str) -> str:
    """The head of a page of text."""
    return f"\n{COMPONENT} {kind}\n{WARNING}\n"


def statusz(
    started: datetime, now: Callable[[], datetime], binary: str, emulated: str, cbor: bool = False
) -> Page:
    """Since when this runs, and what it is. The versions are written as ``1.36.4`` and ``1.36``."""
    language = f"{platform.python_implementation().lower()}{platform.python_version()}"

    def up() -> int:
        return max(0, int((now() - started).total_seconds()))

    def text() -> str:
        minutes, seconds = divmod(up(), 60)
        hours, minutes = divmod(minutes, 60)
        lines = {
            "Started": f"{started:%a %b} {started.day:2d} {started:%H:%M:%S} UTC {started.year}",
            "Up": f"{hours} hr {minutes:02d} min {seconds:02d} sec",
            # differs: upstream says which Go it was built with.
            "Python version": platform.python_version(),
            "Binary version": binary,
            "Emulation version": emulated,
            "Paths": " ".join(PATHS),
        }
        # differs: upstream draws lots for what stands between, lest somebody parse this.
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


def flagz(text: Callable[[], str], cbor: bool = False) -> Page:
    """The flags, of which ``text`` has a line each behind its head: ``name=value``."""

    def fields() -> Mapping[str, Any]:
        named = (line.partition("=") for line in text().splitlines() if "=" in line)
        return {"flags": {name: value for name, _, value in named}}

    return Page("Flagz", text, fields, cbor)
