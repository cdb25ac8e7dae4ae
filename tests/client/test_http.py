from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from steersman.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from steersman.api.kinds import (
    NAMESPACES,
    NEW_PODS,
    PODS,
    REPLICASETS,
    SERVICEACCOUNTS,
    NewPod,
    Object,
    ObjectMeta,
    Opaque,
)
from steersman.api.kinds.certificates import PODCERTIFICATEREQUESTS
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType, UndecodableObject
from steersman.client.auth import Credential, StaticAuth
from steersman.client.config import AuthInfo, ClientConfig, Impersonation
from steersman.client.http import HttpApi, SharedClientState
from steersman.client.round_trip import RequestAttempt

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "n", "resourceVersion": "5"},
}
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}

Make = Callable[..., HttpApi]


def test_it_is_an_api() -> None:
    api: Api = HttpApi(ClientConfig("http://x"))
    assert api is not None


# -- what is sent -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "body"),
    [
        (lambda api: api.get(PODS, "n", "a"), "GET", "/api/v1/namespaces/n/pods/a", {}, None),
        (lambda api: api.get(NAMESPACES, "", "n"), "GET", "/api/v1/namespaces/n", {}, None),
        (
            lambda api: api.get(REPLICASETS, "n", "system:a b"),
            "GET",
            "/apis/apps/v1/namespaces/n/replicasets/system:a b",
            {},
            None,
        ),
        (
            lambda api: api.update(PODS.untyped, "n", "a", POD),
            "PUT",
            "/api/v1/namespaces/n/pods/a",
            {},
            POD,
        ),
        (
            lambda api: api.update_status(REPLICASETS, "n", "a", {"status": {"replicas": 1}}),
            "PUT",
            "/apis/apps/v1/namespaces/n/replicasets/a/status",
            {},
            {"status": {"replicas": 1}},
        ),
        (
            lambda api: api.create(
                NEW_PODS, "n", NewPod(metadata=ObjectMeta(name="a"), spec=Opaque(b'{"containers":[]}'))
            ),
            "POST",
            "/api/v1/namespaces/n/pods",
            {},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}},
        ),
        (
            lambda api: api.patch(PODS, "n", "a", {"metadata": {"labels": {"x": None}}}),
            "PATCH",
            "/api/v1/namespaces/n/pods/a",
            {},
            {"metadata": {"labels": {"x": None}}},
        ),
        (
            lambda api: api.patch(PODS, "n", "a", POD, subresource="status", field_manager="me", force=True),
            "PATCH",
            "/api/v1/namespaces/n/pods/a/status",
            {"fieldManager": "me", "force": "true"},
            POD,
        ),
        (
            lambda api: api.patch(PODS, "n", "a", [{"op": "remove", "path": "/x"}]),
            "PATCH",
            "/api/v1/namespaces/n/pods/a",
            {},
            [{"op": "remove", "path": "/x"}],
        ),
        (
            lambda api: api.patch(PODS, "n", "a", Object(metadata=ObjectMeta(name="a"))),
            "PATCH",
            "/api/v1/namespaces/n/pods/a",
            {},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        ),
        (lambda api: api.delete(PODS, "n", "a"), "DELETE", "/api/v1/namespaces/n/pods/a", {}, None),
        (
            lambda api: api.delete(
                PODS, "n", "a", uid="u", resource_version="3", propagation="Foreground", grace=0
            ),
            "DELETE",
            "/api/v1/namespaces/n/pods/a",
            {},
            {
                **OPTIONS,
                "preconditions": {"uid": "u", "resourceVersion": "3"},
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
            },
        ),
        (
            lambda api: api.delete_collection(PODS, "n", label_selector="a=b", propagation="Background"),
            "DELETE",
            "/api/v1/namespaces/n/pods",
            {"labelSelector": "a=b"},
            {**OPTIONS, "propagationPolicy": "Background"},
        ),
        (
            lambda api: api.subresource(SERVICEACCOUNTS, "n", "a", "token", {"spec": {}}),
            "POST",
            "/api/v1/namespaces/n/serviceaccounts/a/token",
            {},
            {"spec": {}},
        ),
        (
            lambda api: api.subresource(REPLICASETS, "n", "a", "scale", verb="get"),
            "GET",
            "/apis/apps/v1/namespaces/n/replicasets/a/scale",
            {},
            None,
        ),
        (
            lambda api: api.subresource(REPLICASETS, "n", "a", "scale", {"x": 1}, verb="update"),
            "PUT",
            "/apis/apps/v1/namespaces/n/replicasets/a/scale",
            {},
            {"x": 1},
        ),
        (lambda api: api.document("/apis?x=y"), "GET", "/apis", {"x": "y"}, None),
    ],
)
async def test_each_verb_asks_for_what_it_means(
    api: HttpApi, server: Any, call: Any, method: str, path: str, query: dict[str, str], body: Any
) -> None:
    server.answer(POD)
    await call(api)
    [asked] = server.asked
    assert (asked.method, asked.path, asked.query) == (method, path, query)
    assert (asked.json if asked.body else None) == body


