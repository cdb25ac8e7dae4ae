from __future__ import annotations

import json
import weakref
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import ApiError, Expired, ServerError
from steersman.api.kinds import DEPLOYMENTS, PODS, REPLICASETS, Object, Pod, ReplicaSet
from steersman.client.api import EventType, UndecodableObject
from steersman.client.decode import Decoder

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{"manager": "m"}],
    },
    "spec": {"nodeName": "node", "containers": [{"name": "c"}]},
    "status": {"phase": "Running"},
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**POD, **changes}


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


def dumps(obj: Any) -> bytes:
    return json.dumps(obj).encode()


@pytest.fixture
def decoder() -> Decoder:
    return Decoder()


def test_an_object_is_read_as_its_type(decoder: Decoder) -> None:
    pod = decoder.for_kind(PODS).decode_object(dumps(POD))
    assert isinstance(pod, Pod)
    assert pod.metadata.name == "a"
    assert pod.spec.nodeName == "node"


def test_an_untyped_kind_keeps_every_field(decoder: Decoder) -> None:
    assert decoder.for_kind(PODS.untyped).decode_object(dumps(POD)) == POD


@pytest.mark.parametrize(
    "changes",
    [
        {"status": None},
        {"spec": {"nodeName": None, "initContainers": None}},
        {"metadata": {**POD["metadata"], "labels": None, "ownerReferences": None}},
        {"status": {"phase": "Running", "conditions": [None, {"type": "Ready", "reason": None}]}},
    ],
)
def test_a_null_is_the_same_as_nothing_wherever_it_stands(decoder: Decoder, changes: Any) -> None:
    pod = decoder.for_kind(PODS).decode_object(dumps(changed(**changes)))
    assert pod.metadata.name == "a"
    assert pod.metadata.labels == {}


def test_an_answer_that_cannot_be_read_is_an_error_that_says_where(decoder: Decoder) -> None:
    with pytest.raises(ApiError, match=r"Expected `str`, got `int` - at `\$.spec.nodeName`") as caught:
        decoder.for_kind(PODS).decode_object(dumps(changed(spec={"nodeName": 3})), wrote=True)
    assert caught.value.uncertain


# -- lists ------------------------------------------------------------------------------------


def page(items: Any, **metadata: str) -> bytes:
    return dumps({"kind": "PodList", "metadata": {"resourceVersion": "9", **metadata}, "items": items})


async def test_a_page_has_its_items_its_version_and_where_it_goes_on(decoder: Decoder) -> None:
    got = await decoder.for_kind(PODS).decode_list(PODS, page([POD, POD], **{"continue": "token"}))
    assert [item.metadata.name for item in got.items] == ["a", "a"]
    assert (got.resource_version, got.continue_) == ("9", "token")


@pytest.mark.parametrize("items", [None, []])
async def test_an_empty_list_may_be_null(decoder: Decoder, items: Any) -> None:
    assert (await decoder.for_kind(PODS).decode_list(PODS, page(items))).items == []


async def test_an_odd_item_is_unreadable_on_its_own_and_keeps_its_metadata(decoder: Decoder) -> None:
    items = [POD, changed(spec={"nodeName": 3}), POD]
    first, odd, last = (await decoder.for_kind(PODS).decode_list(PODS, page(items))).items
    assert isinstance(first, Pod)
    assert isinstance(last, Pod)
    assert isinstance(odd, UndecodableObject)
    assert (odd.metadata.name, odd.metadata.uid) == ("a", "u")
    assert "spec.nodeName" in odd.error


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        (changed(metadata={"name": "b", "labels": 3}), "b"),
        (changed(metadata={"name": 3, "uid": "u"}), ""),
        (changed(metadata="nonsense"), ""),
        ("nonsense", ""),
        (None, ""),
        ([], ""),
        (3, ""),
    ],
)
async def test_however_odd_an_item_is_it_is_never_dropped_and_never_stops_the_others(
    decoder: Decoder, odd: Any, name: str
) -> None:
    items = (await decoder.for_kind(PODS).decode_list(PODS, page([odd, POD]))).items
    assert isinstance(items[0], UndecodableObject)
    assert items[0].metadata.name == name
    assert isinstance(items[1], Pod)


async def test_an_item_with_bad_utf8_is_unreadable(decoder: Decoder) -> None:
    body = page([POD, POD]).replace(b'"Running"', b'"Run\xffing"', 1)
    odd, good = (await decoder.for_kind(PODS).decode_list(PODS, body)).items
    assert isinstance(odd, UndecodableObject)
    assert isinstance(good, Pod)


async def test_plain_documents_of_a_list_get_the_kind_the_server_leaves_out(decoder: Decoder) -> None:
    bare = {key: value for key, value in POD.items() if key not in ("kind", "apiVersion")}
    got = await decoder.for_kind(REPLICASETS.untyped).decode_list(REPLICASETS.untyped, page([bare]))
    assert got.items[0]["kind"] == "ReplicaSet"
    assert got.items[0]["apiVersion"] == "apps/v1"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items": 3}'])
