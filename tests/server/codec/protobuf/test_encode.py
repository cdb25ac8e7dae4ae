"""Encoding as protobuf: the bytes that Kubernetes' own serializer writes, for every kind and every field."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated import load
from steersman.api.generated.core_v1 import ConfigMap, Secret
from steersman.api.generated.meta_v1 import ListMeta, ObjectMeta
from steersman.server.codec.convert import to_document, to_struct
from steersman.server.codec.protobuf import decode
from steersman.server.codec.protobuf.encode import (
    VARINTS,
    MessageCache,
    encode_list,
    encode_message,
    encode_metadata,
    envelope,
    message_name,
    watch_frame,
)
from steersman.server.codec.protobuf.wire import read_varint, to_signed
from tests.server.codec.protobuf.samples import full_document, kinds


def _recorded() -> dict[tuple[str, str, str], str]:
    text = (Path(__file__).parent / "encoded.txt").read_text()
    rows = (line.split(" ", 3) for line in text.splitlines() if not line.startswith("#"))
    return {(api_version, kind, form): encoded for api_version, kind, form, encoded in rows}


RECORDED = _recorded()
KINDS = tuple(dict.fromkeys(kinds()))


def encoded(document: dict[str, Any]) -> bytes:
    api_version, kind = document["apiVersion"], document["kind"]
    group, _, version = api_version.rpartition("/")
    return envelope(api_version, kind, encode_message(to_struct(load(group, version, kind).type, document)))


def shown(body: bytes, recorded: str) -> str:
    return f"{len(body)} {sha256(body).hexdigest()}" if " " in recorded else body.hex()


def test_every_kind_is_recorded_with_all_fields_and_with_none() -> None:
    assert set(RECORDED) == {(*row[:2], form) for row in KINDS for form in ("full", "empty")}


@pytest.mark.parametrize(("api_version", "kind", "message"), KINDS)
def test_an_object_is_encoded_as_kubernetes_encodes_it(api_version: str, kind: str, message: str) -> None:
    empty = {"apiVersion": api_version, "kind": kind}
    for form, document in (("full", full_document(api_version, kind, message)), ("empty", empty)):
        recorded = RECORDED[api_version, kind, form]
        assert shown(encoded(document), recorded) == recorded, form


@pytest.mark.parametrize(("api_version", "kind", "message"), KINDS)
def test_what_is_encoded_can_be_decoded(api_version: str, kind: str, message: str) -> None:
    group, _, version = api_version.rpartition("/")
    obj = to_struct(load(group, version, kind).type, full_document(api_version, kind, message))
    document = decode(envelope(api_version, kind, encode_message(obj)))
    assert to_document(api_version, kind, to_struct(type(obj), document)) == to_document(
        api_version, kind, obj
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_is_read_back(value: int) -> None:
    made = VARINTS[value]
    read, end = read_varint(memoryview(made), 0)
    assert (to_signed(read, 64), end) == (value, len(made))


@given(st.dictionaries(st.text(), st.text()))
def test_the_entries_of_a_map_are_in_the_order_of_their_keys(data: dict[str, str]) -> None:
    made = decode(envelope("v1", "ConfigMap", encode_message(to_struct(ConfigMap, {"data": data}))))
    assert list(made.get("data", {})) == sorted(data, key=str.encode)


def test_the_year_one_is_no_time_and_other_times_before_1970_are_negative() -> None:
    zero, old = "0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z"
    metas = [to_struct(ObjectMeta, {"creationTimestamp": text}) for text in (zero, old)]
    assert encode_metadata(metas[0]) == encode_metadata(ObjectMeta())
    decoded = decode(envelope("v1", "ConfigMap", encode_message(ConfigMap(metadata=metas[1]))))
    assert decoded["metadata"]["creationTimestamp"] == old


def test_a_list_has_its_metadata_and_the_messages_of_its_items() -> None:
    item = encode_message(Secret(metadata=ObjectMeta(name="a"), data={"k": "AA=="}, type="Opaque"))
    made = encode_list(ListMeta(resourceVersion="7", continue_="next", remainingItemCount=2), [item, item])
    assert made.hex() == ("0a0d0a001201371a046e6578742002" + f"12{len(item):02x}{item.hex()}" * 2)


def test_an_event_is_framed_by_its_length_in_four_bytes() -> None:
    body = envelope("v1", "Status", b"")
    assert watch_frame("ADDED", body).hex() == (f"000000230a054144444544121a0a{len(body):02x}{body.hex()}")


def test_a_message_is_encoded_once_for_each_object() -> None:
    cache, obj = MessageCache(max_entries=1), ConfigMap(metadata=ObjectMeta(name="a"))
    made = cache.get(obj)
    assert cache.get(obj) is made
    assert cache.get(ConfigMap(metadata=ObjectMeta(name="b"))) != made
    assert cache.get(obj) == made


def test_a_type_without_a_message_is_named() -> None:
    with pytest.raises(LookupError, match=r"builtins\.dict is no protobuf message"):
        message_name(dict)