@pytest.mark.parametrize(
    ("call", "content_type"),
    [
        (lambda api: api.create(PODS.untyped, "n", POD), "application/json"),
        (lambda api: api.patch(PODS, "n", "a", {}), "application/merge-patch+json"),
        (
            lambda api: api.patch(PODS, "n", "a", POD, content_type="application/apply-patch+yaml"),
            "application/apply-patch+yaml",
        ),
    ],
)
async def test_a_body_says_what_it_is(api: HttpApi, server: Any, call: Any, content_type: str) -> None:
    server.answer(POD)
    await call(api)
    assert server.asked[0].headers["Content-Type"] == content_type


async def test_a_list_is_asked_for_with_all_its_options(api: HttpApi, server: Any) -> None:
    server.answer({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [POD]})
    page = await api.list(
        PODS,
        "n",
        label_selector="a=b",
        field_selector="spec.nodeName=x",
        limit=5,
        continue_="token",
        resource_version="3",
        resource_version_match="NotOlderThan",
    )
    assert server.asked[0].path == "/api/v1/namespaces/n/pods"
    assert server.asked[0].query == {
        "labelSelector": "a=b",
        "fieldSelector": "spec.nodeName=x",
        "limit": "5",
        "continue": "token",
        "resourceVersion": "3",
        "resourceVersionMatch": "NotOlderThan",
    }
    assert (page.resource_version, page.continue_, len(page.items)) == ("9", "more", 1)


async def test_a_list_without_options_has_none(api: HttpApi, server: Any) -> None:
    server.answer({"items": []})
    await api.list(PODS)
    assert (server.asked[0].path, server.asked[0].query) == ("/api/v1/pods", {})


WHOLE = "application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


@pytest.mark.parametrize(
    ("kind", "one", "many"),
    [
        (PODS, WHOLE, WHOLE),
        (PODS.untyped, WHOLE, WHOLE),
        (PODS.as_(Object), PARTIAL, PARTIALS),
        (PODCERTIFICATEREQUESTS, PARTIAL, PARTIALS),
    ],
)
async def test_a_type_of_nothing_but_metadata_is_asked_for_as_such(
    api: HttpApi, server: Any, kind: Kind[Any], one: str, many: str
) -> None:
    server.answer(POD)
    await api.get(kind, "n", "a")
    server.answer({"items": []})
    await api.list(kind)
    server.stream()
    async for _ in api.watch(kind):
        pass
    assert [asked.headers["Accept"] for asked in server.asked] == [one, many, one]


async def test_a_path_before_the_api_is_kept(server: Any, client: Make) -> None:
    async with client(config=ClientConfig(f"{server.url}/k8s/clusters/c-1")) as api:
        server.answer(POD)
        await api.get(PODS, "n", "a")
    assert server.asked[0].path == "/k8s/clusters/c-1/api/v1/namespaces/n/pods/a"


@pytest.mark.parametrize(
    "call",
    [
        lambda api: api.delete(PODS, "n", ""),
        lambda api: api.delete(PODS, "", "a"),
        lambda api: api.get(PODS, "n", "a/../../secrets/b"),
        lambda api: api.get(PODS, "n", ".."),
        lambda api: api.get(PODS, "n", "a%2fb"),
        lambda api: api.get(PODS, "../x", "a"),
        lambda api: api.create(PODS, "", POD),
        lambda api: api.delete_collection(PODS, ""),
        lambda api: api.list(PODS, "a/b"),
    ],
)
async def test_a_name_that_would_lead_elsewhere_is_never_sent(api: HttpApi, server: Any, call: Any) -> None:
    with pytest.raises(BadRequest):
        await call(api)
    assert server.asked == []


# -- who asks ---------------------------------------------------------------------------------


