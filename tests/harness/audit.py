"""The API server's audit log, read as values: who asked for what, and what it was told.

Tests and benchmarks count requests with it, which no client can miscount.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import SEEK_END
from pathlib import Path
from typing import Any

import msgspec

POLICY: Mapping[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitManagedFields": True,
    "rules": [
        # A watch is complete only when it ends, so it is logged when its answer starts as well.
        {"level": "Metadata", "verbs": ["watch"], "omitStages": ["RequestReceived"]},
        {"level": "Metadata", "omitStages": ["RequestReceived", "ResponseStarted"]},
    ],
}
"""One entry a request, when it is answered, with no bodies."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answered request."""

    verb: str
    """As authorization sees it: ``get list watch create update patch delete deletecollection``."""
    user: str
    agent: str
    uri: str
    code: int
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    received: datetime
    answered: datetime

    @property
    def target(self) -> str:
        """The resource as RBAC writes it: ``deployments/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class _User(msgspec.Struct):
    username: str = ""


class _Ref(msgspec.Struct):
    apiGroup: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct):
    auditID: str
    stage: str
    requestURI: str
    verb: str
    requestReceivedTimestamp: datetime
    stageTimestamp: datetime
    user: _User = msgspec.field(default_factory=_User)
    userAgent: str = ""
    objectRef: _Ref = msgspec.field(default_factory=_Ref)
    responseStatus: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Line)


def parse(lines: Iterable[bytes]) -> list[AuditEntry]:
    """The entries of an audit log, in the order they were answered; a watch counts once."""
    entries: list[AuditEntry] = []
    watches: set[str] = set()
    for raw in lines:
        line = _decoder.decode(raw)
        if line.verb == "watch":
            if line.auditID in watches:
                continue
            watches.add(line.auditID)
        ref = line.objectRef
        entries.append(
            AuditEntry(
                verb=line.verb,
                user=line.user.username,
                agent=line.userAgent,
                uri=line.requestURI,
                code=line.responseStatus.code,
                group=ref.apiGroup,
                resource=ref.resource,
                subresource=ref.subresource,
                namespace=ref.namespace,
                name=ref.name,
                received=line.requestReceivedTimestamp,
                answered=line.stageTimestamp,
            )
        )
    return entries


_BLOCK = 65536
"""Bytes that are searched at a time for the end of a line."""


def read(path: Path, since: int = 0) -> list[AuditEntry]:
    """The entries that lie behind a byte offset; a line still being written is left for later."""
    try:
        with path.open("rb") as file:
            file.seek(since)
            data = file.read()
    except FileNotFoundError:
        return []
    return parse(data[: data.rfind(b"\n") + 1].splitlines())


def end(path: Path) -> int:
    """The byte offset behind the last whole line. The server may be in the middle of the next one."""
    try:
        with path.open("rb") as file:
            offset = file.seek(0, SEEK_END)
            while offset:
                begin = max(offset - _BLOCK, 0)
                file.seek(begin)
                newline = file.read(offset - begin).rfind(b"\n")
                if newline >= 0:
                    return begin + newline + 1
                offset = begin
    except FileNotFoundError:
        pass
    return 0
