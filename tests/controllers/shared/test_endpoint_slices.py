"""EndpointSlices as controllers compare, group and track them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.generated import discovery_v1
from steersman.api.kinds import ObjectMeta, ObjectReference
from steersman.api.kinds.services import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from steersman.api.scheme import Key
from steersman.controllers.shared.endpoint_slices import (
    MAX_TRACKED,
    SERVICE_NAME,
    SliceTracker,
    edited,
    identity,
    order_ports,
    ports_key,
    same_beyond_identity,
    service_key,
    slice_to_fill,
)

POD = ObjectReference(kind="Pod", namespace="default", name="pod0")
ONE = Endpoint(
    addresses=("10.0.0.1",),
    conditions=EndpointConditions(ready=True),
    targetRef=POD,
    nodeName="node-1",
    zone="zone-1",
)


def conditions(*values: bool | None) -> Endpoint:
    ready, serving, terminating = values
    return replace(ONE, conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(ONE, ONE, True, id="no change"),
        pytest.param(ONE, replace(ONE, nodeName="node-2"), False, id="node changed"),
        pytest.param(ONE, replace(ONE, nodeName=None), False, id="node removed"),
        pytest.param(ONE, replace(ONE, zone="zone-2"), False, id="zone changed"),
        pytest.param(ONE, conditions(False, None, None), False, id="ready changed"),
        pytest.param(ONE, conditions(True, True, False), False, id="serving set"),
        pytest.param(conditions(True, False, False), conditions(True, True, False), False, id="serving"),
        pytest.param(conditions(True, True, False), conditions(True, True, True), False, id="terminating"),
        pytest.param(ONE, replace(ONE, targetRef=replace(POD, name="pod1")), False, id="pod changed"),
        pytest.param(ONE, replace(ONE, targetRef=replace(POD, uid="other")), False, id="uid changed"),
        pytest.param(ONE, replace(ONE, targetRef=None), False, id="target removed"),
        pytest.param(
            replace(ONE, targetRef=replace(POD, resourceVersion="1")),
            replace(ONE, targetRef=replace(POD, resourceVersion="2")),
            True,
            id="pod's resourceVersion changed",
        ),
        pytest.param(
            replace(ONE, targetRef=replace(POD, resourceVersion="1")),
            ONE,
            True,
            id="pod's resourceVersion removed",
        ),
    ],
)
def test_endpoints_of_one_identity_are_compared_by_what_matters(
    one: Endpoint, other: Endpoint, expected: bool
) -> None:
    assert same_beyond_identity(one, other) == expected
    assert same_beyond_identity(other, one) == expected


def test_the_full_struct_of_an_endpoint_equals_its_view() -> None:
    full = discovery_v1.Endpoint(
        addresses=("10.0.0.1",),
        conditions=discovery_v1.EndpointConditions(ready=True),
        nodeName="node-1",
        zone="zone-1",
    )
    view = replace(ONE, targetRef=None)
    as_cached: Any = full
    assert identity(as_cached) == identity(view)
    assert same_beyond_identity(as_cached, view)


def test_the_order_of_addresses_is_no_part_of_an_identity() -> None:
    assert identity(replace(ONE, addresses=("b", "a"))) == identity(replace(ONE, addresses=("a", "b")))
    assert identity(replace(ONE, hostname="h")) != identity(ONE)
    assert identity(replace(ONE, targetRef=replace(POD, name="pod1"))) != identity(ONE)


def port(name: str | None, number: int | None = 80, **more: Any) -> EndpointPort:
    return EndpointPort(**{"name": name, "port": number, "protocol": "TCP", **more})


def test_the_order_of_ports_is_no_part_of_their_key() -> None:
    a, b, c = port("a"), port("b", 443), port("c", appProtocol="http")
    assert ports_key((a, b, c)) == ports_key((c, a, b)) == ports_key(order_ports((b, c, a)))
    assert ports_key(None) == ports_key(())
    assert (
        len({ports_key((one,)) for one in (a, b, c, port("a", 81), port(None), port("a", protocol="UDP"))})
        == 6
    )
    assert ports_key((a, a)) != ports_key((a,))


def slice_with(count: int, name: str = "") -> EndpointSlice:
    return EndpointSlice(metadata=ObjectMeta(name=name), endpoints=(ONE,) * count)


@pytest.mark.parametrize(
    ("lengths", "count", "limit", "expected"),
    [
        pytest.param([], 5, 10, None, id="no slice"),
        pytest.param([5], 5, 10, 0, id="just full"),
        pytest.param([6], 5, 10, None, id="too many"),
        pytest.param([2, 4, 3], 5, 10, 1, id="the fullest"),
        pytest.param([5, 5], 5, 10, 0, id="the first of equals"),
        pytest.param([0], 5, 10, 0, id="an empty one"),
        pytest.param([8, 7, 1], 5, 10, 2, id="the only one with room"),
    ],
)
def test_the_slice_that_becomes_fullest_is_filled(
    lengths: list[int], count: int, limit: int, expected: int | None
) -> None:
    slices = [slice_with(length, str(number)) for number, length in enumerate(lengths)]
    found = slice_to_fill(slices, count, limit)
    assert found is (None if expected is None else slices[expected])


@pytest.mark.parametrize(
    ("labels", "expected"), [({}, None), ({SERVICE_NAME: ""}, None), ({SERVICE_NAME: "s"}, "s")]
)
def test_a_slice_names_its_service_by_a_label(labels: dict[str, str], expected: str | None) -> None:
    slice = EndpointSlice(metadata=ObjectMeta(namespace="ns", labels=labels))
    assert service_key(slice) == (None if expected is None else Key("ns", expected))


def test_an_edited_slice_is_a_view_that_keeps_the_rest() -> None:
    full = discovery_v1.EndpointSlice(addressType="IPv6", ports=())
    as_cached: Any = full
    new = edited(as_cached, endpoints=[ONE], labels={"a": "b"})
    assert type(new) is EndpointSlice
    assert (new.addressType, new.endpoints, new.metadata.labels) == ("IPv6", (ONE,), {"a": "b"})


def written(generation: int, uid: str = "u") -> EndpointSlice:
    return EndpointSlice(metadata=ObjectMeta(uid=uid, generation=generation))


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        pytest.param(None, 1, False, id="never written"),
        pytest.param(2, 1, True, id="older than written"),
        pytest.param(2, 2, True, id="as written"),
        pytest.param(2, 3, False, id="changed by another client"),
    ],
)
def test_a_slice_is_looked_at_when_another_client_has_written_it(
    known: int | None, seen: int, expected: bool
) -> None:
    tracker = SliceTracker()
    tracker.wrote(written(7, "other"))
    if known is not None:
        tracker.wrote(written(known))
    assert tracker.is_own_write(written(seen)) == expected


def test_a_deletion_is_expected_once() -> None:
    tracker = SliceTracker()
    assert not tracker.was_deleted(written(1))
    tracker.wrote(written(1))
    assert not tracker.was_deleted(written(1))
    tracker.deleted(written(1))
    assert tracker.is_own_write(written(2))
    assert tracker.was_deleted(written(2))
    assert not tracker.was_deleted(written(2))
    assert len(tracker) == 0


def test_a_tracker_is_bounded() -> None:
    tracker = SliceTracker()
    for number in range(MAX_TRACKED + 1):
        tracker.wrote(written(1, str(number)))
    assert len(tracker) == MAX_TRACKED
    assert not tracker.is_own_write(written(1, "0"))