async def test_a_token_a_user_agent_and_the_one_to_act_as_go_with_every_request(
    server: Any, client: Make
) -> None:
    who = Impersonation("jane", "7", ("dev", "ops"), (("example.com/scopes", ("a", "b")),))
    config = ClientConfig(server.url, user=AuthInfo(token="secret"), impersonate=who, compression=False)
    async with client(config=config, user_agent="me/1") as api:
        server.answer(POD)
        await api.get(PODS, "n", "a")
    headers = server.asked[0].headers
    assert headers["Authorization"] == "Bearer secret"
    assert headers["User-Agent"] == "me/1"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["Impersonate-User"] == "jane"
    assert headers["Impersonate-Uid"] == "7"
    assert headers.getall("Impersonate-Group") == ["dev", "ops"]
    assert headers.getall("Impersonate-Extra-example.com%2Fscopes") == ["a", "b"]


async def test_a_derived_client_has_a_longer_user_agent_and_the_same_sockets(
    server: Any, client: Make
) -> None:
    async with client(user_agent="me/1") as api, api.with_user_agent("deployment-controller") as other:
        for each in (api, other):
            server.answer(POD)
            await each.get(PODS, "n", "a")
    assert [a.headers["User-Agent"] for a in server.asked] == ["me/1", "me/1/deployment-controller"]
    assert server.asked[0].socket == server.asked[1].socket


async def test_a_derived_client_outlives_the_one_it_came_from(server: Any, client: Make) -> None:
    api = client()
    other = api.with_user_agent("x")
    await api.close()
    server.answer(POD)
    assert (await other.get(PODS, "n", "a")).metadata.name == "a"
    await other.close()


async def test_each_client_has_a_rate_limit_of_its_own(server: Any, client: Make) -> None:
    async with client(qps=0.001, burst=1) as api, api.with_user_agent("x") as other:
        for each in (api, other):
            server.answer(POD)
            await each.get(PODS, "n", "a")
        waiting = asyncio.create_task(other.get(PODS, "n", "a"))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
    assert len(server.asked) == 2


async def test_a_client_for_another_identity_takes_nothing_of_ours_along(server: Any, client: Make) -> None:
    config = ClientConfig(server.url, user=AuthInfo(token="ours"), impersonate=Impersonation("jane"))
    async with client(config=config) as api, api.acting_as(StaticAuth("Bearer theirs"), "sa") as other:
        server.answer(POD)
        await other.get(PODS, "n", "a")
    assert server.asked[0].headers["Authorization"] == "Bearer theirs"
    assert "Impersonate-User" not in server.asked[0].headers


async def test_a_closed_client_says_so_and_may_be_closed_again(server: Any, client: Make) -> None:
    api = client()
    await api.close()
    await api.close()
    with pytest.raises(Unreachable, match="the client is closed"):
        await api.get(PODS, "n", "a")


class Renewing:
    """Tokens that are refused until renewed often enough."""

    def __init__(self) -> None:
        self.number = 0
        self.current = Credential("Bearer 0")

    async def credential(self) -> Credential:
        return self.current

    async def renew(self, refused: Credential) -> bool:
        self.number += 1
        self.current = Credential(f"Bearer {self.number}")
        return True


async def test_a_refused_credential_is_renewed_once_and_the_request_sent_again(
    server: Any, client: Make
) -> None:
    async with client(auth=Renewing()) as api:
        server.refuse(401, "Unauthorized")
        server.answer(POD, code=201)
        await api.create(PODS.untyped, "n", POD)
        server.refuse(401, "Unauthorized")
        server.refuse(401, "Unauthorized")
        with pytest.raises(Unauthorized):
            await api.get(PODS, "n", "a")
    tokens = [asked.headers["Authorization"] for asked in server.asked]
    assert tokens == ["Bearer 0", "Bearer 1", "Bearer 1", "Bearer 2"]
    assert [asked.json for asked in server.asked[:2]] == [POD, POD]


async def test_a_watch_renews_a_refused_credential_too(server: Any, client: Make) -> None:
    async with client(auth=Renewing()) as api:
        server.refuse(401, "Unauthorized")
        server.stream(json.dumps({"type": "ADDED", "object": POD}).encode())
        assert len([event async for event in api.watch(PODS)]) == 1


