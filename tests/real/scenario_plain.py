"""Answers in a form in which two servers' can be compared, and how they are compared.

Left out is what differs by nature, and nothing else: identities, versions, times, drawn names and addresses, tokens,
where a server listens. What stays comparable does: the same identity or version is called the same wherever it comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXED_PORT = 30023
"""The only node port that is asked for."""

UNTOLD = frozenset(
    {
        "Accept-Ranges",
        "Audit-Id",
        "Content-Encoding",
        "Content-Length",
        "Date",
        "Etag",
        "Last-Modified",
        "Process-Start-Time-Unix",
        "Server",
        "Transfer-Encoding",
        "Vary",
        "X-Kubernetes-Pf-Flowschema-Uid",
        "X-Kubernetes-Pf-Prioritylevel-Uid",
    }
)
"""Headers that say nothing about the answer, or how it is packed."""

Answer = dict[str, Any]
"""``code``, ``headers`` and ``body``."""


# -- what differs by nature -------------------------------------------------------------------

_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+]0000 UTC)")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_DRAWN = re.compile(r"(gen-|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_VERSIONS = re.compile(
    r"(ResourceVersion in [a-z ]+[:(] ?|in record \(|in the precondition \(|current: )\d+\b(?!-)"
)
_TOO_OLD = re.compile(r"(too old resource version: \d+ \()\d+")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_CREDENTIAL = re.compile(r"\b(X509SHA256=)[0-9a-f]{64}\b")
_ECHO = re.compile(r'(?<=Invalid value: )"\{(?:[^"\\]|\\.)*\}"')
_PORT = re.compile(rf"(?<=:)(?!{FIXED_PORT})3[0-2]\d{{3}}(?=/)|(?<=value: )(?!{FIXED_PORT})3[0-2]\d{{3}}\b")
_SCHEME = re.compile(r'(?<=in scheme ")[^"]*\.go:\d+(?=")')
"""The source file of a Go scheme in a message: its path depends on how the server was built."""
_AGE = re.compile(r"^(\d+[smhdy])+$|^<unknown>$")


def _in_order(found: re.Match[str]) -> str:
    """A document that a message shows: fields have no order."""
    try:
        echo = json.loads(json.loads(found[0]))
    except ValueError:
        return found[0]
    for meta in (echo.get("metadata"),):
        if isinstance(meta, dict) and "resourceVersion" in meta:
            meta["resourceVersion"] = "<version>"
    return json.dumps(json.dumps(echo, sort_keys=True))


@dataclass
class Plain:
    """Takes out of answers what differs by nature. One a chapter."""

    url: str
    hooks: str = ""
    """Where the webhooks of the scenario are."""
    extension: int = 0
    """The port of its extension API server."""
    _uids: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)
    _title: str = ""

    def answer(self, title: str, answer: Answer, head: bool) -> Answer:
        self._title = title
        headers: dict[str, Any] = {}
        for name in sorted({*answer["headers"]} - UNTOLD):
            values = [self.text(value) for value in answer["headers"].getall(name) if value]
            if values:
                headers[name] = values if len(values) > 1 else values[0]
        body = None if head else self.value(answer["body"])
        return {"code": answer["code"], "headers": headers, "body": body}

    def value(self, value: Any, name: str = "", within: Any = None) -> Any:
        if isinstance(value, dict):
            return {key: self.value(value[key], key, value) for key in sorted(value)}
        if isinstance(value, list):
            if name == "managedFields":
                # Among other things they are sorted by their times, in seconds.
                value = sorted(value, key=lambda entry: json.dumps({**entry, "time": ""}, sort_keys=True))
            return [self.value(item, name, value) for item in value]
        if not isinstance(value, str):
            drawn = (
                isinstance(value, int) and name in ("nodePort", "healthCheckNodePort") and value != FIXED_PORT
            )
            return "<port>" if (drawn and value) or (value and value == self.extension) else value
        if name == "resourceVersion" and value.isdigit() and value != "0":
            if isinstance(within, dict) and "uid" in within:
                return self._called(self._versions, "version", value)
            return "<version>"
        if name == "continue" and value:
            return "<continue>"
        if name == "caBundle" and value.startswith("LS0tLS1CRUdJTi"):
            return "<certificate>"
        if name == "description":
            return "<text>" if value else ""
        if name == "cells" and _AGE.match(value):
            return "<age>"
        return self.text(value)

    def text(self, text: str) -> str:
        # First, since a port of the server may look like a NodePort.
        text = text.replace(self.url.removeprefix("https://"), "<server>")
        if self.hooks:
            text = text.replace(self.hooks, "<webhooks>")
        if self.extension:
            text = text.replace(f"localhost:{self.extension}", "<extension>")
        text = _ECHO.sub(_in_order, text)
        text = _TIME.sub(lambda found: f"<time{'.' * (len(found[1] or ''))}>", text)
        text = _UID.sub(self._uid, _TOKEN.sub("<token>", text))
        text = _VERSIONS.sub(r"\1<version>", _TOO_OLD.sub(r"\1<version>", _DRAWN.sub(r"\1<name>", text)))
        text = _PORT.sub("<port>", _SCHEME.sub("<source file>", text))
        return _ADDRESS.sub("<address>", _CREDENTIAL.sub(r"\1<digest>", text))

    def _uid(self, found: re.Match[str]) -> str:
        return found[0] if not found[0].strip("0-") else self._called(self._uids, "uid", found[0])

    def _called(self, known: dict[str, str], what: str, value: str) -> str:
        """The same for the same: after the first answer that told of it."""
        if value not in known:
            name = f"<{what} of {self._title!r}"
            others = sum(other.startswith(name) for other in known.values())
            known[value] = f"{name} {others}>" if others else f"{name}>"
        return known[value]


def in_order(body: Any) -> Any:
    """A body with its lists in order, which a real server has in none; its message says the same."""
    if isinstance(body, list):
        return sorted(map(in_order, body), key=lambda item: json.dumps(item, sort_keys=True))
    if not isinstance(body, dict):
        return body
    return {
        name: value.partition(": ")[0]
        if (name, body.get("status")) == ("message", "Failure")
        else in_order(value)
        for name, value in body.items()
    }


# -- comparing --------------------------------------------------------------------------------


def differing(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ, and what stands there: the deepest such places."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{path}.{key}".lstrip("."), one.get(key, ...), other.get(key, ...)
            else:
                yield from differing(one[key], other[key], f"{path}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differing(mine, theirs, f"{path}.{place}")
    elif one != other or isinstance(one, bool) is not isinstance(other, bool):
        yield path, one, other


def compared(
    ours: Mapping[str, Answer], theirs: Mapping[str, Answer]
) -> dict[str, list[tuple[str, Any, Any]]]:
    """Where answers differ, by what their requests are called."""
    assert list(ours) == list(theirs)
    found = {title: list(differing(answer, theirs[title])) for title, answer in ours.items()}
    return {title: places for title, places in found.items() if places}


USUAL = {"Cache-Control": "no-cache, private", "Content-Type": "application/json"}
"""The headers of most answers."""


def write(answers: Mapping[str, Answer]) -> str:
    """Answers as a text: a line each."""
    lines = []
    for title, answer in answers.items():
        told = {key: value for key, value in answer.items() if (key, value) != ("headers", USUAL)}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{title}\t{text}\n")
    return "".join(lines)


def recorded(path: Path) -> dict[str, Answer]:
    """What a real server answered when it was last asked."""
    lines = (line.split("\t", 1) for line in path.read_text().split("\n") if line)
    return {title: {"headers": USUAL, **json.loads(answer)} for title, answer in lines}
