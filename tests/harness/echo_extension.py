"""An extension API server on loopback, with TLS, in a thread of its own: it answers with what it was asked."""

from __future__ import annotations

import json
import socket
from typing import Any, ClassVar

from tests.harness.webhook_server import RequestHandler, WebhookServer

GROUP = "ext.test"
_OWN = ("accept-encoding", "audit-id", "connection", "content-length", "traceparent")
"""Headers of the connection and of tracing, which are not told."""
RESOURCES = (("things", "Thing", ("get", "list", "create", "update", "patch", "delete", "watch")),)


class _Echo(RequestHandler):
    """Answers for the group: paths that end in a word of its own have an answer of their own."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode() if length else ""
        path = self.path.partition("?")[0]
        last = path.rpartition("/")[2]
        if path.startswith("/openapi") or not path.startswith(f"/apis/{GROUP}/"):
            self.tell(404, {"Content-Type": "text/plain"}, b"no such path")
        elif path == f"/apis/{GROUP}/v1":
            self.tell(200, {"Content-Type": "application/json"}, json.dumps(discovery()).encode())
        elif path == f"/apis/{GROUP}/v2":
            self.tell(500, {"Content-Type": "text/plain"}, b"broken")
        elif last == "hang-up":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif last == "moved":
            self.tell(302, {"Location": "/apis/ext.test/v1/elsewhere"}, b"")
        elif last == "headers":
            told = {"Warning": '299 - "careful"', "X-Own": "x", "Cache-Control": "max-age=5", "Etag": '"e"'}
            self.tell(200, {"Content-Type": "text/plain; charset=utf-8", **told}, b"text")
        elif last == "nothing":
            self.tell(204, {}, b"")
        elif last.isdigit():
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": int(last)}
            self.tell(int(last), {"Content-Type": "application/json"}, json.dumps(status).encode())
        else:
            seen = {name: value for name, value in self.seen() if name.lower() not in _OWN}
            told_body = {"method": self.command, "target": self.path, "headers": seen, "body": body}
            self.tell(200, {"Content-Type": "application/json"}, json.dumps(told_body).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def do_HEAD(self) -> None:
        self.tell(200, {"Content-Type": "application/json", "X-Own": "head"}, b"")

    def seen(self) -> list[tuple[str, Any]]:
        """The headers by name: a list of values where there are several."""
        found = {name.title(): self.headers.get_all(name) or [] for name in self.headers}
        return sorted((name, values if len(values) > 1 else values[0]) for name, values in found.items())

    def tell(self, code: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ExtensionServer(WebhookServer):
    """Serves the group ``ext.test``: v1 works, v2 is broken."""

    handles: ClassVar[type[RequestHandler] | None] = _Echo

    def __init__(self, *names: str) -> None:
        super().__init__({}, *names, authority="extension")


def discovery() -> dict[str, Any]:
    """The discovery document of v1."""
    resources = [
        {
            "name": name,
            "singularName": kind.lower(),
            "namespaced": True,
            "kind": kind,
            "verbs": list(verbs),
        }
        for name, kind, verbs in RESOURCES
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/v1",
        "resources": resources,
    }