async def test_a_fixed_token_that_is_refused_is_not_sent_again(api: HttpApi, server: Any) -> None:
    server.refuse(401, "Unauthorized")
    with pytest.raises(Unauthorized):
        await api.get(PODS, "n", "a")
    assert len(server.asked) == 1


# -- what comes back --------------------------------------------------------------------------


async def test_compressed_answers_are_read(api: HttpApi, server: Any) -> None:
    server.answer(text=gzip.compress(json.dumps(POD).encode()), headers={"Content-Encoding": "gzip"})
    assert (await api.get(PODS, "n", "a")).metadata.name == "a"


async def test_an_odd_item_of_a_list_is_unreadable_on_its_own(api: HttpApi, server: Any) -> None:
    server.answer({"items": [POD, {**POD, "spec": 3}]})
    good, odd = (await api.list(PODS)).items
    assert not isinstance(good, UndecodableObject)
    assert isinstance(odd, UndecodableObject)


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServiceUnavailable),
    ],
)
async def test_a_refusal_is_raised_as_what_it_is(
    api: HttpApi, server: Any, code: int, reason: str, error: type[ApiError]
) -> None:
    server.refuse(
        code, reason, "because", details={"causes": [{"reason": "R", "message": "m", "field": "f"}]}
    )
    with pytest.raises(error, match="because") as caught:
        await api.get(PODS, "n", "a")
    assert type(caught.value) is error
    assert caught.value.reason == reason
    assert caught.value.caused_by("R")


@pytest.mark.parametrize(
    "text", [b"<html>secret</html>", b"", b"[1]", b'{"kind":"Secret","message":"secret"}']
)
async def test_an_answer_that_is_no_status_is_an_error_that_tells_nothing_of_its_text(
    api: HttpApi, server: Any, text: bytes
) -> None:
    server.answer(code=502, text=text)
    message = 'an error on the server ("unknown") has prevented the request from succeeding (get pods a)'
    with pytest.raises(ServerError, match=re.escape(message)) as caught:
        await api.get(PODS, "n", "a")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "text", "uncertain"),
    [
        (504, b'{"kind":"Status","code":504,"reason":"Timeout"}', True),
        (500, b'{"kind":"Status","code":500,"reason":"InternalError"}', False),
        (502, b"<html>", True),
        (413, b"<html>", False),
    ],
)
async def test_a_write_the_server_or_a_proxy_gave_up_on_is_uncertain(
    api: HttpApi, server: Any, code: int, text: bytes, uncertain: bool
) -> None:
    for _ in range(2):
        server.answer(code=code, text=text)
    with pytest.raises(ApiError) as caught:
        await api.create(PODS.untyped, "n", POD)
    assert caught.value.uncertain is uncertain
    with pytest.raises(ApiError) as caught:
        await api.get(PODS, "n", "a")
    assert not caught.value.uncertain


async def test_long_headers_are_read(api: HttpApi, server: Any) -> None:
    server.answer(POD, headers={"Warning": f'299 - "{"x" * 20_000}"'})
    assert (await api.get(PODS, "n", "a")).metadata.name == "a"


async def test_a_redirect_is_not_followed(api: HttpApi, server: Any) -> None:
    server.answer(code=302, headers={"Location": f"{server.url}/elsewhere"})
    with pytest.raises(ApiError, match="the server responded with the status code 302 "):
        await api.get(PODS, "n", "a")
    assert len(server.asked) == 1


async def test_a_write_whose_answer_cannot_be_read_is_uncertain(api: HttpApi, server: Any) -> None:
    server.answer({**POD, "spec": 3}, code=201)
    with pytest.raises(ApiError, match="cannot be decoded") as caught:
        await api.create(PODS, "n", POD)
    assert caught.value.uncertain


# -- sending again ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("call", ["get", "create"])
async def test_when_the_server_says_when_any_request_is_sent_again_then(
    api: HttpApi, server: Any, waits: list[float], code: int, call: str
) -> None:
    server.refuse(code, "Busy", headers={"Retry-After": "7"})
    server.answer(POD)
    await (api.get(PODS, "n", "a") if call == "get" else api.create(PODS.untyped, "n", POD))
    assert waits == [7.0]
    assert len(server.asked) == 2


async def test_it_is_sent_again_ten_times_at_most(api: HttpApi, server: Any, waits: list[float]) -> None:
    for _ in range(20):
        server.refuse(429, "TooManyRequests", headers={"Retry-After": "1"})
    with pytest.raises(TooManyRequests) as caught:
        await api.create(PODS.untyped, "n", POD)
    assert len(server.asked) == 11
    assert waits == [1.0] * 10
    assert caught.value.retry_after == 1.0


