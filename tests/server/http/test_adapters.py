"""In process and over HTTP alike: both adapters build a `Request`, and one place carries it out."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.api.clock import RealClock
from steersman.api.errors import Forbidden, Invalid, NotFound
from steersman.api.generated import load
from steersman.client.api import Api, EventType
from steersman.client.http import HttpApi
from steersman.client.kubeconfig import load as load_kubeconfig
from steersman.server.auth.users import ADMIN, AUTHENTICATED, MASTERS, User
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.rest.perform import perform
from steersman.server.rest.request import Request
from steersman.server.server import Server

REQUESTS = load("certificates.k8s.io", "v1", "CertificateSigningRequest").untyped
EVENTS = load("", "v1", "Event").untyped
NEW_EVENTS = load("events.k8s.io", "v1", "Event").untyped
REVIEWS = load("authorization.k8s.io", "v1", "SelfSubjectAccessReview").untyped
SERVICES = load("", "v1", "Service").untyped
PODS = load("", "v1", "Pod").untyped
APPLY = "application/apply-patch+yaml"


# -- who asks ---------------------------------------------------------------------------------

JANE = User("jane", groups=("developers", MASTERS, AUTHENTICATED))


def signing_request(name: str) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
            "username": "an impostor",
            "groups": ["system:masters"],
            "extra": {"forged": ["yes"]},
        },
    }


@pytest.fixture(params=["in process", "over HTTP"])
async def jane(request: Any, plane: Any) -> AsyncIterator[Api]:
    """A client of jane's."""
    if request.param == "in process":
        yield LocalApi(plane.server, JANE)
        return
    async with HttpApi(load_kubeconfig(str(plane.kubeconfig("jane", "developers", MASTERS))), qps=0) as api:
        yield api


@pytest.mark.parametrize("way", ["create", "apply"])
async def test_a_signing_request_records_the_user_who_made_it(jane: Api, way: str) -> None:
    body = signing_request("one")
    if way == "create":
        made = await jane.create(REQUESTS, "", body)
    else:
        made = await jane.patch(REQUESTS, "", "one", body, content_type=APPLY, field_manager="me")
    spec = made["spec"]
    assert spec["username"] == "jane"
    assert set(spec["groups"]) == {"developers", MASTERS, AUTHENTICATED}
    assert "forged" not in spec.get("extra", {})


async def test_a_review_is_answered_and_not_stored(jane: Api, plane: Any) -> None:
    before = plane.server.store.revision
    asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}}
    assert (await jane.create(REVIEWS, "", asked))["status"]["allowed"] is True
    assert plane.server.store.revision == before


async def test_grants_are_measured_by_the_rights_of_the_user(plane: Any) -> None:
    """Also for a client that is let through to the server without any check."""
    roles = load("rbac.authorization.k8s.io", "v1", "ClusterRole").untyped
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    body = {"metadata": {"name": "reader"}, "rules": [rule]}
    with pytest.raises(Forbidden, match="not currently held"):
        await LocalApi(plane.server, User("stranger")).create(roles, "", body)
    await LocalApi(plane.server, JANE).create(roles, "", body)


@pytest.mark.parametrize("way", ["apply", "update"])
async def test_a_write_that_would_create_an_object_needs_the_right_to_create_it(plane: Any, way: str) -> None:
    """Recorded from kube-apiserver 1.36: refused after validation, in the words of a refused create."""

    async def write(api: Api, body: dict[str, Any]) -> None:
        if way == "apply":
            await api.patch(SERVICES, "default", "x", body, content_type=APPLY, field_manager="m")
        else:
            await api.update(SERVICES, "default", "x", body)

    group = "rbac.authorization.k8s.io"
    admin = LocalApi(plane.server)
    rule = {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "patch", "update"]}
    await admin.create(
        load(group, "v1", "ClusterRole").untyped, "", {"metadata": {"name": "r"}, "rules": [rule]}
    )
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "joe"}],
    }
    await admin.create(load(group, "v1", "ClusterRoleBinding").untyped, "", binding)
    joe = AuthorizedApi(LocalApi(plane.server, User("joe", groups=(AUTHENTICATED,))), plane.authorizer)
    async with HttpApi(load_kubeconfig(str(plane.kubeconfig("joe", "staff"))), qps=0) as over_http:
        apis: tuple[Api, ...] = (joe, over_http)
        for api in apis:
            for ports, error in (([{"port": 80}], Forbidden), ([], Invalid)):
                body = {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "x"},
                    "spec": {"ports": ports},
                }
                with pytest.raises(error) as refused:
                    await write(api, body)
                if error is Forbidden:
                    assert refused.value.message == (
                        'services "x" is forbidden: User "joe" cannot create resource "services" '
                        'in API group "" in the namespace "default"'
                    )


# -- dry run ----------------------------------------------------------------------------------

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
LABEL = {"metadata": {"labels": {"x": "y"}}}
MERGE = "application/merge-patch+json"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
PATHS = "/api/v1/namespaces/default"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
    },
}


