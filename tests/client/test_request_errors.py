from __future__ import annotations

import errno
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from steersman.client.request_errors import connection_broke, error_from_response, retry_after, unreachable

KEY = ConnectionKey("api.example", 6443, True, True, None, None, None)


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1006)")
    error.reason = reason
    return error


def after_the_handshake(reason: str) -> aiohttp.ClientOSError:
    """As aiohttp raises what TLS 1.3 says only when the connection seems to stand."""
    error = aiohttp.ClientOSError(1, f"[SSL: {reason}]")
    error.__cause__ = tls_error(reason)
    return error


NO_REQUEST: Any = None
"""The request of an aiohttp error, which no message here shows."""


@pytest.mark.parametrize(
    ("error", "says", "sent"),
    [
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('::1', 1)")),
            "connection refused",
            False,
        ),
        (aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "x")), "no route to host", False),
        (aiohttp.ClientConnectorDNSError(KEY, OSError("x")), "the host name cannot be resolved", False),
        (aiohttp.ConnectionTimeoutError("x"), "timed out while connecting", False),
        (aiohttp.ClientProxyConnectionError(KEY, OSError("x")), "the proxy cannot be reached", False),
        (
            aiohttp.ClientHttpProxyError(NO_REQUEST, (), status=407),
            "the proxy answered with status 407",
            False,
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, tls_error("WRONG_VERSION_NUMBER")),
            "the server does not speak TLS; is it an http:// server?",
            False,
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, tls_error("NO_PROTOCOLS_AVAILABLE")),
            "TLS failed: no protocols available",
            False,
        ),
        (
            after_the_handshake("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "the server refuses our client certificate; check client-certificate in the kubeconfig",
            True,
        ),
        (aiohttp.ServerDisconnectedError(), "the server closed the connection", True),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), "connection reset by peer", True),
        (aiohttp.ClientPayloadError("x"), "the response was cut off", True),
        (aiohttp.SocketTimeoutError("x"), "timed out waiting for the response", True),
        (TimeoutError(), "timed out waiting for the response", True),
        (aiohttp.ClientResponseError(NO_REQUEST, (), message="x"), "the response is not HTTP", True),
    ],
)
def test_no_answer_is_one_line_and_a_write_is_uncertain_if_it_was_sent(
    error: Exception, says: str, sent: bool
) -> None:
    for is_write in (True, False):
        made = unreachable("https://api.example", "create pods", error, is_write=is_write)
        assert made.message == f"https://api.example: create pods: {says}"
        assert made.uncertain is (is_write and sent)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), True),
        (aiohttp.ClientPayloadError("x"), True),
        (aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "x")), False),
        (aiohttp.ConnectionTimeoutError("x"), False),
        (aiohttp.SocketTimeoutError("x"), False),
        (TimeoutError(), False),
    ],
)
def test_only_a_connection_that_was_there_can_break(error: Exception, again: bool) -> None:
    assert connection_broke(error) is again


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("\u0663", None),
        ("9" * 400, None),
    ],
)
def test_the_time_to_wait_is_whole_seconds(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value} if value else {}) == seconds


def test_a_refusal_knows_when_to_come_back() -> None:
    made = error_from_response(
        "get pods", 503, {"Retry-After": "5"}, b'{"kind":"Status","code":503,"message":"m"}'
    )
    assert (made.code, made.message, made.retry_after) == (503, "m", 5.0)
