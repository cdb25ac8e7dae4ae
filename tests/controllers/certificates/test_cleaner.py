"""certificatesigningrequest-cleaner and podcertificaterequest-cleaner, row by row."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Literal

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestStatus,
    PodCertificateRequest,
)
from steersman.controllers.certificates import cleaner
from steersman.intent.actions import Delete
from steersman.intent.verdict import Rest, Wake
from steersman.testing.decision_driver import walk
from tests.harness.certificate_requests import NOW, authority


def aged(
    *conditions: Condition, certificate: str = "", ago: timedelta = timedelta()
) -> CertificateSigningRequest:
    return CertificateSigningRequest(
        metadata=ObjectMeta(name="r", uid="u", creationTimestamp=NOW - ago),
        status=CertificateSigningRequestStatus(conditions=conditions, certificate=certificate),
    )


def since(type_: str, **ago: float) -> Condition:
    return Condition(type=type_, status="True", lastUpdateTime=NOW - timedelta(**ago))


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (aged(), timedelta(hours=24)),
        (aged(ago=timedelta(hours=24)), None),
        (aged(since("Denied", minutes=20)), timedelta(minutes=40)),
        (aged(since("Denied", hours=1)), None),
        (aged(since("Failed", hours=2)), None),
        (aged(since("Approved", hours=2)), timedelta(hours=22)),
        (aged(since("Approved", hours=24)), None),
        (aged(since("Approved", minutes=30), certificate="eA=="), timedelta(minutes=30)),
        (aged(since("Approved", hours=1), certificate="eA=="), None),
        (aged(Condition(type="Approved", status="True"), certificate="eA=="), "never"),
        (
            aged(since("Approved", minutes=1), certificate=base64.b64encode(authority(days=0)[0]).decode()),
            None,
        ),
        (
            aged(
                since("Approved", minutes=1),
                certificate=base64.b64encode(b"x" + authority(days=0)[0] + authority()[0]).decode(),
            ),
            timedelta(minutes=59),
        ),
    ],
)
def test_a_request_is_remembered_for_its_time(
    asked: CertificateSigningRequest, left: timedelta | Literal["never"] | None
) -> None:
    actions, verdict = walk(cleaner.decide(asked, NOW))
    if left is None:
        assert (actions, verdict) == ([Delete(asked)], Rest("expired: deleted"))
    elif left == "never":
        assert (actions, verdict) == ([], Rest("no expiry: the request has no time to count from"))
    else:
        assert (actions, verdict) == ([], Wake(left, "not expired"))


def test_a_pods_request_is_remembered_for_a_quarter_of_an_hour() -> None:
    made = PodCertificateRequest(metadata=ObjectMeta(name="p", creationTimestamp=NOW - timedelta(minutes=14)))
    assert walk(cleaner.decide_pod_request(made, NOW))[1] == Wake(timedelta(minutes=1), "not expired")
    assert walk(cleaner.decide_pod_request(made, NOW + timedelta(minutes=1)))[0] == [Delete(made)]


# -- upstream's tables ----------------------------------------------------------------------------

EXPIRED = base64.b64encode(authority(days=0)[0]).decode()
UNEXPIRED = base64.b64encode(authority()[0]).decode()
GARBAGE = base64.b64encode(b"garbage").decode()


@pytest.mark.parametrize(
    ("created", "certificate", "conditions", "deleted"),
    [
        (1, UNEXPIRED, {"Approved": 50}, False),
        (1, "", {"Approved": 50}, False),
        (1, UNEXPIRED, {"Approved": 120}, True),
        (1, "", {"Denied": 50}, False),
        (1, "", {"Denied": 120}, True),
        (1, "", {"Approved": 120, "Failed": 50}, False),
        (1, "", {"Approved": 120, "Failed": 120}, True),
        (5 * 60, "", {}, False),
        (25 * 60, "", {}, True),
        (1, "", {"Approved": 25 * 60}, True),
        (1, "", {"Approved": 5 * 60}, False),
        (1, EXPIRED, {"Approved": 50}, True),
        (1, GARBAGE, {"Approved": 120}, True),
        (1, GARBAGE, {"Approved": 50}, False),
        # An expired certificate counts with an approval only, and a request with any condition is not pending.
        (1, EXPIRED, {"Other": 50}, False),
        (25 * 60, "", {"Other": 25 * 60}, False),
    ],
)
def test_a_request_is_deleted_by_its_minutes(
    created: int, certificate: str, conditions: dict[str, int], deleted: bool
) -> None:
    asked = aged(
        *(since(type_, minutes=minutes) for type_, minutes in conditions.items()),
        certificate=certificate,
        ago=timedelta(minutes=created),
    )
    assert walk(cleaner.decide(asked, NOW + timedelta(seconds=1)))[0] == ([Delete(asked)] if deleted else [])


@pytest.mark.parametrize("issued", [False, True])
@pytest.mark.parametrize(("seconds", "deleted"), [(14 * 60 + 59, False), (15 * 60 + 1, True)])
def test_a_pods_request_is_deleted_after_a_quarter_of_an_hour_whatever_its_state(
    issued: bool, seconds: int, deleted: bool
) -> None:
    document = {
        "metadata": {"namespace": "foo", "name": "bar", "uid": "u"},
        "status": {"conditions": [{"type": "Denied", "status": "True", "reason": "Foo"}]} if issued else {},
    }
    made = msgspec.convert(document, PodCertificateRequest)
    at = NOW - timedelta(seconds=seconds)
    made = replace(made, metadata=replace(made.metadata, creationTimestamp=at))
    assert walk(cleaner.decide_pod_request(made, NOW))[0] == ([Delete(made)] if deleted else [])


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("another")])
def test_a_request_that_went_first_is_no_error(error: ApiError) -> None:
    _, verdict = walk(cleaner.decide(aged(ago=timedelta(hours=25)), NOW), {Delete: error})
    assert verdict == Rest("already gone")