@pytest.mark.parametrize(
    ("code", "header"),
    [
        (429, None),
        (503, None),
        (503, "soon"),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT"),
        (404, "1"),
        (503, "3600"),
    ],
)
async def test_without_a_time_it_understands_or_for_a_long_one_the_caller_is_told(
    api: HttpApi, server: Any, waits: list[float], code: int, header: str | None
) -> None:
    server.refuse(code, "R", headers={"Retry-After": header} if header else None)
    with pytest.raises(ApiError):
        await api.get(PODS, "n", "a")
    assert len(server.asked) == 1
    assert waits == []


async def test_a_watch_is_opened_again_when_the_server_says_when(
    api: HttpApi, server: Any, waits: list[float]
) -> None:
    server.refuse(429, "TooManyRequests", headers={"Retry-After": "2"})
    server.stream()
    assert [event async for event in api.watch(PODS)] == []
    assert waits == [2.0]


# -- no answer --------------------------------------------------------------------------------


def hang_up(server: Any, times: int = 1, *, after: bytes = b"") -> None:
    """Break the connection once the request is in, perhaps after the beginning of an answer."""

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        if after:
            request.transport.write(after)
        request.transport.abort() if not after else request.transport.close()
        return web.Response()

    server.answers.extend([handler] * times)


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"])
async def test_a_read_whose_connection_breaks_is_sent_again(
    api: HttpApi, server: Any, waits: list[float], after: bytes
) -> None:
    hang_up(server, 3, after=after)
    server.answer(POD)
    assert (await api.get(PODS, "n", "a")).metadata.name == "a"
    assert waits == [0.0, 1.0, 1.0]


async def test_a_read_is_not_sent_again_for_ever(api: HttpApi, server: Any) -> None:
    hang_up(server, 20)
    with pytest.raises(Unreachable) as caught:
        await api.get(PODS, "n", "a")
    assert len(server.asked) == 11
    assert not caught.value.uncertain, "a read changes nothing"


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"])
@pytest.mark.parametrize(
    "write",
    [
        lambda api: api.create(PODS.untyped, "n", POD),
        lambda api: api.update(PODS.untyped, "n", "a", POD),
        lambda api: api.patch(PODS, "n", "a", {}),
        lambda api: api.delete(PODS, "n", "a"),
        lambda api: api.subresource(PODS, "n", "a", "eviction", {}),
    ],
)
async def test_a_write_whose_connection_breaks_is_sent_once_and_uncertain(
    api: HttpApi, server: Any, write: Any, after: bytes
) -> None:
    # A first request, so that the connection is one from the pool.
    server.answer(POD)
    await api.get(PODS, "n", "a")
    hang_up(server, 2, after=after)
    with pytest.raises(Unreachable) as caught:
        await write(api)
    assert caught.value.uncertain
    assert len(server.asked) == 2


async def test_where_nobody_listens_nothing_was_sent_and_the_line_names_the_server(
    unused_tcp_port_: int, client: Make
) -> None:
    async with client(config=ClientConfig(f"http://127.0.0.1:{unused_tcp_port_}")) as api:
        with pytest.raises(Unreachable) as caught:
            await api.create(PODS.untyped, "n", POD)
    assert caught.value.message == (f"http://127.0.0.1:{unused_tcp_port_}: create pods: connection refused")
    assert not caught.value.uncertain


@pytest.fixture
def unused_tcp_port_() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def test_a_host_that_does_not_exist_is_said_in_one_line(client: Make) -> None:
    async with client(config=ClientConfig("http://no-such-host.invalid")) as api:
        with pytest.raises(Unreachable, match="the host name cannot be resolved") as caught:
            await api.get(PODS, "n", "a")
    assert "\n" not in caught.value.message


async def test_an_answer_that_takes_too_long_is_given_up_and_a_write_is_uncertain(
    server: Any, client: Make
) -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.default = never
    async with client(timeout=0.01) as api:
        with pytest.raises(Unreachable, match="timed out waiting for the response") as caught:
            await api.create(PODS.untyped, "n", POD)
        assert caught.value.uncertain
        with pytest.raises(Unreachable, match="timed out waiting for the response") as caught:
            await api.get(PODS, "n", "a")
        assert not caught.value.uncertain


