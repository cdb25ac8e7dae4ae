"""AuditLog: one line of JSON for each request over HTTP, an Event of audit.k8s.io/v1 at the level Metadata: who asked for what, and what became of it.

There are no bodies, so no secret of an object is in it. The module is imported when a log is asked for.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from steersman.http.request import HttpRequest
from steersman.server.auth.attributes import Decision
from steersman.server.auth.users import User
from steersman.server.http.request_info import RequestInfo

_log = logging.getLogger(__name__)

MAX_SIZE = 100 * 1024 * 1024
"""Bytes of the file, as upstream's default; then it becomes FILE.1, and the one before it is gone."""
MAX_STATUS = 64 * 1024
"""Bytes of a response in which a Status is looked for."""
_MAX_ID = 64
_MAX_AGENT = 1024
"""Characters of a User-Agent, as upstream."""


class AuditLog:
    """A file of audit events. A line that cannot be written is lost, with a warning in the server's log."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` where the file cannot be written."""
        self._path = path
        self._failing = False
        self._file = self._open()

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)

    def close(self) -> None:
        os.close(self._file)

    def write(self, event: Mapping[str, Any]) -> None:
        """Adds an event."""
        try:
            os.write(self._file, msgspec.json.encode(event) + b"\n")
            if os.fstat(self._file).st_size > MAX_SIZE:
                with suppress(FileNotFoundError):
                    os.replace(self._path, f"{self._path}.1")
                # Closed only once there is another: the number of a closed file is soon that of a connection.
                before, self._file = self._file, self._open()
                os.close(before)
            self._failing = False
        except OSError as error:
            if not self._failing:
                _log.warning("cannot write the audit log %s: %s", self._path, error)
            self._failing = True


class AuditEvent:
    """The event of one request, while it is carried out."""

    def __init__(self, http: HttpRequest, info: RequestInfo, now: Callable[[], datetime]) -> None:
        self._http = http
        self._info = info
        self._now = now
        self._received = now()
        given = http.headers.get("Audit-ID", "")
        self.id = given if given and len(given) <= _MAX_ID else str(uuid.uuid4())
        """Told to the client in the header ``Audit-Id``."""
        self.user: User | None = None
        self.impersonated: User | None = None
        self.constraint = ""
        self.annotations: dict[str, str] = {}
        self.admission: dict[str, str] = {}
        """The annotations of webhooks and policies, of the last run of the request."""
        self._object: dict[str, str] = {}

    def decided(self, decision: Decision) -> None:
        """Notes what the authorizer said."""
        self.annotations["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
        self.annotations["authorization.k8s.io/reason"] = decision.reason

    def request_object(self, obj: Any) -> None:
        """Notes which object was sent."""
        meta = getattr(obj, "metadata", None)
        for name in ("namespace", "name", "uid", "resourceVersion"):
            value = getattr(meta, name, "")
            if value:
                self._object[name] = value

    def document(self, code: int, body: bytes) -> dict[str, Any]:
        """The event of an answered request."""
        http, info = self._http, self._info
        made: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.id,
            # Upstream ends the event of a request without a user here.
            "stage": "ResponseComplete" if self.user is not None else "ResponseStarted",
            "requestURI": http.raw_path,
            "verb": info.verb,
            "user": {} if self.user is None else _user_info(self.user),
        }
        if self.impersonated is not None:
            made["impersonatedUser"] = _user_info(self.impersonated)
        if self.constraint:
            made["authenticationMetadata"] = {"impersonationConstraint": self.constraint}
        peer = http.transport.get_extra_info("peername") if http.transport is not None else None
        if peer:
            made["sourceIPs"] = [peer[0]]
        if agent := http.headers.get("User-Agent", ""):
            made["userAgent"] = agent if len(agent) <= _MAX_AGENT else f"{agent[:_MAX_AGENT]}...TRUNCATED"
        if info.resource:
            made["objectRef"] = self._object_ref()
        made["responseStatus"] = {"metadata": {}, **_status(body), "code": code}
        made["requestReceivedTimestamp"] = _micro_time(self._received)
        made["stageTimestamp"] = _micro_time(self._now())
        if annotations := {**self.admission, **self.annotations}:
            made["annotations"] = dict(sorted(annotations.items()))
        return made

    def _object_ref(self) -> dict[str, str]:
        info, sent = self._info, self._object
        found = {
            "resource": info.plural,
            "namespace": info.namespace or sent.get("namespace", ""),
            "name": info.name or sent.get("name", ""),
            "uid": sent.get("uid", ""),
            "apiGroup": info.group,
            "apiVersion": info.version,
            "resourceVersion": sent.get("resourceVersion", ""),
            "subresource": info.subresource,
        }
        return {name: value for name, value in found.items() if value}


def _user_info(user: User) -> dict[str, Any]:
    made: dict[str, Any] = {"username": user.name, "uid": user.uid, "groups": user.groups}
    made["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {name: value for name, value in made.items() if value}


def _micro_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Status(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None


def _status(body: bytes) -> dict[str, Any]:
    """The fields of a Status that answers a request; none of any other answer."""
    if not body.startswith(b"{") or len(body) > MAX_STATUS or b'"Status"' not in body[:256]:
        return {}
    try:
        found = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if found.kind != "Status":
        return {}
    made: dict[str, Any] = msgspec.to_builtins(found)
    del made["kind"]
    return made
