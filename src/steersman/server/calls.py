"""Calls: what a request asks of webhooks, and the answers it has so far.

A request is carried out by synchronous functions that take effect as a whole. Where one needs the answer of a webhook, it
raises `CallNeeded` before anything is written. `steersman.server.rest.restart` makes the call and runs the request again with
the answer recorded. An answer belongs to the very review that was sent: if an object has changed meanwhile, the webhook is
asked again, as upstream does when it retries an update that is in conflict with another.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from posixpath import normpath
from random import Random
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from steersman.server import status_errors

ADDRESS = "sim.steersman.dev/webhook-address"
"""An annotation of a Service: where its webhooks or its aggregated API are served, as ``127.0.0.1:9443``."""
MAX_RESPONSE = 16 * 1024 * 1024
"""Bytes of a response that are read. differs: upstream has no limit."""
TIMEOUT = 34.0
"""Seconds that a request may take with all its calls, as upstream."""


class ServiceRef(msgspec.Struct, frozen=True):
    """A port of a Service."""

    namespace: str
    name: str
    port: int = 443

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"


class Endpoint(NamedTuple):
    """Where a webhook is served."""

    url: str
    """The URL, without a query. That of a Service has its name in the cluster: ``https://name.namespace.svc:443/path``."""
    ca_bundle: bytes = b""
    """PEM certificates that the server's is verified with; the machine's own authorities if empty."""
    service: ServiceRef | None = None
    address: str = ""
    """Host and port to connect to; those of the URL if empty."""
    unresolved: str = ""
    """Why the Service cannot be reached; empty if it can."""
    serves: Callable[[Any], Any] | None = None
    """A Python function that answers in place of a server."""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path or "/"


class Call(NamedTuple):
    """One question to a webhook."""

    endpoint: Endpoint
    body: bytes
    timeout: float
    """In seconds."""
    key: bytes
    """The key of the question: everything of it but its uid."""

    @property
    def url(self) -> str:
        """The URL as error messages show it, with the timeout that the webhook is told of."""
        whole = int(self.timeout) + (self.timeout > int(self.timeout))
        return f"{self.endpoint.url}?timeout={whole}s"


class Answer(msgspec.Struct, frozen=True):
    """The response to a call, or why there is none."""

    body: bytes = b""
    code: int = 200
    content_type: str = ""
    error: str = ""
    """Why there is no response, in the words of Go's client; empty if there is one."""


class Outgoing(Protocol):
    """A client for calls to webhooks."""

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Makes calls side by side. Never raises: a call that fails is an `Answer` with an error."""
        ...

    def time(self) -> float:
        """The seconds that calls take are counted by this clock: that of the webhooks, whatever the cluster's is."""
        ...


def answer_in_process(call: Call) -> Answer:
    """Has a Python function answer a call.

    It is given the review as a document, and returns the review, or only its response. An exception is a webhook that
    cannot be asked; `TimeoutError` one that does not answer in time.
    """
    assert call.endpoint.serves is not None
    review = msgspec.json.decode(call.body)
    try:
        made = call.endpoint.serves(review)
    except TimeoutError:
        return Answer(error="context deadline exceeded")
    except Exception as error:
        return Answer(error=f"{type(error).__name__}: {error}")
    if isinstance(made, bytes):
        return Answer(made)
    if isinstance(made, Mapping) and "response" not in made:
        made = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": made}
    if isinstance(made, Mapping) and isinstance(made["response"], Mapping):
        made = {**made, "response": {"uid": review["request"]["uid"], **made["response"]}}
    try:
        return Answer(msgspec.json.encode(made))
    except TypeError as error:
        return Answer(error=f"the function's answer is no document: {error}")


class CallNeeded(Exception):
    """A request must wait for calls, and then be carried out again. Nothing has been written."""

    def __init__(self, calls: Sequence[Call] = ()) -> None:
        super().__init__("this request has to wait for a webhook")
        self.calls = tuple(calls)


class Answers:
    """The answers that a request has, and what stays the same each time it is carried out: the time and random draws."""

    def __init__(self, seed: int, now: datetime) -> None:
        self.now = now
        self.random = Random(seed)
        self.warnings: list[str] = []
        """The warnings of webhooks in this run."""
        self._seed = seed
        self._uids = Random(seed ^ 1)
        self._drawn: dict[bytes, str] = {}
        self._answers: dict[bytes, Answer] = {}

    def begin(self) -> None:
        """Starts another run."""
        self.random = Random(self._seed)
        self.warnings = []

    def get(self, key: bytes) -> Answer | None:
        """The answer to a question; None if it was not asked yet."""
        return self._answers.get(key)

    def record(self, call: Call, answer: Answer) -> None:
        self._answers[call.key] = answer

    def uid(self, key: bytes) -> str:
        """The uid of a question: the same in each run."""
        found = self._drawn.get(key)
        if found is None:
            found = self._drawn[key] = str(_uuid4(self._uids))
        return found