async def test_what_is_not_http_is_said_in_one_line(api: HttpApi, server: Any) -> None:
    hang_up(server, after=b"220 mail.example ESMTP\r\n\r\n")
    with pytest.raises(Unreachable) as caught:
        await api.get(PODS, "n", "a")
    assert "mail.example" not in caught.value.message


# -- what is counted --------------------------------------------------------------------------


async def test_every_attempt_is_reported(server: Any, client: Make) -> None:
    done: list[RequestAttempt] = []
    async with client(on_request=done.append) as api:
        server.refuse(429, "TooManyRequests", headers={"Retry-After": "1"})
        server.answer(POD, code=201)
        await api.create(PODS.untyped, "n", POD)
        hang_up(server)
        with pytest.raises(Unreachable):
            await api.delete(PODS, "n", "a")
        server.stream()
        async for _ in api.watch(REPLICASETS):
            pass
        server.answer(POD)
        await api.update_status(PODS.untyped, "n", "a", POD)
    assert [(d.verb, d.method, d.resource, d.code, d.attempt) for d in done] == [
        ("create", "POST", "pods", 429, 0),
        ("create", "POST", "pods", 201, 1),
        ("delete", "DELETE", "pods", 0, 0),
        ("watch", "GET", "replicasets.apps", 200, 0),
        ("update", "PUT", "pods/status", 200, 0),
    ]
    assert done[1].sent == len(json.dumps(POD, separators=(",", ":")))
    assert done[1].received == len(json.dumps(POD))
    assert all(d.seconds >= 0 for d in done)


# -- watches ----------------------------------------------------------------------------------


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


async def collect(watch: AsyncIterator[Any], into: list[Any]) -> None:
    async for event in watch:
        into.append(event)


BOOKMARK = {
    "kind": "Pod",
    "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}},
}


async def test_a_watch_asks_for_bookmarks_and_tells_events_in_order(api: HttpApi, server: Any) -> None:
    stream = line("ADDED", POD) + line("MODIFIED", POD) + line("BOOKMARK", BOOKMARK) + line("DELETED", POD)
    server.stream(stream[:10], stream[10:150], stream[150:])
    events = [event async for event in api.watch(PODS, "n", resource_version="3", timeout_seconds=300)]
    assert [event.type for event in events] == [
        EventType.ADDED,
        EventType.MODIFIED,
        EventType.BOOKMARK,
        EventType.DELETED,
    ]
    assert events[2].initial_end
    assert server.asked[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "3",
        "timeoutSeconds": "300",
    }


async def test_events_that_gather_in_the_socket_between_two_reads_all_arrive_in_order(
    api: HttpApi, server: Any
) -> None:
    slow = replace(PODS, read_interval=0.01)
    versions = [str(number) for number in range(1, 9)]
    pods = [{**POD, "metadata": {**POD["metadata"], "resourceVersion": version}} for version in versions]
    server.stream(*(line("MODIFIED", pod) for pod in pods))
    assert [event.resource_version async for event in api.watch(slow)] == versions


async def test_a_connection_that_breaks_between_two_reads_ends_the_watch(api: HttpApi, server: Any) -> None:
    server.stream(line("ADDED", POD), abort=True)
    assert len([event async for event in api.watch(replace(PODS, read_interval=0.01))]) <= 1


async def test_a_watch_can_ask_for_what_is_there_first(api: HttpApi, server: Any) -> None:
    server.stream(line("BOOKMARK", BOOKMARK))
    async for _ in api.watch(PODS, send_initial_events=True, label_selector="a=b", field_selector="c=d"):
        pass
    assert server.asked[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
    }


async def test_an_error_in_a_watch_is_raised(api: HttpApi, server: Any) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    server.stream(line("ADDED", POD) + line("ERROR", status))
    seen: list[Any] = []
    with pytest.raises(Expired, match="too old resource version"):
        await collect(api.watch(PODS), seen)
    assert len(seen) == 1


async def test_a_watch_that_is_refused_raises_the_refusal(api: HttpApi, server: Any) -> None:
    server.refuse(422, "Invalid", "sendInitialEvents is forbidden")
    with pytest.raises(Invalid, match="sendInitialEvents"):
        async for _ in api.watch(PODS, send_initial_events=True):
            pass


