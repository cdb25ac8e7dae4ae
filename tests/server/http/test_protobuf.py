"""Protobuf over HTTP: objects, lists, metadata, errors and watches for clients that ask for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from tests.harness.protobuf_reader import read_body, read_frames

PROTOBUF = "application/vnd.kubernetes.protobuf"
GO = {"Accept": f"{PROTOBUF},application/json"}
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRD = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


async def read(answer: aiohttp.ClientResponse) -> tuple[int, str, Any]:
    """The code, the kind and the document of an answer in protobuf."""
    assert answer.content_type == PROTOBUF, await answer.text()
    document = read_body(await answer.read())
    return answer.status, f"{document['apiVersion']} {document['kind']}", document


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_an_object_is_answered_in_protobuf_whatever_is_done_to_it(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="v"), headers=GO) as answer:
            code, kind, made = await read(answer)
            assert (code, kind, made["data"]) == (201, "v1 ConfigMap", {"k": "v"})
        async with session.get(f"{CONFIGMAPS}/a") as answer:
            in_json = await answer.json()
        assert made == in_json
        patch = {"Content-Type": "application/merge-patch+json", **GO}
        async with session.patch(f"{CONFIGMAPS}/a", data=b'{"data":{"k":"w"}}', headers=patch) as answer:
            assert (await read(answer))[2]["data"] == {"k": "w"}
        async with session.get(CONFIGMAPS, headers=GO) as answer:
            code, kind, made = await read(answer)
            assert (code, kind) == (200, "v1 ConfigMapList")
            assert "a" in [each["metadata"]["name"] for each in made["items"]]
        async with session.delete(f"{CONFIGMAPS}/a", headers=GO) as answer:
            code, kind, made = await read(answer)
            assert (kind, made["status"], made["details"]["name"]) == ("v1 Status", "Success", "a")


async def test_a_body_in_protobuf_can_be_what_was_answered(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="v"), headers=GO) as answer:
            body = await answer.read()
        async with session.put(
            f"{CONFIGMAPS}/a", data=body, headers={"Content-Type": PROTOBUF, **GO}
        ) as answer:
            assert (answer.status, await answer.read()) == (200, body)


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        (f"{CONFIGMAPS}/none", 404, "NotFound"),
        ("/api/v1/nothings", 404, "NotFound"),
        (f"{CONFIGMAPS}?labelSelector=a+in+b", 400, "BadRequest"),
    ],
)
async def test_an_error_is_a_status_in_protobuf(plane: Any, path: str, code: int, reason: str) -> None:
    async with plane.session() as session, session.get(path, headers=GO) as answer:
        answered, kind, status = await read(answer)
        assert (answered, kind, status["code"], status["reason"]) == (code, "v1 Status", code, reason)


async def test_a_refused_user_is_told_so_in_protobuf(plane: Any) -> None:
    async with plane.session("nobody-token") as session, session.get(CONFIGMAPS, headers=GO) as answer:
        assert (await read(answer))[0] == 403
    async with plane.session("wrong") as session, session.get(CONFIGMAPS, headers=GO) as answer:
        assert (await read(answer))[0] == 401


async def test_an_error_is_in_yaml_for_who_accepts_yaml_alone(plane: Any) -> None:
    async with (
        plane.session() as session,
        session.get(f"{CONFIGMAPS}/none", headers={"Accept": "application/yaml"}) as answer,
    ):
        assert (answer.status, answer.content_type) == (404, "application/yaml")
        assert "reason: NotFound" in await answer.text()


async def test_metadata_alone_is_in_protobuf_for_custom_resources_too(plane: Any) -> None:
    async with plane.session() as session:
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with session.post(crds, json=CRD, headers=GO) as answer:
            assert (await read(answer))[2]["spec"]["names"]["kind"] == "Widget"
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "labels": {"a": "b"}},
        }
        async with session.post(WIDGETS, json=widget, headers=GO) as answer:
            assert (answer.status, answer.content_type) == (201, "application/json")
        partial = {"Accept": PARTIAL}
        async with session.get(f"{WIDGETS}/w", headers=partial) as answer:
            code, kind, made = await read(answer)
            assert (code, kind, made["metadata"]["labels"]) == (
                200,
                "meta.k8s.io/v1 PartialObjectMetadata",
                {"a": "b"},
            )
        lists = {"Accept": PARTIAL.replace("Metadata;", "MetadataList;")}
        async with session.get(WIDGETS, headers=lists) as answer:
            code, kind, made = await read(answer)
            assert (kind, len(made["items"])) == ("meta.k8s.io/v1 PartialObjectMetadataList", 1)
        async with session.get(f"{WIDGETS}/w", headers={"Accept": PROTOBUF}) as answer:
            code, kind, made = await read(answer)
            assert (code, made["message"]) == (
                406,
                f"only the following media types are accepted: application/json, application/yaml, {PROTOBUF}",
            )


async def test_what_cannot_be_answered_is_not_created(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(
            CONFIGMAPS, json=configmap("a"), headers={"Accept": "application/json;as=Nothing;g=x;v=v1"}
        ) as answer:
            assert answer.status == 406
        async with session.get(f"{CONFIGMAPS}/a") as answer:
            assert answer.status == 404


async def frames(answer: aiohttp.ClientResponse, count: int) -> list[tuple[str, Mapping[str, Any]]]:
    found = []
    for _ in range(count):
        head = await answer.content.readexactly(4)
        frame = head + await answer.content.readexactly(int.from_bytes(head, "big"))
        found += [(event["type"], event["object"]) for event in read_frames(frame)]
    return found


INITIAL = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


async def test_a_watch_sends_frames_and_bookmarks(plane: Any) -> None:
    async with plane.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("a", k="v")) as answer:
            assert answer.status == 201
        only = "fieldSelector=metadata.name%3Da"
        async with session.get(f"{CONFIGMAPS}?{INITIAL}&{only}", headers=GO) as answer:
            assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
            (added, obj), (bookmark, marked) = await frames(answer, 2)
            assert (added, obj["data"], bookmark) == ("ADDED", {"k": "v"}, "BOOKMARK")
            assert marked["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            async with session.delete(f"{CONFIGMAPS}/a") as deleted:
                assert deleted.status == 200
            ((type_, last),) = await frames(answer, 1)
            assert (type_, last["data"]) == ("DELETED", {"k": "v"})
        async with session.get(f"{CONFIGMAPS}?{INITIAL}&{only}", headers={"Accept": PARTIAL}) as answer:
            ((type_, last),) = await frames(answer, 1)
            assert (type_, last["kind"]) == ("BOOKMARK", "PartialObjectMetadata")


async def test_an_expired_watch_sends_its_error_in_a_frame(plane: Any) -> None:
    plane.server.store.compacted = plane.server.store.revision
    for table in plane.server.store.tables():
        table.convert_objects(lambda obj: obj)
    async with (
        plane.session() as session,
        session.get(f"{CONFIGMAPS}?watch=1&resourceVersion=1", headers=GO) as answer,
    ):
        ((type_, status),) = await frames(answer, 1)
        assert (type_, status["kind"], status["code"]) == ("ERROR", "Status", 410)


async def test_discovery_and_reviews_are_in_protobuf_too(plane: Any) -> None:
    async with plane.session() as session:
        for path, kind in (
            ("/api", "APIVersions"),
            ("/apis", "APIGroupList"),
            ("/apis/apps", "APIGroup"),
            ("/apis/apps/v1", "APIResourceList"),
        ):
            async with session.get(path, headers=GO) as answer:
                assert (await read(answer))[1].split()[-1] == kind
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        async with session.post(path, json=review, headers=GO) as answer:
            code, _, made = await read(answer)
            assert (code, made["status"]["allowed"]) == (201, True)


def test_the_encoder_is_not_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys, steersman.server.http.app;"
        "assert 'steersman.server.codec.protobuf.encode' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