@pytest.mark.parametrize(
    ("method", "path", "body", "media_type"),
    [
        ("POST", f"{PATHS}/pods", {**POD, "metadata": {"name": "new"}}, ""),
        ("PUT", f"{PATHS}/serviceaccounts/default", {"metadata": {"name": "default", "labels": {"x": "y"}}}, ""),
        ("PUT", f"{PATHS}/services/new", {"metadata": {"name": "new"}, "spec": {"ports": [{"port": 1}]}}, ""),
        ("PUT", f"{PATHS}/pods/p/status", {**POD, "status": {"phase": "Running"}}, ""),
        ("PATCH", f"{PATHS}/pods/p", LABEL, MERGE),
        ("PATCH", f"{PATHS}/pods/p", LABEL, "application/strategic-merge-patch+json"),
        ("PATCH", f"{PATHS}/pods/p", [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], "application/json-patch+json"),
        ("PATCH", f"{PATHS}/pods/p?fieldManager=me", {**POD, **LABEL, "metadata": {"name": "p", "labels": {"x": "y"}}}, APPLY),
        ("PATCH", f"{PATHS}/pods/new?fieldManager=me", {**POD, "metadata": {"name": "new"}}, APPLY),
        ("PATCH", f"{PATHS}/pods/p/status", {"status": {"phase": "Running"}}, MERGE),
        ("DELETE", f"{PATHS}/pods/p", None, ""),
        ("DELETE", f"{PATHS}/pods", None, ""),
        ("DELETE", "/api/v1/namespaces/kube-node-lease", None, ""),
        ("POST", f"{PATHS}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}, ""),
        ("POST", f"{PATHS}/bindings", {"metadata": {"name": "p"}, "target": {"name": "n"}}, ""),
        ("POST", f"{PATHS}/pods/p/eviction", EVICTION, ""),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/d/scale", SCALE, ""),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", {"spec": {"replicas": 3}}, MERGE),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale?fieldManager=me&force=1", SCALE, APPLY),
    ],
)  # fmt: skip
async def test_a_dry_run_of_any_verb_stores_nothing(
    plane: Any, method: str, path: str, body: Any, media_type: str
) -> None:
    admin = LocalApi(plane.server)
    await admin.create(load("", "v1", "ServiceAccount").untyped, "default", {"metadata": {"name": "default"}})
    await admin.create(PODS, "default", POD)
    await admin.create(load("apps", "v1", "Deployment").untyped, "default", DEPLOYMENT)
    before = plane.server.store.revision
    headers = {"Content-Type": media_type} if media_type else {}
    mark = "&" if "?" in path else "?"
    async with plane.session() as session:
        async with session.request(method, f"{path}{mark}dryRun=All", json=body, headers=headers) as answer:
            assert answer.status in (200, 201), await answer.text()
        assert plane.server.store.revision == before
        # The same in earnest: so it was the dry run that stored nothing.
        async with session.request(method, path, json=body, headers=headers) as answer:
            assert answer.status in (200, 201), await answer.text()
        assert plane.server.store.revision > before


async def test_an_eviction_with_dry_run_in_its_body_stores_nothing(jane: Api, plane: Any) -> None:
    accounts = load("", "v1", "ServiceAccount").untyped
    await jane.create(accounts, "default", {"metadata": {"name": "default"}})
    await jane.create(PODS, "default", POD)
    before = plane.server.store.revision
    body = {**EVICTION, "deleteOptions": {"dryRun": ["All"]}}
    assert (await jane.subresource(PODS, "default", "p", "eviction", body))["status"] == "Success"
    assert plane.server.store.revision == before


# -- TTL --------------------------------------------------------------------------------------


class AdjustableClock(RealClock):
    """The machine's clock, and a lead over it."""

    lead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.lead


def event(name: str) -> dict[str, Any]:
    regarding = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": regarding, "reason": "R"}


@pytest.mark.parametrize("adapter", ["in process", "over HTTP"])
async def test_an_event_is_gone_once_its_hour_is_over(adapter: str, tmp_path: Path) -> None:
    clock = AdjustableClock()
    server, boot = Server(clock), Bootstrap.generate(RealClock().now)
    kubeconfig = tmp_path / "kubeconfig"
    async with await boot.serve(server, bootstrap_server(server)) as edge:
        kubeconfig.write_bytes(boot.kubeconfig(edge.url))
        async with HttpApi(load_kubeconfig(str(kubeconfig)), qps=0) as http:
            api: Api = http if adapter == "over HTTP" else LocalApi(server)
            await api.create(EVENTS, "default", event("old"))
            clock.lead = timedelta(minutes=30)
            await api.create(EVENTS, "default", event("young"))
            assert await names(api) == ["old", "young"]
            clock.lead = timedelta(minutes=61)
            for kind in (EVENTS, NEW_EVENTS):
                with pytest.raises(NotFound):
                    await api.get(kind, "default", "old")
                with pytest.raises(NotFound):
                    await api.patch(kind, "default", "old", LABEL)
            assert await names(api) == ["young"]
            clock.lead = timedelta(minutes=91)
            watched = []
            async for each in api.watch(EVENTS, "default", send_initial_events=True):
                if each.type is EventType.BOOKMARK:
                    break
                watched.append(each.obj)
            assert watched == []
            clock.lead = timedelta(minutes=92)
            created = await api.create(EVENTS, "default", event("old"))
            assert created["metadata"]["name"] == "old"
            clock.lead = timedelta(minutes=153)
            assert await names(api, NEW_EVENTS) == []


async def names(api: Api, kind: Any = EVENTS) -> list[str]:
    return [each["metadata"]["name"] for each in (await api.list(kind, "default")).items]


async def test_an_object_that_expires_during_a_dry_run_is_gone_for_good() -> None:
    server = Server(clock := AdjustableClock())
    bootstrap_server(server)
    await LocalApi(server).create(EVENTS, "default", event("old"))
    clock.lead = timedelta(minutes=61)
    events = server.registry.find("", "v1", "events")
    with pytest.raises(NotFound):
        perform(server, Request(ADMIN, "delete", events, "default", "old", dry_run=True))
    assert server.store.table("events").keys() == []