def _uuid4(random: Random) -> Any:
    from uuid import UUID

    return UUID(int=random.getrandbits(128), version=4)


def question_key(asked: str, review: bytes) -> bytes:
    """The key of a question: which webhook is asked, and all of the review but its uid."""
    return sha256(f"{asked}\0".encode() + review).digest()


# -- where webhooks are -----------------------------------------------------------------------


class WebhookAddresses:
    """The addresses of Services, as they were stated for the whole server.

    A key is ``namespace/name``, ``namespace/name:port`` or either with a path; a value is ``host:port``, or a
    Python function that takes the review as a document and returns it with a response.
    """

    def __init__(self, stated: Mapping[str, str | Callable[[Any], Any]] | None = None) -> None:
        self._stated = {_normalized(key): value for key, value in (stated or {}).items()}

    def find(self, service: ServiceRef, path: str) -> str | Callable[[Any], Any] | None:
        """The address or the function for a path of a Service: the longest key that matches; None if none does."""
        if not self._stated:
            return None
        whole, bare = str(service), f"{service.namespace}/{service.name}"
        for start in (f"{whole}{path}", f"{bare}{path}", whole, bare):
            found = self._stated.get(start.rstrip("/"))
            if found is not None:
                return found
        return None


def _normalized(key: str) -> str:
    namespace, slash, rest = key.partition("/")
    if not (namespace and slash and rest):
        raise ValueError(f"{key!r} does not name a Service: write NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    return key.rstrip("/")


def parse_address(text: str) -> str:
    """An address as ``host:port``. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} is no address: write HOST:PORT, as in 127.0.0.1:9443")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{text!r} is no address: an IPv6 address has brackets, as in [::1]:9443")
    return text


def parse_webhook_address(text: str) -> tuple[str, str]:
    """A Service and an address, from ``NAMESPACE/NAME[:PORT]=HOST:PORT``. Raises `ValueError`."""
    service, equals, address = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} has no address: write NAMESPACE/NAME[:PORT]=HOST:PORT")
    return _normalized(service), parse_address(address)


def service_endpoint(
    service: ServiceRef,
    path: str,
    ca_bundle: str,
    addresses: WebhookAddresses,
    find_service: Callable[[str, str], Any | None],
) -> Endpoint:
    """The endpoint of a Service: by what was stated for the server, by an annotation of the Service, or its external name."""
    port = f":{service.port}"
    path = path if path.startswith("/") or not path else f"/{path}"
    host = f"https://{service.name}.{service.namespace}.svc{port}"
    bare = Endpoint(f"{host}{_clean(path)}", _pem(ca_bundle), service)
    stated = addresses.find(service, path)
    if callable(stated):
        return bare._replace(serves=stated)
    if stated is not None:
        return bare._replace(address=stated)
    found = find_service(service.namespace, service.name)
    if found is None:
        return bare._replace(unresolved=f"service {status_errors.quote(service.name)} not found")
    annotated = found.metadata.annotations.get(ADDRESS)
    if annotated:
        try:
            return bare._replace(address=parse_address(annotated))
        except ValueError as error:
            return bare._replace(unresolved=f"annotation {ADDRESS} of service {service}: {error}")
    if found.spec.type == "ExternalName":
        return bare._replace(address=f"{found.spec.externalName}:{service.port}")
    return bare._replace(
        unresolved=(
            f"services have no network here: state where {service.namespace}/{service.name} is served with "
            f"--webhook-address {service.namespace}/{service.name}=127.0.0.1:PORT, with the annotation "
            f"{ADDRESS} of the Service, or with pytest.mark.cluster(webhooks={{...}})"
        )
    )


def url_endpoint(url: str, ca_bundle: str) -> Endpoint:
    """The endpoint of a URL."""
    parts = urlsplit(url)
    return Endpoint(parts._replace(path=_clean(parts.path)).geturl(), _pem(ca_bundle))


def _clean(path: str) -> str:
    """A path as client-go requests it: absolute, and without a slash at its end."""
    return normpath(f"/{path.lstrip('/')}")


def _pem(ca_bundle: str) -> bytes:
    return b64decode(ca_bundle) if ca_bundle else b""