async def test_a_list_that_is_none_is_an_error(decoder: Decoder, body: bytes) -> None:
    with pytest.raises(ServerError, match="the list of pods cannot be decoded"):
        await decoder.for_kind(PODS).decode_list(PODS, body)


class Document(bytearray):
    """Bytes one can watch being forgotten."""


async def test_raw_parts_do_not_keep_the_document_they_came_in(decoder: Decoder) -> None:
    item = {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": []}}}}
    document = Document(page([item, {"metadata": {"name": "b"}}]))
    kept = weakref.ref(document)
    got = await decoder.for_kind(DEPLOYMENTS).decode_list(DEPLOYMENTS, document)  # type: ignore[arg-type]
    del document
    assert kept() is None
    assert bytes(got.items[0].spec.template.spec) == b'{"containers": []}'


# -- watches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_a_line_is_an_event_with_its_object_and_version(decoder: Decoder, type_: str) -> None:
    event = decoder.for_kind(PODS).decode_event(PODS, line(type_, POD))
    assert event.type is EventType[type_]
    assert isinstance(event.obj, Pod)
    assert event.resource_version == "7"
    assert not event.initial_end


@pytest.mark.parametrize("kind", [PODS, PODS.untyped, PODS.as_(Object), REPLICASETS])
@pytest.mark.parametrize(
    ("annotations", "ends"), [({}, False), ({"k8s.io/initial-events-end": "true"}, True)]
)
def test_a_bookmark_has_no_object_and_may_end_the_initial_events(
    decoder: Decoder, kind: Any, annotations: dict[str, str], ends: bool
) -> None:
    mark = {"kind": "Pod", "metadata": {"resourceVersion": "12", "annotations": annotations}}
    event = decoder.for_kind(kind).decode_event(kind, line("BOOKMARK", mark))
    assert event.type is EventType.BOOKMARK
    assert event.obj is None
    assert event.resource_version == "12"
    assert event.initial_end is ends


def test_a_bookmark_with_empty_parts_of_its_kind_is_still_one(decoder: Decoder) -> None:
    mark = {"metadata": {"resourceVersion": "12", "creationTimestamp": None}, "spec": {"containers": None}}
    event = decoder.for_kind(PODS).decode_event(PODS, line("BOOKMARK", {**mark, "status": None}))
    assert (event.type, event.resource_version) == (EventType.BOOKMARK, "12")


@pytest.mark.parametrize("kind", [PODS, PODS.untyped, PODS.as_(Object)])
def test_an_error_line_raises_the_error_it_carries(decoder: Decoder, kind: Any) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old", "status": "Failure"}
    with pytest.raises(Expired, match="too old"):
        decoder.for_kind(kind).decode_event(kind, line("ERROR", status))


def test_an_odd_object_in_a_watch_is_an_event_all_the_same(decoder: Decoder) -> None:
    event = decoder.for_kind(PODS).decode_event(PODS, line("MODIFIED", changed(spec={"nodeName": 3})))
    assert event.type is EventType.MODIFIED
    assert isinstance(event.obj, UndecodableObject)
    assert event.resource_version == "7"


def test_an_object_with_nulls_in_a_watch_is_read(decoder: Decoder) -> None:
    event = decoder.for_kind(PODS).decode_event(PODS, line("ADDED", changed(status=None)))
    assert isinstance(event.obj, Pod)
    assert event.resource_version == "7"


@pytest.mark.parametrize(
    "odd",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"WHAT","object":{}}',
        b'{"type":3,"object":{}}',
    ],
)
def test_a_line_that_is_no_event_is_an_error(decoder: Decoder, odd: bytes) -> None:
    with pytest.raises(ServerError, match="cannot be decoded") as caught:
        decoder.for_kind(PODS).decode_event(PODS, odd)
    assert caught.value.reason == "ClientWatchDecoding"


def test_a_plain_document_without_metadata_is_an_event_of_no_version(decoder: Decoder) -> None:
    event = decoder.for_kind(PODS.untyped).decode_event(PODS.untyped, line("ADDED", {"metadata": None}))
    assert event.resource_version == ""


def test_times_are_read_with_their_zone(decoder: Decoder) -> None:
    metadata = {**POD["metadata"], "creationTimestamp": "2026-01-02T03:04:05Z"}
    pod = decoder.for_kind(PODS).decode_object(dumps(changed(metadata=metadata)))
    assert pod.metadata.creationTimestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_field_the_server_always_writes_may_be_missing_with_its_parent(decoder: Decoder) -> None:
    assert (
        decoder.for_kind(REPLICASETS).decode_object(b'{"metadata":{"name":"a"}}').status
        == ReplicaSet().status
    )
