"""Our tokens at a real server, and its tokens here: each takes the other's for its own."""

from __future__ import annotations

import http.client
import json
import ssl
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from steersman.api.errors import ApiError
from steersman.api.generated.authentication_v1 import TokenRequest
from steersman.api.generated.core_v1 import Node, Pod, Secret, ServiceAccount
from steersman.api.signing_keys import KeySet, base64url_decode
from steersman.server.auth.authentication import Authenticator, Credentials
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.tokens import TokenIssuer, openid_documents
from tests.harness.envtest import RealPlane

ISSUER = "https://kubernetes.default.svc"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
TYPES = {"serviceaccounts": ServiceAccount, "pods": Pod, "secrets": Secret, "nodes": Node}


def ask(plane: RealPlane, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(plane.ca)) if token else plane.tls()
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=context, timeout=10)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def populate(plane: RealPlane, namespace: str) -> ObjectLookup:
    """An account, and one of each thing tokens can be bound to; read from the real server when asked for."""
    home = f"/api/v1/namespaces/{namespace}"
    spec = {"serviceAccountName": "bot", "nodeName": namespace, "containers": [{"name": "c", "image": "i"}]}
    for path, body in (
        (f"{home}/serviceaccounts", {"metadata": {"name": "bot"}}),
        (f"{home}/secrets", {"metadata": {"name": "s"}}),
        ("/api/v1/nodes", {"metadata": {"name": namespace}}),
        (f"{home}/pods", {"metadata": {"name": "p"}, "spec": spec}),
    ):
        code, answer = ask(plane, "POST", path, body)
        assert code == 201, answer

    def find(resource: str, namespace: str, name: str) -> Any | None:
        middle = f"/namespaces/{namespace}" if namespace else ""
        code, document = ask(plane, "GET", f"/api/v1{middle}/{resource}/{name}")
        return msgspec.convert(document, TYPES[resource]) if code == 200 else None

    return ObjectLookup(find)


def timeless(token: str) -> dict[str, Any]:
    """What a token says, without what no two tokens say alike."""
    told: dict[str, Any] = json.loads(base64url_decode(token.split(".")[1]))
    moments = [told["exp"] - told["iat"], told["nbf"] - told["iat"]]
    bound = told["kubernetes.io"]
    if "warnafter" in bound:
        bound["warnafter"] -= told["iat"]
    return told | {"exp": moments[0], "nbf": moments[1], "iat": 0, "jti": len(told["jti"])}


@pytest.mark.parametrize("kind", ["", "Pod", "Secret", "Node"])
def test_tokens_are_the_same_and_hold_on_both_sides(plane: RealPlane, namespace: str, kind: str) -> None:
    objects = populate(plane, namespace)
    keys = KeySet.load(plane.service_account_key.read_bytes())
    spec: dict[str, Any] = {"expirationSeconds": 3607, "audiences": [ISSUER]}
    if kind:
        name = {"Pod": "p", "Secret": "s", "Node": namespace}[kind]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": kind, "name": name}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/bot/token"
    theirs = ask(plane, "POST", path, {"spec": spec})[1]
    now = datetime.now(UTC)
    ours = TokenIssuer(keys, ISSUER, (ISSUER,)).request(
        msgspec.convert({"spec": spec}, TokenRequest), namespace, "bot", objects, now, Random()
    )
    token, answer = ours.answer.status.token, msgspec.json.decode(msgspec.json.encode(ours.answer))
    assert list(timeless(token)) == list(timeless(theirs["status"]["token"]))
    assert timeless(token) == timeless(theirs["status"]["token"])
    assert answer["spec"] == theirs["spec"]
    assert list(answer["status"]) == sorted(theirs["status"])
    assert all(answer["metadata"][key] == theirs["metadata"][key] for key in ("name", "namespace", "uid"))
    # Ours there, theirs here.
    review = ask(plane, "POST", REVIEWS, {"spec": {"token": token}})[1]["status"]["user"]
    authenticator = Authenticator(objects, keys=keys, issuers=[ISSUER])
    user = authenticator.authenticate(Credentials(f"Bearer {theirs['status']['token']}"), now).user
    assert (user.name, user.uid, list(user.groups)) == (review["username"], review["uid"], review["groups"])
    assert sorted(user.extra) == sorted(review["extra"])
    assert ask(plane, "GET", "/api", token=token)[0] == 200


def test_a_real_server_refuses_requests_in_our_words(plane: RealPlane, namespace: str) -> None:
    objects = populate(plane, namespace)
    mint = TokenIssuer(KeySet.generate(), ISSUER, (ISSUER,))
    for name, body in (
        ("bot", {"spec": {"expirationSeconds": 5}}),
        ("bot", {"spec": {"expirationSeconds": 2**33}}),
        ("nope", {"spec": {}}),
        ("bot", {"spec": {}, "metadata": {"name": "other"}}),
        ("bot", {"spec": {}, "metadata": {"namespace": "other"}}),
        ("bot", {"spec": {}, "metadata": {"uid": "other"}}),
        ("bot", {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}}),
        ("bot", {"spec": {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "x"}}}),
        (
            "bot",
            {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u"}}},
        ),
        ("default", {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}),
    ):
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        code, status = ask(plane, "POST", path, body)
        with pytest.raises(ApiError) as refused:
            mint.request(
                msgspec.convert(body, TokenRequest), namespace, name, objects, datetime.now(UTC), Random()
            )
        assert (refused.value.code, refused.value.message) == (code, status["message"])


def test_the_documents_of_openid_are_the_same(plane: RealPlane) -> None:
    keys = KeySet.load(plane.service_account_key.read_bytes())
    for path, document in openid_documents(keys, ISSUER, f"{plane.url}/openid/v1/jwks").items():
        assert ask(plane, "GET", path)[1] == json.loads(document.body)
