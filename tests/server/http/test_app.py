"""The server at its socket, asked with plain requests."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from typing import Any

import pytest
import yaml

from steersman.api.errors import ServiceUnavailable
from steersman.api.go_yaml import MAX_NODES
from steersman.server.http import app
from steersman.server.http.request_body import LIMIT

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
YAML = "application/yaml"


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# -- who, and may they ------------------------------------------------------------------------


async def test_a_token_nobody_knows_is_refused(plane: Any) -> None:
    async with plane.session("wrong") as session, session.get("/api/v1/pods") as answer:
        assert answer.status == 401
        status = await answer.json()
        assert (status["message"], status["reason"], status["code"]) == ("Unauthorized", "Unauthorized", 401)


async def test_anybody_may_ask_for_health_and_version_and_nothing_else(plane: Any) -> None:
    async with plane.session("") as session:
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            async with session.get(path) as answer:
                assert answer.status == 200, path
        async with session.get("/api/v1/namespaces/default/pods") as answer:
            assert answer.status == 403
            assert (await answer.json())["message"] == (
                'pods is forbidden: User "system:anonymous" cannot list resource "pods" '
                'in API group "" in the namespace "default"'
            )
        async with session.get("/metrics") as answer:
            assert answer.status == 403
            assert 'cannot get path \\"/metrics\\"' in await answer.text()


async def test_roles_decide_as_soon_as_they_are_there(plane: Any) -> None:
    binding = {
        "metadata": {"name": "viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}],
    }
    async with plane.session() as admin, plane.session("viewer-token") as viewer:
        async with viewer.get(CONFIGMAPS) as answer:
            assert answer.status == 403
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        async with admin.post(path, json=binding) as answer:
            assert answer.status == 201
        async with viewer.get(CONFIGMAPS) as answer:
            assert answer.status == 200
        async with viewer.post(CONFIGMAPS, json=configmap("a")) as answer:
            assert answer.status == 403
        async with admin.delete(f"{path}/viewers") as answer:
            assert answer.status == 200
        async with viewer.get(CONFIGMAPS) as answer:
            assert answer.status == 403


async def test_nobody_grants_what_they_do_not_have(plane: Any) -> None:
    role = {
        "metadata": {"name": "granter"},
        "rules": [
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "patch"]}
        ],
    }
    binding = {
        "metadata": {"name": "granters"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "granter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    }
    base = "/apis/rbac.authorization.k8s.io/v1"
    wish = {
        "metadata": {"name": "w"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    async with plane.session() as admin, plane.session("nobody-token") as nobody:
        for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
            async with admin.post(f"{base}/{plural}", json=body) as answer:
                assert answer.status == 201
        async with nobody.post(f"{base}/namespaces/default/roles", json=wish) as answer:
            assert answer.status == 403
            assert "is attempting to grant RBAC permissions not currently held" in await answer.text()
        async with admin.post(f"{base}/namespaces/default/roles", json=wish) as answer:
            assert answer.status == 201


async def test_acting_as_somebody_else_must_be_allowed(plane: Any) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "devs"}
    async with plane.session() as admin, plane.session("nobody-token") as nobody:
        async with admin.post(path, json={}, headers=headers) as answer:
            assert answer.status == 201
            user = (await answer.json())["status"]["userInfo"]
            assert (user["username"], user["groups"]) == ("jane", ["devs", "system:authenticated"])
        async with nobody.post(path, json={}, headers=headers) as answer:
            assert answer.status == 403
            assert "cannot impersonate" in await answer.text()


async def test_a_token_of_a_service_account_is_minted_and_believed(plane: Any) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    async with plane.session() as admin:
        async with admin.post(accounts, json={"metadata": {"name": "robot"}}) as answer:
            assert answer.status == 201
        async with admin.post(f"{accounts}/robot/token", json={}) as answer:
            assert answer.status == 201
            token = (await answer.json())["status"]["token"]
    async with plane.session(token) as robot:
        async with robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}) as answer:
            user = (await answer.json())["status"]["userInfo"]
            assert user["username"] == "system:serviceaccount:default:robot"
        async with robot.get("/.well-known/openid-configuration") as answer:
            assert answer.status == 200
            assert (await answer.json())["jwks_uri"] == f"{plane.edge.url}/openid/v1/jwks"


# -- bodies -----------------------------------------------------------------------------------


async def test_a_dry_run_answers_and_writes_nothing(plane: Any) -> None:
    revision = plane.server.store.revision
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}}
    async with plane.session() as session:
        async with session.post("/api/v1/namespaces/default/resourcequotas?dryRun=All", json=quota) as answer:
            assert answer.status == 201
        async with session.post(f"{CONFIGMAPS}?dryRun=All", json=configmap("a")) as answer:
            made = await answer.json()
            assert answer.status == 201
            assert made["metadata"]["uid"]
            assert "resourceVersion" not in made["metadata"]
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        change = {"data": {"x": "y"}}
        merge = {"Content-Type": "application/merge-patch+json"}
        async with session.patch(f"{path}?dryRun=All", json=change, headers=merge) as answer:
            assert answer.status == 200
            assert (await answer.json())["data"]["x"] == "y"
        async with session.delete(f"{path}?dryRun=All") as answer:
            assert answer.status == 200
        async with session.delete("/api/v1/namespaces/kube-system/configmaps?dryRun=All") as answer:
            assert answer.status == 200
        async with session.get(path) as answer:
            assert "x" not in (await answer.json())["data"]
    assert plane.server.store.revision == revision


async def test_json_ends_with_a_newline_unless_it_is_for_people(plane: Any) -> None:
    """Clients print bodies, and some tests compare them: a real server writes them so."""
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    lines: tuple[tuple[str, dict[str, str]], ...] = (
        ("/api/v1/namespaces/default", {}),
        ("/api/v1/namespaces", {}),
        ("/api/v1/namespaces", {"Accept": TABLE}),
        ("/api/v1/namespaces/none", {}),
        ("/api/v1/pods/none", {}),
        ("/apis", {}),
        ("/apis", {"Accept": aggregated}),
        ("/apis/apps/v1", {}),
    )
    async with plane.session() as session:
        for path, headers in lines:
            async with session.get(path, headers=headers) as answer:
                assert (await answer.read()).endswith(b"}\n"), path
        for path in ("/api/v1/namespaces/default?pretty=1", "/version"):
            async with session.get(path) as answer:
                assert (await answer.read()).endswith(b"\n}"), path
    async with plane.session("nobody-token") as session, session.get("/api/v1/secrets") as answer:
        assert (answer.status, (await answer.read())[-2:]) == (403, b"}\n")


async def test_yaml_goes_in_and_out(plane: Any) -> None:
    headers = {"Content-Type": YAML, "Accept": YAML}
    text = "metadata:\n  name: a\n  creationTimestamp: null\ndata:\n  when: 2020-01-01\n"
    async with plane.session() as session, session.post(CONFIGMAPS, data=text, headers=headers) as answer:
        assert answer.status == 201
        assert answer.content_type == YAML
        assert yaml.safe_load(await answer.text())["data"] == {"when": "2020-01-01"}


async def test_a_body_beyond_the_limit_is_refused_however_it_comes(plane: Any) -> None:
    large = json.dumps(configmap("a", k="x" * LIMIT)).encode()

    async def chunks() -> Any:
        yield large[: LIMIT // 2]
        yield large[LIMIT // 2 :]

    async with plane.session() as session:
        for data in (large, chunks()):
            headers = {"Content-Type": "application/json", "Expect": "100-continue"}
            async with session.post(CONFIGMAPS, data=data, headers=headers) as answer:
                assert answer.status == 413
                status = await answer.json()
                assert status["reason"] == "RequestEntityTooLarge"
                assert status["message"] == "Request entity too large: limit is 3145728"


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"{bad", "application/json", 400),
        (b"", "application/json", 400),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "application/json", 400),
        (b"a: [" * 5000, YAML, 400),
        (b"a: &a [x, *a]\n", YAML, 400),
        (b'{"metadata": {"name": "a", "generation": %d}}' % (10**4000), "application/json", 400),
        (b'{"metadata": {"name": "a", "generation": ' + b"9" * 5000 + b"}}", "application/json", 400),
        (b'{"metadata": {"name": "a", "generation": 1e400}}', "application/json", 400),
        (b"metadata: {name: a, generation: " + b"9" * 5000 + b"}", YAML, 400),
        (b"- x\n" * (MAX_NODES + 1), YAML, 400),
        (b'{"metadata": {"name": "a"}, "data": {"k": 1}}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"{}", "application/cbor", 415),
        (b"k8s\x00", "application/vnd.kubernetes.protobuf", 400),
    ],
)
async def test_what_cannot_be_read_is_refused_with_a_status(
    plane: Any, body: bytes, content_type: str, code: int
) -> None:
    headers = {"Content-Type": content_type}
    async with plane.session() as session, session.post(CONFIGMAPS, data=body, headers=headers) as answer:
        assert answer.status == code
        status = await answer.json()
        assert (status["kind"], status["code"]) == ("Status", code)


async def test_who_writes_a_field_owns_it(plane: Any) -> None:
    agent = {"User-Agent": "tool/v1 (linux)"}
    apply = {"Content-Type": "application/apply-patch+yaml"}
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="v"), headers=agent) as answer:
            owners = (await answer.json())["metadata"]["managedFields"]
            assert [(each["manager"], each["operation"]) for each in owners] == [("tool", "Update")]
        path = f"{CONFIGMAPS}/a?fieldManager=me"
        async with session.patch(path, json=configmap("a", k="w"), headers=apply) as answer:
            assert answer.status == 409
            assert "conflict with" in await answer.text()
        async with session.patch(f"{path}&force=true", json=configmap("a", k="w"), headers=apply) as answer:
            assert answer.status == 200
            assert (await answer.json())["data"] == {"k": "w"}
        async with session.patch(
            f"{CONFIGMAPS}/b?fieldManager=me", json=configmap("b"), headers=apply
        ) as answer:
            assert answer.status == 201


async def test_unknown_fields_are_warned_of_or_refused(plane: Any) -> None:
    body = {**configmap("a"), "dota": {}}
    async with plane.session() as session:
        async with session.post(f"{CONFIGMAPS}?fieldValidation=Strict", json=body) as answer:
            assert answer.status == 400
            assert 'strict decoding error: unknown field \\"dota\\"' in await answer.text()
        async with session.post(CONFIGMAPS, json=body) as answer:
            assert answer.status == 201
            assert answer.headers.getall("Warning") == ['299 - "unknown field \\"dota\\""']


async def test_warnings_fit_into_the_head_of_a_response_however_many_there_are(plane: Any) -> None:
    body = configmap("a") | {f"unknown{each}": 0 for each in range(60_000)}
    async with plane.session() as session, session.post(CONFIGMAPS, json=body) as answer:
        assert answer.status == 201
        assert sum(map(len, answer.headers.getall("Warning"))) < 8192


async def test_a_malformed_chunk_is_a_bad_request(plane: Any, caplog: pytest.LogCaptureFixture) -> None:
    trusted = ssl.create_default_context(cadata=plane.boot.authority.pair.cert.decode())
    reader, writer = await asyncio.open_connection(plane.edge.host, plane.edge.port, ssl=trusted)
    head = f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\n".encode())
    assert (await reader.readline()).split()[1] == b"400"
    assert caplog.records == []
    writer.close()


# -- answers ----------------------------------------------------------------------------------


async def test_objects_come_as_tables_and_as_metadata_alone(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="v")) as answer:
            assert answer.status == 201
        async with session.get(CONFIGMAPS, headers={"Accept": TABLE}) as answer:
            table = await answer.json()
            assert table["kind"] == "Table"
            assert [row["cells"][:2] for row in table["rows"]] == [["a", 1]]
        async with session.get(f"{CONFIGMAPS}/a", headers={"Accept": PARTIAL}) as answer:
            partial = await answer.json()
            assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "a")
            assert "data" not in partial
        async with session.get(
            CONFIGMAPS, headers={"Accept": PARTIAL.replace("Metadata", "MetadataList")}
        ) as answer:
            assert (await answer.json())["kind"] == "PartialObjectMetadataList"
        async with session.get(CONFIGMAPS, headers={"Accept": "application/cbor"}) as answer:
            assert answer.status == 406


async def test_the_rows_of_a_table_carry_whole_objects_for_who_asks(plane: Any) -> None:
    async with plane.session() as session:
        body = {"metadata": {"name": "whole"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        async with session.post(leases, json=body) as made:
            stored = await made.json()
        async with session.get(f"{leases}?includeObject=Object", headers={"Accept": TABLE}) as shown:
            table = await shown.json()
        assert [row["object"] for row in table["rows"]] == [stored]
        assert stored["metadata"]["managedFields"]


async def test_large_answers_are_compressed_for_who_takes_that(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="x" * 200_000)) as answer:
            assert answer.status == 201
        plain = {"Accept-Encoding": "identity"}
        async with session.get(f"{CONFIGMAPS}/a", headers=plain) as answer:
            assert "Content-Encoding" not in answer.headers
            expected = await answer.read()
        async with session.request("GET", f"{CONFIGMAPS}/a", headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert int(answer.headers["Content-Length"]) < len(expected) / 10
            assert await answer.read() in (expected, gzip.compress(expected))


async def test_lists_come_in_pages(plane: Any) -> None:
    async with plane.session() as session:
        for name in "abc":
            async with session.post(CONFIGMAPS, json=configmap(name)) as answer:
                assert answer.status == 201
        found, token = [], ""
        while True:
            async with session.get(CONFIGMAPS, params={"limit": 2, "continue": token}) as answer:
                page = await answer.json()
                found += [item["metadata"]["name"] for item in page["items"]]
                token = page["metadata"].get("continue", "")
                if not token:
                    break
                assert page["metadata"]["remainingItemCount"] == 1
    assert found == ["a", "b", "c"]


async def test_discovery_is_kept_by_clients_until_it_changes(plane: Any) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    definition = {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}
                            },
                        }
                    },
                }
            ],
        },
    }
    async with plane.session() as session:
        async with session.get("/apis", headers={"Accept": aggregated}) as answer:
            etag = answer.headers["ETag"]
        headers = {"Accept": aggregated, "If-None-Match": etag}
        async with session.get("/apis", headers=headers) as answer:
            assert answer.status == 304
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with session.post(path, json=definition) as answer:
            assert answer.status == 201, await answer.text()
        async with session.get("/apis", headers=headers) as answer:
            assert answer.status == 200
            assert "gadgets" in await answer.text()
        gadget = {
            "apiVersion": "example.com/v1",
            "kind": "Gadget",
            "metadata": {"name": "g"},
            "spec": {"size": 1},
        }
        gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
        async with session.post(gadgets, json=gadget) as answer:
            assert answer.status == 201, await answer.text()
        async with session.get(gadgets) as answer:
            listed = await answer.json()
            assert (listed["kind"], listed["items"][0]["spec"]) == ("GadgetList", {"size": 1})
        async with session.get(f"{gadgets}/g", headers={"Accept": TABLE}) as answer:
            assert (await answer.json())["rows"][0]["cells"][0] == "g"
        async with session.get("/openapi/v3/apis/example.com/v1") as answer:
            assert answer.status == 200
        async with session.delete(f"{path}/gadgets.example.com") as answer:
            assert answer.status == 200
        async with session.get(gadgets) as answer:
            assert answer.status == 404


# -- the rest ---------------------------------------------------------------------------------


async def test_what_needs_a_kubelet_is_refused_politely(plane: Any) -> None:
    pods = "/api/v1/namespaces/default/pods"
    async with plane.session() as session:
        async with session.post(
            "/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": "default"}}
        ) as answer:
            assert answer.status == 201
        two = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
        for name, spec in (
            ("homeless", {"containers": two[:1]}),
            ("placed", {"containers": two[:1], "nodeName": "n"}),
            ("two", {"containers": two, "nodeName": "n"}),
        ):
            async with session.post(pods, json={"metadata": {"name": name}, "spec": spec}) as answer:
                assert answer.status == 201, await answer.text()
        async with session.get(f"{pods}/placed/log") as answer:
            assert (answer.status, (await answer.json())["message"]) == (404, 'pods "n" not found')
        status = {"addresses": [{"type": "InternalIP", "address": "10.1.2.3"}]}
        async with session.post(
            "/api/v1/nodes", json={"metadata": {"name": "n"}, "status": status}
        ) as answer:
            assert answer.status == 201, await answer.text()
        async with session.get(f"{pods}/homeless/log") as answer:
            assert (answer.status, await answer.text()) == (204, "")
        for path, code, said in (
            ("homeless/exec?command=ls", 400, "pod homeless does not have a host assigned"),
            ("two/log", 400, "a container name must be specified for pod two, choose one of: [c d]"),
            ("two/log?container=e", 400, "container e is not valid for pod two"),
            ("nobody/log", 404, 'pods "nobody" not found'),
            ("placed/log", 501, "there is no kubelet to ask"),
            (
                "placed/log?tailLines=-1",
                422,
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            ("placed/log?limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
            ("placed/log?sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
            ("placed/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of `sinceTime`"),
            ("placed/log?stream=Stdout", 422, "stream: Forbidden: may not be specified"),
            ("placed/log?tailLines=x", 400, 'parsing "x": invalid syntax'),
            ("two/log?container=d", 501, "there is no kubelet to ask"),
        ):
            async with session.get(f"{pods}/{path}") as answer:
                assert answer.status == code, path
                assert said in (await answer.json())["message"]


async def test_a_certificate_request_says_who_made_it_and_is_approved(plane: Any) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    import base64

    body = {
        "metadata": {"name": "jane"},
        "spec": {
            "request": base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
            "username": "somebody else",
        },
    }
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    async with plane.session() as session:
        async with session.post(path, json=body) as answer:
            made = await answer.json()
            assert answer.status == 201, made
            assert made["spec"]["username"] == "root"
        made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]}
        async with session.put(f"{path}/jane/approval", json=made) as answer:
            approved = await answer.json()
            assert answer.status == 200, approved
            assert approved["status"]["conditions"][0]["lastTransitionTime"]


async def test_numbers_tell_what_was_served(plane: Any) -> None:
    async with plane.session() as session:
        async with session.get(CONFIGMAPS) as answer:
            assert answer.status == 200
        async with session.get("/nowhere") as answer:
            assert answer.status == 404
            assert await answer.text() == "404 page not found\n"
        async with session.get("/metrics") as answer:
            text = await answer.text()
    assert (
        'apiserver_request_total{code="200",component="apiserver",group="",resource="configmaps",'
        'scope="namespace",subresource="",verb="LIST",version="v1"} 1' in text
    )
    assert 'apiserver_resource_objects{group="",resource="namespaces"} 4' in text


async def test_health_tells_each_check(plane: Any) -> None:
    path = "/readyz?verbose&exclude=ping&exclude=nope"
    async with plane.session("") as session, session.get(path) as answer:
        text = await answer.text()
        assert text.startswith("[+]ping excluded: ok\n")
        assert 'no matches for "nope"' in text
        assert text.endswith("readyz check passed\n")
    async with plane.session() as session:
        for path, code in (("/livez/ping", 200), ("/livez/nope", 404)):
            async with session.get(path) as answer:
                assert answer.status == code


async def test_an_edge_that_closes_does_not_wait_for_connections_nobody_uses(plane: Any) -> None:
    async with plane.session() as session:
        async with session.get("/version") as answer:
            await answer.read()
        assert plane.edge._http.connections, "the client keeps its connection for the next request"
        async with asyncio.timeout(app._GRACE / 2):
            await plane.edge.close()


async def test_a_server_whose_disk_has_failed_shows_nothing_writes_nothing_and_is_not_ready(
    plane: Any,
) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a")) as answer:
            assert answer.status == 201

        def full() -> None:
            raise ServiceUnavailable("the disk is full", reason="ServiceUnavailable")

        plane.server.store.write_gate = full
        before = plane.server.store.revision
        async with session.post(CONFIGMAPS, json=configmap("b")) as answer:
            assert answer.status == 503
            assert (await answer.json())["message"] == "the disk is full"
        async with session.delete(f"{CONFIGMAPS}/a") as answer:
            assert answer.status == 503
        for path in (f"{CONFIGMAPS}/a", CONFIGMAPS, f"{CONFIGMAPS}?watch=1"):
            async with session.get(path) as answer:
                assert answer.status == 503, path
        assert plane.server.store.revision == before
        for path, code, told in (
            ("/readyz", 500, "[-]store failed: reason withheld\n"),
            ("/livez", 500, "livez check failed\n"),
            ("/readyz/store", 500, "the disk is full"),
            ("/readyz/ping", 200, "ok"),
            ("/readyz?exclude=store", 200, "ok"),
            ("/version", 200, "gitVersion"),
        ):
            async with session.get(path) as answer:
                assert answer.status == code, path
                assert told in await answer.text()
        plane.server.store.write_gate = None
