"""Every answer of a server is one error, whatever it looks like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import errors
from steersman.api.errors import ApiError, Cause, from_status, to_status


@pytest.mark.parametrize(
    ("code", "reason", "cls"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (406, "NotAcceptable", errors.NotAcceptable),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (413, "RequestEntityTooLarge", errors.TooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (502, "", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (504, "Timeout", errors.ServerTimeout),
        (418, "", ApiError),
    ],
)
def test_each_code_has_its_class(code: int, reason: str, cls: type[ApiError]) -> None:
    error = from_status({"code": code, "reason": reason, "message": "m"})
    assert type(error) is cls
    assert (error.code, error.reason, str(error)) == (code, reason, "m")


def test_an_existing_object_is_also_a_conflict() -> None:
    assert isinstance(from_status({"code": 409, "reason": "AlreadyExists"}), errors.Conflict)


def test_causes_and_the_time_to_wait_are_read_from_the_details() -> None:
    error = from_status(
        {
            "code": 403,
            "details": {
                "causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}],
                "retryAfterSeconds": 5,
            },
        }
    )
    assert error.causes == (Cause("NamespaceTerminating", "m", "metadata.namespace"),)
    assert error.caused_by("NamespaceTerminating")
    assert not error.caused_by("FieldValueInvalid")
    assert error.retry_after == 5.0


def test_the_header_wins_over_the_details() -> None:
    status = {"code": 429, "details": {"retryAfterSeconds": 5}}
    assert from_status(status, retry_after=1.5).retry_after == 1.5


def test_the_http_code_counts_where_the_document_has_none() -> None:
    assert isinstance(from_status({}, code=404), errors.NotFound)
    assert str(from_status({}, code=404)) == "the server answered 404"
    assert isinstance(from_status({"code": 0}), errors.ServerError)


@pytest.mark.parametrize("code", [-1, True, 99, 1000, pytest.param(10**400, id="huge"), "404", 404.5])
def test_a_code_that_is_no_http_status_is_ignored(code: Any) -> None:
    assert from_status({"code": code}, code=404).code == 404


@pytest.mark.parametrize(
    "seconds", [pytest.param(10**400, id="huge"), 2**31, float("inf"), float("nan"), -1, "5"]
)
def test_a_time_to_wait_that_is_no_int32_is_ignored(seconds: Any) -> None:
    assert from_status({"code": 429, "details": {"retryAfterSeconds": seconds}}).retry_after is None


def test_an_error_is_certain_unless_said_otherwise() -> None:
    assert not from_status({"code": 404}).uncertain
    assert errors.Unreachable("reset", uncertain=True).uncertain


@pytest.mark.parametrize("cls", [errors.NotFound, errors.Conflict, errors.Invalid, errors.TooManyRequests])
def test_what_is_written_reads_as_the_same_error(cls: type[ApiError]) -> None:
    error = cls("m", reason="R", causes=(Cause("a", "b", "c"),), retry_after=3.0, details={"name": "x"})
    read = from_status(to_status(error))
    assert type(read) is cls
    assert (read.message, read.reason, read.causes, read.retry_after) == ("m", "R", error.causes, 3.0)
    assert read.details["name"] == "x"


def test_a_status_says_failure() -> None:
    status = to_status(errors.NotFound("gone", reason="NotFound"))
    assert (status["kind"], status["apiVersion"], status["status"], status["code"]) == (
        "Status",
        "v1",
        "Failure",
        404,
    )
    assert "details" not in status


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
details = st.fixed_dictionaries({}, optional={"causes": values, "retryAfterSeconds": values})


@given(
    st.fixed_dictionaries(
        {}, optional={"code": values, "reason": values, "message": values, "details": details | values}
    )
)
def test_no_document_however_broken_stops_reading(status: dict[str, Any]) -> None:
    error = from_status(status, code=500)
    assert isinstance(error, ApiError)
    assert str(error)
