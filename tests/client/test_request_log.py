"""What is logged of requests."""

from __future__ import annotations

import logging

import pytest

from steersman.api.verbosity import V
from steersman.client import request_log

HEADERS = {"Accept": "application/json", "Authorization": "Bearer hunter2", "Cookie": "hunter2"}


def said(caplog: pytest.LogCaptureFixture, verbosity: int) -> list[tuple[str, dict[str, object]]]:
    with caplog.at_level(V[verbosity], request_log.__name__):
        asked = "GET", "https://me:hunter2@host:6443/prefix", "/api/v1/pods?limit=1"
        request_log.log_request(*asked, HEADERS.items())
        request_log.log_response(*asked, 404, HEADERS, 0.0042)
    return [(record.brief, record.values) for record in caplog.records]  # type: ignore[attr-defined]


def test_nothing_is_said_below_six(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, 5) == []


def test_six_says_what_was_answered_and_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, 6) == [
        (
            "Response",
            {
                "verb": "GET",
                "url": "https://host:6443/prefix/api/v1/pods?limit=1",
                "status": "404 Not Found",
                "milliseconds": 4,
            },
        )
    ]


def test_seven_says_what_was_asked_and_eight_says_all_headers_but_those_that_prove_something(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (_, asked), (_, answered) = said(caplog, 8)
    headers = "Accept: application/json\nAuthorization: <masked>\nCookie: <masked>\n"
    assert asked == {
        "verb": "GET",
        "url": "https://host:6443/prefix/api/v1/pods?limit=1",
        "headers": headers,
    }
    assert answered["headers"] == headers


@pytest.mark.parametrize(("code", "status"), [(0, ""), (200, "200 OK"), (599, "599")])
def test_a_status_has_its_words(caplog: pytest.LogCaptureFixture, code: int, status: str) -> None:
    with caplog.at_level(logging.DEBUG, request_log.__name__):
        request_log.log_response("GET", "https://host", "/", code, None, 1)
    assert caplog.records[0].values["status"] == status  # type: ignore[attr-defined]
