"""The client for calls to webhooks over HTTPS, with the errors of Go's client.

aiohttp is imported with the first call, which most servers never make, and in a thread: it takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from steersman.api.bounded_cache import BoundedCache
from steersman.server.calls import MAX_RESPONSE, Answer, Call, answer_in_process

if TYPE_CHECKING:
    import aiohttp

_log = logging.getLogger(__name__)

_HEADERS = {
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}
_CONTEXTS = 200
"""TLS contexts that are kept, one for each caBundle."""
_CHUNK = 256 * 1024
_DEADLINE = "context deadline exceeded"
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
"""OpenSSL's codes for a certificate whose authority is not trusted."""
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME = 10, 9, (62, 64)


async def load_aiohttp() -> None:
    """Imports aiohttp before its first use, without holding up the event loop."""
    await asyncio.to_thread(import_module, "aiohttp")


def real_timeout(seconds: float) -> asyncio.Timeout:
    """A time-out in real time, in which other servers live. A clock that runs faster has a loop whose timers do."""
    speed: float = getattr(asyncio.get_running_loop(), "speed", 1.0)
    return asyncio.timeout(seconds * speed)


class WebhookClient:
    """Calls webhooks over HTTPS and keeps the connections. For one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._contexts: BoundedCache[bytes, ssl.SSLContext] = BoundedCache(_CONTEXTS)

    def time(self) -> float:
        # Not the loop's time, which may be faster: webhooks live in real time.
        return time.monotonic()

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        # Each in a task: the server's connections drive handlers without one, and time-outs need it.
        return await asyncio.gather(*map(self._ask, calls))

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, call: Call) -> Answer:
        if call.endpoint.serves is not None:
            return answer_in_process(call)
        try:
            context = self._context(call.endpoint.ca_bundle)
        except ssl.SSLError:
            return Answer(error="unable to load root certificates: unable to parse bytes as PEM block")
        try:
            async with real_timeout(call.timeout):
                return await self._post(call, context)
        except TimeoutError:
            return Answer(error=_DEADLINE)
        except Exception as error:
            return Answer(error=go_error(error, call))

    async def _post(self, call: Call, context: ssl.SSLContext) -> Answer:
        session = await self._open()
        endpoint = call.endpoint
        url, headers, server_name = call.url, _HEADERS, None
        if endpoint.address:
            parts = urlsplit(call.url)
            url = parts._replace(netloc=endpoint.address).geturl()
            headers, server_name = {**_HEADERS, "Host": parts.netloc}, parts.hostname
        async with session.post(
            url,
            data=call.body,
            headers=headers,
            ssl=context,
            server_hostname=server_name,
            allow_redirects=False,
        ) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK):
                body += chunk
                if len(body) > MAX_RESPONSE:
                    response.close()
                    return Answer(error=f"the response has more than {MAX_RESPONSE} bytes")
            return Answer(bytes(body), response.status, response.headers.get("Content-Type", ""))

    async def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            await load_aiohttp()
        import aiohttp

        if self._session is None:
            # The machine's proxies are not for what is on this machine, and time-outs are those of calls.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                timeout=aiohttp.ClientTimeout(),
                auto_decompress=True,
            )
        return self._session

    def _context(self, ca_bundle: bytes) -> ssl.SSLContext:
        context = self._contexts.get(ca_bundle)
        if context is None:
            context = ssl.create_default_context(cadata=ca_bundle.decode("latin-1") if ca_bundle else None)
            # As Go, which does not insist on every extension that a certificate should have.
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
            self._contexts.put(ca_bundle, context)
        return context


class BlockingWebhookClient:
    """Calls webhooks from a world under virtual time, whose event loop has no sockets: time holds still meanwhile."""

    def time(self) -> float:
        return 0.0

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        answers = [answer_in_process(call) if call.endpoint.serves is not None else None for call in calls]
        remote = [call for call, answer in zip(calls, answers, strict=True) if answer is None]
        found = iter(_ask_in_thread(remote) if remote else ())
        return [next(found) if answer is None else answer for answer in answers]


def _ask_in_thread(calls: Sequence[Call]) -> Sequence[Answer]:
    """Makes calls on an event loop of their own, and waits for them."""
    answers: list[Answer] = []

    async def ask() -> None:
        client = WebhookClient()
        try:
            answers.extend(await client.ask(calls))
        finally:
            await client.close()

    thread = threading.Thread(target=lambda: asyncio.run(ask()), name="webhooks")
    thread.start()
    thread.join()
    return answers or [Answer(error="the call was not made")] * len(calls)


# -- errors -----------------------------------------------------------------------------------


def go_error(error: Exception, call: Call) -> str:
    """An error of a call in the words of Go's client."""
    import aiohttp

    parts = urlsplit(call.url)
    address = call.endpoint.address or (parts.netloc if parts.port else f"{parts.hostname}:443")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_error(error.certificate_error, parts.hostname or "")
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return _handshake_error(getattr(error.os_error, "reason", None) or "")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {parts.hostname}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {address}: connect: {_os_error(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, OSError):
        return f"read tcp {address}: read: {_os_error(error)}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"net/http: HTTP/1.x transport connection broken: {error.message}"
    _log.warning("a call to %s failed", call.url, exc_info=error)
    return f"{type(error).__name__}: {error}"


def _os_error(error: OSError) -> str:
    number = error.errno
    if number is None and isinstance(error.__cause__, OSError):
        number = error.__cause__.errno
    known = {
        errno.ECONNREFUSED: "connection refused",
        errno.ECONNRESET: "connection reset by peer",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
        errno.ETIMEDOUT: "connection timed out",
    }
    return known.get(number or 0, error.strerror or str(error))


_ALERTS = {
    "unknown ca": "unknown certificate authority",
    "certificate expired": "expired certificate",
    "certificate revoked": "revoked certificate",
    "certificate unknown": "unknown certificate",
    "protocol version": "protocol version not supported",
}
"""Go's words for what a server may send instead of a handshake, where OpenSSL's are others."""


def _handshake_error(reason: str) -> str:
    """``reason`` is OpenSSL's: ``TLSV1_ALERT_INTERNAL_ERROR`` of a server that has no certificate yet."""
    _, alert, text = reason.partition("_ALERT_")
    if not alert:
        return "http: server gave HTTP response to HTTPS client"
    text = text.lower().replace("_", " ")
    return f"remote error: tls: {_ALERTS.get(text, text)}"


def _certificate_error(error: Exception, host: str) -> str:
    code = getattr(error, "verify_code", 0)
    why = getattr(error, "verify_message", "") or str(error)
    if code in _UNKNOWN_AUTHORITY:
        why = "certificate signed by unknown authority"
    elif code in (_EXPIRED, _NOT_YET_VALID):
        why = "certificate has expired or is not yet valid"
    elif code in _WRONG_NAME:
        why = f"certificate is not valid for {host}"
    return f"tls: failed to verify certificate: x509: {why}"
