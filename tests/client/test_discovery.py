"""Discovery documents into what is served."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.discovery import ApiResource, FailedGroupVersion
from steersman.api.errors import ServerError, ServiceUnavailable
from steersman.api.partial_object import PartialObject
from steersman.client.api import EventType, UndecodableObject
from steersman.client.decode import Decoder
from steersman.client.discovery import ACCEPT, discover
from steersman.client.paths import accept_header

AGGREGATED = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": "pods",
                                "responseKind": {"group": "", "version": "", "kind": "Pod"},
                                "scope": "Namespaced",
                                "verbs": ["get", "list"],
                                "subresources": [{"subresource": "status", "verbs": ["get"]}],
                            },
                            {"resource": "parents", "scope": "Cluster", "verbs": []},
                        ],
                    }
                ],
            }
        ],
    },
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "example.com"},
                "versions": [
                    {
                        "version": "v2",
                        "resources": [
                            {
                                "resource": "things",
                                "responseKind": {"kind": "Thing"},
                                "scope": "Cluster",
                                "verbs": ["delete"],
                            }
                        ],
                    },
                    {"version": "v1", "freshness": "Stale", "resources": []},
                ],
            }
        ],
    },
}
LEGACY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list"]},
            {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
        ]
    },
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "example.com",
                "versions": [{"groupVersion": "example.com/v1"}, {"groupVersion": "example.com/v2"}],
                "preferredVersion": {"groupVersion": "example.com/v2"},
            },
            {"name": "odd", "versions": [{"groupVersion": "a/b/c"}]},
        ],
    },
    "/apis/example.com/v1": ServiceUnavailable("the server is away"),
    "/apis/example.com/v2": {
        "resources": [{"name": "things", "kind": "Thing", "namespaced": False, "verbs": ["delete"]}]
    },
}
PODS = ApiResource("", "v1", "Pod", "pods", True, ("get", "list"), ("status",))
THINGS = ApiResource("example.com", "v2", "Thing", "things", False, ("delete",))


class Documents:
    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.asked: list[str] = []

    async def __call__(self, path: str, *, accept: str = "") -> dict[str, Any]:
        self.asked.append(path)
        assert accept == (ACCEPT if path in ("/api", "/apis") else "application/json")
        answer = self.documents[path]
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found


async def test_the_aggregated_document_says_all_in_two_requests() -> None:
    documents = Documents(AGGREGATED)
    found = await discover(documents)
    assert found.resources == (PODS, THINGS)
    assert sorted(documents.asked) == ["/api", "/apis"]


async def test_a_version_that_is_stale_could_not_be_learned() -> None:
    found = await discover(Documents(AGGREGATED))
    assert found.failed == (
        FailedGroupVersion("example.com/v1", "stale GroupVersion discovery: example.com/v1"),
    )


async def test_a_server_without_aggregated_discovery_is_asked_for_each_version() -> None:
    found = await discover(Documents(LEGACY))
    assert found.resources == (PODS, THINGS)
    assert found.failed == (FailedGroupVersion("example.com/v1", "the server is away"),)
    assert found.malformed == ("a/b/c",)


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_a_server_that_does_not_say_what_it_serves_is_a_failure_and_not_an_empty_server(
    path: str,
) -> None:
    with pytest.raises(ServiceUnavailable):
        await discover(Documents({**AGGREGATED, path: ServiceUnavailable("away")}))


async def test_a_document_of_another_kind_is_a_failure() -> None:
    with pytest.raises(ServerError, match="not a discovery document"):
        await discover(Documents({**LEGACY, "/apis": {"kind": "Status"}}))


# -- metadata alone -----------------------------------------------------------------------------------


def test_the_server_is_asked_for_no_more_than_the_metadata() -> None:
    assert accept_header(PODS.partial).startswith(
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )
    assert "PartialObjectMetadataList" in accept_header(PODS.partial, many=True)


def line(type_: str, **metadata: Any) -> bytes:
    return msgspec.json.encode(
        {"type": type_, "object": {"kind": "PartialObjectMetadata", "metadata": metadata}}
    )


def test_of_the_metadata_only_the_identity_is_kept() -> None:
    reader = Decoder().for_kind(PODS.partial)
    event = reader.decode_event(
        PODS.partial, line("ADDED", name="a", uid="u", labels={"x": "y"}, finalizers=["f"])
    )
    assert isinstance(event.obj, PartialObject)
    assert event.obj.metadata.finalizers == ("f",)
    assert not hasattr(event.obj.metadata, "labels")


def test_the_end_of_the_initial_events_is_heard_by_who_keeps_no_annotations() -> None:
    reader = Decoder().for_kind(PODS.partial)
    marks = {"annotations": {"k8s.io/initial-events-end": "true"}}
    event = reader.decode_event(PODS.partial, line("BOOKMARK", resourceVersion="9", **marks))
    assert (event.type, event.resource_version, event.initial_end) == (EventType.BOOKMARK, "9", True)
    assert not reader.decode_event(PODS.partial, line("BOOKMARK", resourceVersion="9")).initial_end


def test_an_object_with_odd_metadata_is_still_there() -> None:
    reader = Decoder().for_kind(PODS.partial)
    event = reader.decode_event(PODS.partial, line("ADDED", name="a", finalizers=7))
    assert isinstance(event.obj, UndecodableObject)
    assert event.obj.metadata.name == "a"
