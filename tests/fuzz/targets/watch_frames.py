"""Watch streams in the client: the same events however the network cuts them, and no exception but `ApiError`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from steersman.api.errors import ApiError, to_status
from steersman.api.kinds import PODS
from steersman.api.scheme import Kind, encode_hook
from steersman.client.api import UndecodableObject, WatchEvent
from steersman.client.decode import Decoder
from steersman.client.watch import LineSplitter, watch_events
from tests.fuzz.event_loop import run
from tests.fuzz.target import Target
from tests.fuzz.targets.http_body import cuts

KINDS: tuple[Kind[Any], ...] = (PODS, PODS.untyped)
DECODER = Decoder()
EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


class Stream(NamedTuple):
    """What a reader of a watch sees."""

    events: tuple[tuple[str, str, bool, bytes], ...]
    error: bytes
    """The Status that ended the stream; empty for one that the server just ended."""


def shown(event: WatchEvent[Any]) -> tuple[str, str, bool, bytes]:
    obj = event.obj.metadata if isinstance(event.obj, UndecodableObject) else event.obj
    return (
        event.type.value,
        event.resource_version,
        event.initial_end,
        msgspec.json.encode(obj, enc_hook=encode_hook),
    )


async def read(kind: Kind[Any], packets: Sequence[bytes]) -> Stream:
    # The end of a stream is an empty read.
    waiting = iter([packet for packet in packets if packet])

    async def chunk() -> bytes:
        return next(waiting, b"")

    decoder = DECODER.for_kind(kind)
    events = []
    try:
        async for event in watch_events(chunk, lambda line: decoder.decode_event(kind, line)):
            events.append(shown(event))
    except ApiError as error:
        return Stream(tuple(events), msgspec.json.encode(to_status(error)))
    return Stream(tuple(events), b"")


def check_lines(data: bytes) -> None:
    for packets in cuts(data):
        splitter = LineSplitter()
        lines = [line for packet in packets for line in splitter.feed(packet)]
        assert [*lines, splitter.remainder()] == data.split(b"\n")


async def check_events(data: bytes) -> None:
    for kind in KINDS:
        found = {await read(kind, packets) for packets in cuts(data)}
        assert len(found) == 1, "packets make a difference"
        for line, (type_, version, _, _) in zip(
            filter(None, data.split(b"\n")), found.pop().events, strict=False
        ):
            document = json.loads(line.decode("utf-8", "replace"), parse_int=float)
            assert type_ == document["type"]
            assert type_ in EVENTS
            metadata = document["object"].get("metadata")
            sent = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
            assert version == (sent if isinstance(sent, str) else ""), "another resourceVersion"


def check(data: bytes) -> None:
    check_lines(data)
    run(check_events(data))


METADATA = st.sampled_from(
    [
        b'{"name":"a","namespace":"b","uid":"c","resourceVersion":"7"}', b'{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}',
        b'{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":1}}', b'{"resourceVersion":7}', b'{"resourceVersion":null,"labels":null}',
        b'{"resourceVersion":"9","annotations":[]}', b"null", b"[]", b'"a"', b'{"name":"\\ud800","resourceVersion":"1"}', b'{"labels":{"a":1},"resourceVersion":"1"}',
        b'{"deletionTimestamp":"x","resourceVersion":"1"}', b'{"ownerReferences":[null],"resourceVersion":"1"}', b'{"a":' + b"[" * 1500 + b"]" * 1500 + b"}",
    ]
)  # fmt: skip
STATUS = st.sampled_from(
    [
        b'{"kind":"Status","code":410,"reason":"Expired","message":"old"}', b"{}", b'{"code":"410"}', b'{"code":true}', b'{"code":-1}', b'{"code":1e3}',
        b'{"code":' + b"9" * 400 + b"}", b'{"details":{"retryAfterSeconds":' + b"9" * 400 + b"}}", b'{"details":{"retryAfterSeconds":1e999}}',
        b'{"details":{"causes":[{"reason":[],"field":null},null]}}', b'{"details":[]}', b'{"message":7,"reason":7}', b"null", b"[]",
        b'{"details":{"retryAfterSeconds":-1,"causes":{}}}',
    ]
)  # fmt: skip
OBJECTS = METADATA.map(
    lambda metadata: (
        b'{"metadata":' + metadata + b',"spec":{"nodeName":"n","x":null},"status":{"phase":"Running"}}'
    )
)
LINES = st.one_of(
    st.tuples(
        st.sampled_from([b'"ADDED"', b'"MODIFIED"', b'"DELETED"', b'"BOOKMARK"', b'"OTHER"', b"7", b"null"]),
        OBJECTS,
    ),
    st.tuples(st.just(b'"ERROR"'), STATUS),
    st.tuples(st.just(b'"ADDED"'), STATUS),
).map(lambda pair: b'{"type":%b,"object":%b}' % pair)
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"spec":{"containers":[{"name":"c"}]}}'

TARGET = Target(
    name="watch_frames",
    check=check,
    seeds=(
        b'{"type":"ADDED","object":%b}\n{"type":"MODIFIED","object":%b}\n' % (POD, POD),
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}\n',
        b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","details":{"retryAfterSeconds":1}}}\n',
        b'\n{"type":"DELETED","object":{"metadata":{"resourceVersion":"9"},"spec":null}}',
    ),
    strategy=st.lists(LINES, min_size=1, max_size=3).map(b"\n".join),
    dictionary=(
        b'"type":', b'"object":', b'"ADDED"', b'"ERROR"', b'"BOOKMARK"', b'"metadata":', b'"resourceVersion":', b'"annotations":', b'"labels":',
        b'"code":', b'"details":', b'"retryAfterSeconds":', b'"causes":[', b"null", b"{}", b"[]", b"\n", b"\r\n", b"{", b"}", b",", b"\\ud800", b"\xff", b"1e999",
        b"9" * 400,
    ),
    max_bytes=8192,
    seconds_per_byte=400e-6,  # every byte is a packet of its own, for two kinds
)  # fmt: skip