async def test_a_server_that_goes_away_ends_the_watch_and_half_an_event_is_dropped(
    api: HttpApi, server: Any
) -> None:
    server.stream(line("ADDED", POD), line("ADDED", POD)[:30], abort=True)
    assert len([event async for event in api.watch(PODS)]) <= 1


async def test_the_end_of_a_watch_in_the_middle_of_an_event_is_just_its_end(
    api: HttpApi, server: Any
) -> None:
    server.stream(line("ADDED", POD) + line("ADDED", POD)[:30])
    assert len([event async for event in api.watch(PODS)]) == 1


async def test_a_watch_whose_connection_breaks_before_it_is_open_is_opened_again(
    api: HttpApi, server: Any, waits: list[float]
) -> None:
    hang_up(server, 2)
    server.stream(line("ADDED", POD))
    assert len([event async for event in api.watch(PODS)]) == 1
    assert waits == [0.0, 1.0]


async def test_a_watch_that_nobody_answers_is_unreachable(unused_tcp_port_: int, client: Make) -> None:
    async with client(config=ClientConfig(f"http://127.0.0.1:{unused_tcp_port_}")) as api:
        with pytest.raises(Unreachable, match="watch pods: connection refused"):
            await anext(api.watch(PODS))


async def test_a_very_long_line_is_an_event_like_any_other(api: HttpApi, server: Any) -> None:
    large = {**POD, "metadata": {**POD["metadata"], "annotations": {"x": "y" * 3_000_000}}}
    server.stream(line("ADDED", large))
    [event] = [event async for event in api.watch(PODS)]
    assert len(event.obj.metadata.annotations["x"]) == 3_000_000


async def test_leaving_a_watch_closes_its_connection(api: HttpApi, server: Any) -> None:
    gone = server.stream(line("ADDED", POD), hold=True)
    async with aclosing(api.watch(PODS)) as watch:  # type: ignore[type-var]
        async for event in watch:
            assert event.type is EventType.ADDED
            break
    async with asyncio.timeout(5):
        await gone.wait()


async def test_cancelling_the_task_that_watches_closes_the_connection(api: HttpApi, server: Any) -> None:
    gone = server.stream(line("ADDED", POD), hold=True)
    seen = asyncio.Event()

    async def follow() -> None:
        async for _ in api.watch(PODS):
            seen.set()

    task = asyncio.create_task(follow())
    async with asyncio.timeout(5):
        await seen.wait()
        task.cancel()
        await gone.wait()
    assert task.cancelled() or await asyncio.gather(task, return_exceptions=True)


async def test_a_watch_that_the_server_does_not_end_is_cut(
    api: HttpApi, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the stream to begin on a busy machine.
    monkeypatch.setattr("steersman.client.round_trip.WATCH_GRACE", 0.5)
    gone = server.stream(line("ADDED", POD), hold=True)
    seen: list[Any] = []
    with pytest.raises(Unreachable, match="watch pods: the server did not end the watch within its timeout"):
        await asyncio.wait_for(collect(api.watch(PODS, timeout_seconds=0), seen), 10)
    assert len(seen) == 1
    async with asyncio.timeout(5):
        await gone.wait()


async def test_watches_take_no_tokens_of_the_rate_limit_and_no_sockets_of_requests(
    server: Any, client: Make
) -> None:
    async with client(qps=0.001, burst=1, shared=SharedClientState(connections=1)) as api:
        watches = []
        for _ in range(5):
            server.stream(line("ADDED", POD), hold=True)
            watch = api.watch(PODS)
            await asyncio.wait_for(anext(watch), 10)
            watches.append(watch)
        server.answer(POD)
        await api.get(PODS, "n", "a")
        for watch in watches:
            await watch.aclose()  # type: ignore[attr-defined]
    assert len(server.asked) == 6


async def test_closing_the_client_ends_its_watches(server: Any, client: Make) -> None:
    api = client()
    server.stream(line("ADDED", POD), hold=True)
    watch = api.watch(PODS)
    await anext(watch)
    rest = asyncio.create_task(asyncio.wait_for(anext(watch, None), 5))
    await asyncio.sleep(0)
    await api.close()
    assert await rest is None


async def test_requests_beyond_the_first_few_reuse_their_sockets(server: Any, client: Make) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(POD)

    server.default = answer
    async with client() as api:
        await asyncio.gather(*(api.get(PODS, "n", "a") for _ in range(200)))
    assert len(server.asked) == 200
    assert len({asked.socket for asked in server.asked}) <= 100
