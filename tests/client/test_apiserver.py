"""The client beside a real kube-apiserver: what only it can show.

The watch cache is off, so that what etcd forgets is forgotten at once.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import datetime
from typing import Any

import aiohttp
import pytest

from steersman.api.errors import AlreadyExists, Conflict, Expired, Forbidden, Invalid, NotFound, Unauthorized
from steersman.api.kinds import (
    NAMESPACES,
    NEW_PODS,
    PODS,
    SERVICEACCOUNTS,
    NewPod,
    Object,
    ObjectMeta,
    Opaque,
    ServiceAccount,
)
from steersman.client import kubeconfig
from steersman.client.api import EventType
from steersman.client.auth import FetchedTokenAuth, StaticAuth, Token
from steersman.client.http import HttpApi
from steersman.client.pager import PageRequest, list_page
from tests.harness.envtest import ASSETS, RealPlane

pytestmark = [
    pytest.mark.real,
    pytest.mark.xdist_group("real-client"),
    pytest.mark.skipif(not os.environ.get(ASSETS), reason=f"needs a real kube-apiserver: set {ASSETS}"),
]

SPEC = Opaque(b'{"containers":[{"name":"a","image":"b"}],"automountServiceAccountToken":false}')
ACCOUNTS = SERVICEACCOUNTS


@pytest.fixture(scope="module")
def plane() -> Iterator[RealPlane]:
    with RealPlane.start(apiserver=("--watch-cache=false",)) as running:
        yield running


@pytest.fixture
async def api(plane: RealPlane) -> AsyncIterator[HttpApi]:
    async with HttpApi(kubeconfig.from_flags(str(plane.admin)), qps=-1) as made:
        yield made


@pytest.fixture
async def namespace(api: HttpApi) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "client-"}}
    name = (await api.create(NAMESPACES, "", body)).metadata.name
    await api.create(ACCOUNTS, name, account("default"))
    return name


def account(name: str) -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name))


def pod(name: str) -> NewPod:
    return NewPod(metadata=ObjectMeta(name=name, labels={"app": "x"}), spec=SPEC)


async def forget(plane: RealPlane, version: str) -> None:
    """Have etcd forget everything before a version."""
    connector = aiohttp.UnixConnector(str(plane.dir / "etcd.sock"))
    body = {"revision": version, "physical": True}
    async with aiohttp.ClientSession(connector=connector) as session:
        answer = await session.post("http://etcd/v3/kv/compaction", json=body)
        assert answer.status == 200


async def test_an_object_lives_its_life(api: HttpApi, namespace: str) -> None:
    made = await api.create(NEW_PODS, namespace, pod("a"))
    assert b'"image":"b"' in bytes(made.spec)
    with pytest.raises(AlreadyExists):
        await api.create(NEW_PODS, namespace, pod("a"))
    with pytest.raises(Invalid) as caught:
        await api.create(NEW_PODS, namespace, pod("Not_A_Name"))
    assert caught.value.causes[0].field == "metadata.name"

    merged = await api.patch(PODS, namespace, "a", {"metadata": {"labels": {"b": "1"}}})
    assert merged.metadata.labels == {"app": "x", "b": "1"}
    operations = [{"op": "remove", "path": "/metadata/labels/b"}]
    edited = await api.patch(PODS, namespace, "a", operations, content_type="application/json-patch+json")
    assert edited.metadata.labels == {"app": "x"}
    applied = await api.patch(
        PODS,
        namespace,
        "a",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"c": "2"}}},
        content_type="application/apply-patch+yaml",
        field_manager="test",
    )
    assert applied.metadata.labels == {"app": "x", "c": "2"}

    whole = await api.get(PODS.untyped, namespace, "a")
    whole["metadata"]["annotations"] = {"kept": "yes"}
    assert (await api.update(PODS, namespace, "a", whole)).metadata.annotations == {"kept": "yes"}
    with pytest.raises(Conflict):
        await api.update(PODS, namespace, "a", whole)
    fresh = await api.get(PODS.untyped, namespace, "a")
    fresh["status"]["phase"] = "Running"
    assert (await api.update_status(PODS, namespace, "a", fresh)).status.phase == "Running"

    with pytest.raises(Conflict):
        await api.delete(PODS, namespace, "a", uid="another")
    await api.delete(PODS, namespace, "a", uid=made.metadata.uid, grace=0)
    with pytest.raises(NotFound):
        await api.get(PODS, namespace, "a")


async def test_metadata_alone_comes_alone(api: HttpApi, namespace: str) -> None:
    done: list[Any] = []
    async with HttpApi(api.config, qps=-1, on_request=done.append) as counted:
        partial = PODS.as_(Object)
        made = await counted.create(partial, namespace, pod("a"))
        got = await counted.get(partial, namespace, "a")
        [listed] = (await counted.list(partial, namespace)).items
        whole = await counted.get(PODS, namespace, "a")
    assert made == got == listed
    assert got.metadata.labels == {"app": "x"}
    assert whole.metadata == got.metadata
    assert done[1].received < done[3].received


async def test_a_collection_goes_by_its_labels(api: HttpApi, namespace: str) -> None:
    for name in ("a", "b"):
        await api.create(NEW_PODS, namespace, pod(name))
    await api.patch(PODS, namespace, "b", {"metadata": {"labels": {"app": "y"}}})
    await api.delete_collection(PODS, namespace, label_selector="app=x")
    left = (await api.list(PODS, namespace)).items
    assert [item.metadata.name for item in left if item.metadata.deletionTimestamp is None] == ["b"]


async def test_what_is_there_is_streamed_first_and_changes_follow(api: HttpApi, namespace: str) -> None:
    await api.create(NEW_PODS, namespace, pod("a"))
    seen = []
    async with aclosing(api.watch(PODS, namespace, send_initial_events=True)) as watch:  # type: ignore[type-var]
        async for event in watch:
            seen.append((event.type, event.obj.metadata.name if event.obj else "", event.initial_end))
            if event.initial_end:
                await api.create(NEW_PODS, namespace, pod("b"))
            elif seen[-1][1] == "b":
                break
    assert seen == [
        (EventType.ADDED, "a", False),
        (EventType.BOOKMARK, "", True),
        (EventType.ADDED, "b", False),
    ]


async def test_a_watch_ends_when_the_server_says_so(api: HttpApi, namespace: str) -> None:
    version = (await api.list(PODS, namespace)).resource_version
    events = [e async for e in api.watch(PODS, namespace, resource_version=version, timeout_seconds=1)]
    assert all(event.type is EventType.BOOKMARK for event in events)


async def test_what_etcd_has_forgotten_has_expired(plane: RealPlane, api: HttpApi, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await api.create(ACCOUNTS, namespace, account(name))
    first = await api.list(ACCOUNTS, namespace, limit=2)
    assert first.continue_
    for value in ("y", "z"):
        await api.patch(ACCOUNTS, namespace, "a", {"metadata": {"labels": {"x": value}}})
    await forget(plane, (await api.list(ACCOUNTS, namespace)).resource_version)
    with pytest.raises(Expired):
        await api.list(ACCOUNTS, namespace, limit=2, continue_=first.continue_)
    with pytest.raises(Expired):
        await anext(api.watch(ACCOUNTS, namespace, resource_version=first.resource_version))


async def test_a_list_whose_token_expires_is_restarted_in_full(
    plane: RealPlane, api: HttpApi, namespace: str
) -> None:
    for name in ("a", "b", "c"):
        await api.create(ACCOUNTS, namespace, account(name))
    first = await list_page(api, ACCOUNTS, PageRequest(limit=2), namespace)
    await api.patch(ACCOUNTS, namespace, "a", {"metadata": {"labels": {"x": "y"}}})
    await forget(plane, (await api.list(ACCOUNTS, namespace)).resource_version)
    following = PageRequest(limit=2).following(first.continue_)
    with pytest.raises(Expired) as expired:
        await list_page(api, ACCOUNTS, following, namespace)
    restarted = following.restarted(expired.value)
    assert restarted is not None
    page = await list_page(api, ACCOUNTS, restarted, namespace)
    assert [item.metadata.name for item in page.items] == ["a", "b", "c", "default"]


async def test_a_service_account_acts_with_a_token_it_was_issued(api: HttpApi, namespace: str) -> None:
    async def issue() -> Token:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600},
        }
        status = (await api.subresource(ACCOUNTS, namespace, "default", "token", request))["status"]
        return Token(status["token"], datetime.fromisoformat(status["expirationTimestamp"]))

    async with api.acting_as(FetchedTokenAuth(issue), "test") as service:
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await service.list(PODS, namespace)
    async with api.acting_as(StaticAuth("Bearer nonsense"), "test") as nobody:
        with pytest.raises(Unauthorized):
            await nobody.list(PODS, namespace)


async def test_discovery_is_read_as_documents(api: HttpApi) -> None:
    groups = (await api.document("/apis"))["groups"]
    assert "apps" in [group["name"] for group in groups]
