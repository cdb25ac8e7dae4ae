"""certificatesigningrequest-approving, row by row."""

from __future__ import annotations

import re
from typing import Any

import pytest

from steersman.api.errors import ApiError, Conflict, ServerError
from steersman.api.kinds import Condition
from steersman.api.kinds.certificates import CertificateSigningRequest
from steersman.controllers.certificates.requests import CLIENT, KUBELET_CLIENT, KUBELET_SERVING
from steersman.intent.actions import Action, CreateReview, Update
from steersman.intent.verdict import InvalidSpec, Rest
from tests.harness.certificate_requests import (
    APPROVED,
    EVIL,
    JANE,
    KUBELET_USAGES,
    MANY_HEADERS,
    NODE,
    approve,
    pkcs10,
    request,
)


def test_a_node_that_asks_for_its_own_certificate_is_approved_after_a_review() -> None:
    asked = request(NODE, KUBELET_CLIENT, username="system:node:n1", groups=("system:nodes",))
    (ask, put), verdict = approve(asked, "selfnodeclient")
    assert isinstance(ask, CreateReview)
    assert isinstance(ask.body, dict)
    assert ask.body["spec"] == {
        "user": "system:node:n1",
        "uid": "",
        "groups": ["system:nodes"],
        "extra": {},
        "resourceAttributes": {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": "selfnodeclient",
            "version": "*",
        },
    }
    assert isinstance(put, Update)
    assert (put.target.name, put.subresource) == ("r", "approval")
    assert put.body["metadata"]["resourceVersion"] == "5"
    assert put.body["metadata"]["labels"] == {"a": "b"}
    assert put.body["status"]["conditions"] == [
        {
            "type": "Approved",
            "status": "True",
            "reason": "AutoApproved",
            "message": "Auto approving self kubelet client certificate after SubjectAccessReview.",
        }
    ]
    assert verdict == Rest("approved")


def test_a_node_that_may_not_renew_itself_may_still_bootstrap() -> None:
    actions, verdict = approve(request(NODE, KUBELET_CLIENT, username="system:node:n1"), "nodeclient")
    assert [type(action) for action in actions] == [CreateReview, CreateReview, Update]
    assert verdict == Rest("approved")


def test_a_bootstrapper_is_not_asked_whether_it_is_the_node() -> None:
    with pytest.raises(InvalidSpec, match=r"recognized as \[nodeclient\] but subject access review"):
        approve(request(NODE, KUBELET_CLIENT, username="somebody"), "selfnodeclient")


@pytest.mark.parametrize(
    "asked",
    [
        request(NODE, CLIENT),
        request(NODE, KUBELET_CLIENT, usages=("client auth", "server auth")),
        request(pkcs10("n1", ("system:nodes",)), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:masters",)), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:nodes", "system:masters")), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:nodes",), dns=("a.b",)), KUBELET_CLIENT),
        request(NODE, KUBELET_CLIENT, conditions=(APPROVED,)),
        request(NODE, KUBELET_CLIENT, conditions=(Condition(type="Denied", status="True"),)),
        request(b"x" + NODE + EVIL, KUBELET_CLIENT),
        request(MANY_HEADERS + JANE, CLIENT),
        request(b"of another signer, in a form of its own", "example.com/mine"),
    ],
)
def test_what_is_not_a_kubelets_or_decided_already_is_left_to_others(
    asked: CertificateSigningRequest,
) -> None:
    actions, _ = approve(asked, "selfnodeclient", "nodeclient")
    assert actions == []


def test_the_request_that_kubectl_shows_is_the_one_approved() -> None:
    for pem in (b"x" + EVIL + NODE, MANY_HEADERS + NODE, NODE + EVIL):
        _, verdict = approve(request(pem, KUBELET_CLIENT, username="system:node:n1"), "selfnodeclient")
        assert verdict == Rest("approved")


# -- upstream's tables ----------------------------------------------------------------------------

OWN, NODES = "selfnodeclient", "nodeclient"


@pytest.mark.parametrize("usages", [KUBELET_USAGES, ("digital signature", "client auth")], ids=["RSA", "EC"])
@pytest.mark.parametrize(
    ("name", "organizations", "requester", "signer", "more", "reviewed"),
    [
        ("system:node:foo", ("system:nodes",), "system:node:foo", KUBELET_CLIENT, (), [OWN, NODES]),
        ("mike", ("system:nodes",), "system:node:foo", KUBELET_CLIENT, (), []),
        ("mike", ("system:nodes",), "mike", KUBELET_CLIENT, (), []),
        ("system:node:foo", (), "system:node:foo", KUBELET_CLIENT, (), []),
        ("system:node:foo", ("system:master",), "system:node:foo", KUBELET_CLIENT, (), []),
        ("system:node:foo", ("system:nodes",), "system:node:foo", KUBELET_CLIENT, ("server auth",), []),
        ("system:node:foo", ("system:nodes",), "system:node:foo", "example.com/not-correct", (), []),
        ("system:node:foo", ("system:nodes",), "system:node:foo", KUBELET_SERVING, (), []),
        ("system:node:foo", ("system:nodes",), "joe", KUBELET_CLIENT, (), [NODES]),
        ("system:node:bar", ("system:nodes",), "system:node:foo", KUBELET_CLIENT, (), [NODES]),
    ],
)
def test_a_request_is_recognized_by_its_subject_signer_usages_and_requester(
    name: str,
    organizations: tuple[str, ...],
    requester: str,
    signer: str,
    more: tuple[str, ...],
    reviewed: list[str],
    usages: tuple[str, ...],
) -> None:
    asked = request(pkcs10(name, organizations), signer, (*usages, *more), username=requester)
    recorded: list[Action[Any]] = []
    if reviewed:
        with pytest.raises(InvalidSpec, match=re.escape(f"recognized as [{' '.join(reviewed)}] but")):
            approve(asked, recorded=recorded)
    else:
        approve(asked, recorded=recorded)
    reviews = [action.body for action in recorded if isinstance(action, CreateReview)]
    assert [body["spec"]["resourceAttributes"]["subresource"] for body in reviews] == reviewed
    assert len(recorded) == len(reviewed)


@pytest.mark.parametrize("recognized", [False, True])
@pytest.mark.parametrize("allowed", [False, True])
def test_a_request_is_approved_if_it_is_recognized_and_allowed(recognized: bool, allowed: bool) -> None:
    asked = request(NODE if recognized else pkcs10("test-cert"), KUBELET_CLIENT, username="somebody")
    recorded: list[Action[Any]] = []
    if recognized and not allowed:
        with pytest.raises(InvalidSpec):
            approve(asked, recorded=recorded)
    else:
        approve(asked, *((NODES,) if allowed else ()), recorded=recorded)
    requests = [type(action) for action in recorded]
    assert requests == [CreateReview] * recognized + [Update] * (recognized and allowed)


def test_conditions_that_exist_are_kept() -> None:
    other = Condition(type="Other", status="True", reason="R", message="m")
    asked = request(NODE, KUBELET_CLIENT, username="somebody", conditions=(other,))
    (_, put), _ = approve(asked, NODES)
    assert isinstance(put, Update)
    assert [one["type"] for one in put.body["status"]["conditions"]] == ["Other", "Approved"]


@pytest.mark.parametrize("error", [Conflict("changed"), ServerError("down")])
def test_an_approval_that_cannot_be_written_is_tried_again(error: ApiError) -> None:
    with pytest.raises(type(error)):
        approve(request(NODE, KUBELET_CLIENT, username="somebody"), NODES, update=error)
