from __future__ import annotations

import ssl

import pytest

from steersman.api.errors import AlreadyExists, TLSFailed
from steersman.client.connection import ConnectionBroke, NotConnected, NotHttp
from steersman.client.request_errors import connection_broke, error_from_response, retry_after, unreachable


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1006)")
    error.reason = reason
    return error


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "says", "sent"),
    [
        (NotConnected("connection refused"), "connection refused", False),
        (
            caused(NotConnected("x"), tls_error("WRONG_VERSION_NUMBER")),
            "the server does not speak TLS; is it an http:// server?",
            False,
        ),
        (
            caused(NotConnected("x"), tls_error("NO_PROTOCOLS_AVAILABLE")),
            "TLS failed: no protocols available",
            False,
        ),
        (
            # What TLS 1.3 says only when the connection seems to stand.
            caused(ConnectionBroke("x"), tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED")),
            "the server refuses our client certificate: there is none, and one is needed; check client-certificate in "
            "the kubeconfig",
            True,
        ),
        (ConnectionBroke("the server closed the connection"), "the server closed the connection", True),
        (TimeoutError(), "timed out waiting for the response", True),
        (NotHttp(), "the response is not HTTP", True),
    ],
)
def test_no_answer_is_one_line_and_a_write_is_uncertain_if_it_was_sent(
    error: Exception, says: str, sent: bool
) -> None:
    for is_write in (True, False):
        made = unreachable("https://api.example", "create pods", error, is_write=is_write)
        about = "" if isinstance(made, TLSFailed) else "create pods: "
        assert made.message == f"https://api.example: {about}{says}"
        assert isinstance(made, TLSFailed) is ("TLS" in says or "certificate" in says)
        assert made.uncertain is (is_write and sent)


@pytest.mark.parametrize(
    ("error", "again"),
    [(ConnectionBroke("x"), True), (NotConnected("x"), False), (NotHttp(), False), (TimeoutError(), False)],
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
    assert retry_after({"retry-after": value} if value else {}) == seconds


def test_a_refusal_knows_when_to_come_back() -> None:
    made = error_from_response(
        "GET", "/api/v1/pods", 503, {"retry-after": "5"}, b'{"kind":"Status","code":503,"message":"m"}'
    )
    assert (made.code, made.message, made.retry_after) == (503, "m", 5.0)


PODS_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/d/pods?labelSelector=a%3Db"


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (400, "BadRequest", "the server rejected our request for an unknown reason"),
        (401, "Unauthorized", "the server has asked for the client to provide credentials"),
        (403, "Forbidden", "unknown"),
        (404, "NotFound", "the server could not find the requested resource"),
        (405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        (
            406,
            "NotAcceptable",
            "the server was unable to respond with a content type that the client supports",
        ),
        (409, "Conflict", "the server reported a conflict"),
        (413, "", "the server responded with the status code 413 but did not return more information"),
        (415, "UnsupportedMediaType", "unknown"),
        (422, "Invalid", "the server rejected our request due to an error in our request"),
        (
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        (
            500,
            "InternalError",
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (
            502,
            "InternalError",
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        (
            504,
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the "
            "request",
        ),
    ],
)
def test_an_answer_without_a_status_is_told_in_the_words_of_client_go(
    code: int, reason: str, message: str
) -> None:
    made = error_from_response("GET", PODS_METRICS, code, {}, b"404 page not found")
    assert (made.code, made.reason) == (code, reason)
    assert made.message == f"{message} (get pods.metrics.k8s.io)"


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("/api/v1/pods", " (get pods)"),
        ("/api/v1/namespaces/d/pods/web-1/status", " (get pods web-1)"),
        ("/api/v1/namespaces/d", " (get namespaces d)"),
        ("/api/v1/namespaces/d/finalize", " (get namespaces d)"),
        ("/api/v1/namespaces", " (get namespaces)"),
        ("/apis/apps/v1/namespaces/d/deployments/web", " (get deployments.apps web)"),
        (
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/d/pods/*/hits?labelSelector=x",
            " (get pods.custom.metrics.k8s.io *)",
        ),
        (
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/d/status",
            " (get status.external.metrics.k8s.io)",
        ),
        ("/apis/external.metrics.k8s.io/v1beta1/namespaces/d/o%20s", " (get o s.external.metrics.k8s.io)"),
        ("/apis/apps/v1", ""),
        ("/apis", ""),
        ("/openapi/v3/apis/apps/v1", ""),
        ("/version", ""),
    ],
)
def test_an_answer_without_a_status_names_what_was_asked_for(path: str, about: str) -> None:
    made = error_from_response("GET", path, 404, {}, b"")
    assert made.message == f"the server could not find the requested resource{about}"


def test_a_conflict_without_a_status_is_for_a_post_that_the_object_exists() -> None:
    made = error_from_response("POST", "/api/v1/namespaces/d/pods", 409, {}, b"")
    assert isinstance(made, AlreadyExists)
    assert made.message == "the server reported a conflict (post pods)"
