"""A webhook server on loopback, with TLS, in a thread of its own: it serves tests with and without an event loop."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, ClassVar, Self

from steersman.server.auth.ca import CertificateAuthority, self_signed

Reply = dict[str, Any] | bytes | tuple[int, str, bytes]
"""A document; the bytes of a response; or its code, media type and bytes."""
Handler = Callable[[dict[str, Any]], Reply]


class WebhookServer:
    """Serves functions by their path. A path that is not there is a 404; a function that raises hangs up."""

    handles: ClassVar[type[RequestHandler] | None] = None
    """What answers its requests, if not functions."""

    def __init__(self, handlers: Mapping[str, Handler], *names: str, authority: str = "webhooks") -> None:
        """``names`` are those of its certificate, besides 127.0.0.1."""
        self.handlers = dict(handlers)
        self.connections = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """Path and document of each request."""
        self.released = threading.Event()
        """Set when the server closes: a function that hangs waits for it."""
        now = datetime.now(UTC)
        self.authority = CertificateAuthority(self_signed(authority, now), lambda: now)
        pair = self.authority.serving(names or ("localhost",), ("127.0.0.1",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as where:
            both = Path(where, "pair")
            both.write_bytes(pair.cert + pair.key)
            context.load_cert_chain(both)
        serves = type("Serves", (self.handles or RequestHandler,), {"server_of": self})
        self._http = _Server(("127.0.0.1", 0), serves)
        self._http.owner, self._http.context = self, context
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._http.server_address[1]}"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.pair.cert).decode()

    def url(self, path: str) -> dict[str, str]:
        """A clientConfig."""
        return {"url": f"https://{self.address}{path}", "caBundle": self.ca_bundle}

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: WebhookServer
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the connection's own thread: a handshake that hangs holds up no other.
        self.owner.connections += 1
        request.settimeout(30)
        try:
            secure = self.context.wrap_socket(request, server_side=True)
        except OSError:
            return
        try:
            super().finish_request(secure, client_address)
        finally:
            secure.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class RequestHandler(BaseHTTPRequestHandler):
    """Answers reviews with the functions of its server."""

    server_of: ClassVar[WebhookServer]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        owner = self.server_of
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        document = json.loads(body)
        owner.asked.append((path, document))
        handler = owner.handlers.get(path)
        made: Reply = (404, "text/plain", b"no such path") if handler is None else b""
        if handler is not None:
            try:
                made = handler(document)
            except Exception:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        if isinstance(made, dict):
            made = json.dumps(made).encode()
        code, media_type, raw = made if isinstance(made, tuple) else (200, "application/json", made)
        self.send_response(code)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


# -- reviews ----------------------------------------------------------------------------------


def answered(review: Mapping[str, Any], **response: Any) -> dict[str, Any]:
    """A review with a response."""
    return {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": {"uid": review["request"]["uid"], **response},
    }


def allow(review: dict[str, Any]) -> dict[str, Any]:
    """Allows every request."""
    return answered(review, allowed=True)


def patching(*operations: Mapping[str, Any]) -> Handler:
    """Makes a function that answers with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda review: answered(review, allowed=True, patchType="JSONPatch", patch=patch)


def denying(message: str, **status: Any) -> Handler:
    """Makes a function that denies every request."""
    return lambda review: answered(review, allowed=False, status={"message": message, **status})


def configuration(
    kind: str, name: str, client: Mapping[str, Any], *, webhook: str = "", **more: Any
) -> dict[str, Any]:
    """A Mutating or ValidatingWebhookConfiguration of one webhook: for ConfigMaps, unless it has other rules."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]
    one = {
        "name": webhook or f"{name}.example.com",
        "clientConfig": dict(client),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": rules,
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [one],
    }
