"""Devices for claims: rows of what is asked for and what there is. Most are those of kube-scheduler's allocator."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated import resource_v1 as v1
from steersman.sim.dynamicresources.allocator import (
    AllocationError,
    DeviceId,
    allocate,
    allocated_devices,
    gather_pools,
)
from tests.harness.devices import (
    DRIVER,
    alternative,
    claim,
    device,
    device_class,
    everything,
    exactly,
    first,
    node,
    slice_of,
)

LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("16Gi")) >= 0'
SMALL = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("16Gi")) < 0'
MODEL = f"{DRIVER}/model"
BAD = f'device.attributes["{DRIVER}"].nothing == 1'
TWO = slice_of(
    "node-1", device("small", "8Gi", model="a", index=0), device("large", "32Gi", model="b", index=1)
)
MATCH = {"matchAttribute": MODEL}
PAIRS = slice_of(
    "node-1",
    device("one", model="a", index=0),
    device("two", model="b", index=1),
    device("three", model="b", index=2),
    device("four", index=3),
)
BROKEN = "broken=yes:NoSchedule"
TOLERATED = {"tolerations": [{"key": "broken", "operator": "Exists"}]}


def allocated(
    claims: list[v1.ResourceClaim],
    *slices: v1.ResourceSlice,
    in_use: tuple[str, ...] = (),
    classes: tuple[v1.DeviceClass, ...] = (device_class(),),
) -> list[str] | None:
    """The devices of each claim, as ``claim request device``; None where there is no solution."""
    ids = {DeviceId(DRIVER, "node-1", name) for name in in_use}
    known = {each.metadata.name: each for each in classes}
    found = allocate(claims, node(), slices, known.get, ids)
    if found is None:
        return None
    return [
        f"{one.metadata.name} {result.request} {result.device}"
        for one, allocation in zip(claims, found, strict=True)
        for result in allocation.devices.results
    ]


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([exactly()], ["small"]),
        ([exactly("r", 2)], ["small", "large"]),
        ([exactly("r", 3)], None),
        ([exactly("r", 1, LARGE)], ["large"]),
        ([exactly("r", 1, SMALL, LARGE)], None),
        ([exactly("a", 1, SMALL), exactly("b", 1, LARGE)], ["small", "large"]),
        # The first request gives back what only the second can use.
        ([exactly("a"), exactly("b", 1, SMALL)], ["large", "small"]),
        ([exactly("a"), exactly("b"), exactly("c")], None),
        ([everything()], ["small", "large"]),
        ([everything("r", LARGE)], ["large"]),
        ([everything("r", 'device.driver == "other"')], None),
        ([everything("a", SMALL), exactly("b")], ["small", "large"]),
        ([exactly("a"), everything("b", SMALL)], ["large", "small"]),
        ([everything("a"), exactly("b")], None),
        ([exactly("a"), everything("b")], None),
        ([first("r", alternative("x", 3), alternative("y", 2))], ["small", "large"]),
        ([first("r", alternative("x", 3), alternative("y", 4))], None),
        ([first("r", alternative("x", 1, LARGE), alternative("y", 1, SMALL))], ["large"]),
        ([first("r", alternative("x", 0, allocationMode="All"), alternative("y"))], ["small", "large"]),
        # The first alternative works alone, but not together with the next request.
        ([first("a", alternative("x", 2), alternative("y")), exactly("b")], ["small", "large"]),
        (
            [first("a", alternative("x"), alternative("y", 1, LARGE)), exactly("b", 1, SMALL)],
            ["large", "small"],
        ),
    ],
)
def test_requests_get_the_first_devices_that_suffice(
    requests: list[dict[str, Any]], devices: list[str] | None
) -> None:
    found = allocated([claim("c", *requests)], TWO)
    assert (found and [line.split()[-1] for line in found]) == devices


@pytest.mark.parametrize(
    ("requests", "names"),
    [
        ([exactly("r")], ["r"]),
        ([first("r", alternative("x", 3), alternative("y", 2))], ["r/y", "r/y"]),
        ([first("a", alternative("x", 2), alternative("y")), exactly("b")], ["a/y", "b"]),
    ],
)
def test_a_result_names_its_request_and_alternative(requests: list[dict[str, Any]], names: list[str]) -> None:
    found = allocated([claim("c", *requests)], TWO)
    assert found is not None
    assert [line.split()[1] for line in found] == names


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([], []),
        ([claim("c")], []),
        ([claim("c", exactly()), claim("d", exactly())], ["c r small", "d r large"]),
        ([claim("c", exactly()), claim("d", exactly("r", 1, SMALL))], ["c r large", "d r small"]),
        ([claim("c", exactly("r", 2)), claim("d", exactly())], None),
        # Admin access uses devices that others have, but each device once in a claim.
        (
            [claim("c", exactly("r", 2, adminAccess=True)), claim("d", exactly())],
            ["c r small", "c r large", "d r small"],
        ),
        ([claim("c", exactly("r", 3, adminAccess=True))], None),
    ],
)
def test_the_claims_of_a_pod_do_not_share_devices(
    claims: list[v1.ResourceClaim], expected: list[str] | None
) -> None:
    assert allocated(claims, TWO) == expected


@pytest.mark.parametrize(
    ("request_", "in_use", "expected"),
    [
        (exactly(), ("small",), ["c r large"]),
        (exactly(), ("small", "large"), None),
        (exactly("r", 1, SMALL), ("small",), None),
        (everything(), ("small",), None),
        (everything("r", adminAccess=True), ("small",), ["c r small", "c r large"]),
        (exactly("r", 2, adminAccess=True), ("small", "large"), ["c r small", "c r large"]),
        (
            first("r", alternative("x", 0, allocationMode="All"), alternative("y")),
            ("small",),
            ["c r/y large"],
        ),
    ],
)
def test_devices_in_use_are_left_to_their_users(
    request_: dict[str, Any], in_use: tuple[str, ...], expected: list[str] | None
) -> None:
    assert allocated([claim("c", request_)], TWO, in_use=in_use) == expected


@pytest.mark.parametrize(
    ("constraints", "requests", "expected"),
    [
        ([MATCH], [exactly("r", 2)], ["two", "three"]),
        ([MATCH], [exactly("a"), exactly("b")], ["two", "three"]),
        ([MATCH], [exactly("r", 3)], None),
        ([{**MATCH, "requests": ["b"]}], [exactly("a"), exactly("b", 2)], ["one", "two", "three"]),
        ([{"matchAttribute": f"{DRIVER}/nothing"}], [exactly()], None),
        ([{"matchAttribute": "other.example.com/model"}], [exactly()], None),
        ([{"matchAttribute": f"{DRIVER}/index"}], [exactly("r", 2)], None),
        ([MATCH], [everything()], None),
        (
            [{**MATCH, "requests": ["a"]}],
            [first("a", alternative("x", 3), alternative("y", 2))],
            ["two", "three"],
        ),
        # A constraint may be on one of the alternatives alone.
        (
            [{**MATCH, "requests": ["a/y"]}],
            [first("a", alternative("x", 3), alternative("y", 2))],
            ["one", "two", "three"],
        ),
        ([{"distinctAttribute": MODEL}], [exactly("r", 2)], ["one", "two"]),
        ([{"distinctAttribute": MODEL}], [exactly("r", 3)], None),
        ([{"distinctAttribute": f"{DRIVER}/index"}], [exactly("r", 4)], ["one", "two", "three", "four"]),
    ],
)
def test_constraints_hold_for_all_devices_of_their_requests(
    constraints: list[dict[str, Any]], requests: list[dict[str, Any]], expected: list[str] | None
) -> None:
    found = allocated([claim("c", *requests, constraints=constraints)], PAIRS)
    assert (found and [line.split()[-1] for line in found]) == expected


@pytest.mark.parametrize(
    ("request_", "devices", "expected"),
    [
        (exactly(), [device("a", taints=(BROKEN,)), device("b")], ["c r b"]),
        (exactly(), [device("a", taints=("broken=yes:NoExecute",))], None),
        (exactly(), [device("a", taints=("broken=yes:None",))], ["c r a"]),
        (exactly("r", 1, **TOLERATED), [device("a", taints=(BROKEN,))], ["c r a"]),
        (exactly("r", 1, **TOLERATED), [device("a", taints=(BROKEN, "old=x:NoSchedule"))], None),
        (exactly("r", 1, adminAccess=True), [device("a", taints=(BROKEN,))], None),
        (everything(), [device("a"), device("b", taints=(BROKEN,))], None),
        (
            first("r", alternative("x"), alternative("y", 1, **TOLERATED)),
            [device("a", taints=(BROKEN,))],
            ["c r/y a"],
        ),
    ],
)
def test_a_tainted_device_needs_a_toleration(
    request_: dict[str, Any], devices: list[dict[str, Any]], expected: list[str] | None
) -> None:
    assert allocated([claim("c", request_)], slice_of("node-1", *devices)) == expected


ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


@pytest.mark.parametrize(
    ("slices", "count", "expected"),
    [
        ([], 1, None),
        ([slice_of("node-1")], 1, None),
        ([slice_of("node-2", "a", node="node-2")], 1, None),
        ([slice_of("net", "a", node="", allNodes=True)], 1, ["a"]),
        ([slice_of("net", "a", node="", nodeSelector=ZONE)], 1, ["a"]),
        (
            [
                slice_of(
                    "net",
                    {**device("a"), "nodeName": "node-2"},
                    {**device("b"), "nodeName": "node-1"},
                    {**device("c"), "allNodes": True},
                    node="",
                    perDeviceNodeSelection=True,
                )
            ],
            2,
            ["b", "c"],
        ),
        # Pools are tried by name, and slices of a pool by name.
        ([slice_of("node-1", "z"), slice_of("net", "a", node="", allNodes=True)], 2, ["a", "z"]),
        ([slice_of("s2", "b", pool="p", count=2), slice_of("s1", "a", pool="p", count=2)], 2, ["a", "b"]),
        # Only the newest generation counts, and only all of its slices together.
        ([slice_of("old", "a", pool="p"), slice_of("new", "b", pool="p", generation=2)], 1, ["b"]),
        ([slice_of("s1", "a", pool="p", count=2)], 1, None),
        ([slice_of("s1", "a", pool="p", count=2), slice_of("q", "z")], 1, ["z"]),
        ([slice_of("s1", "a", "a", pool="p")], 1, None),
        # What is not simulated is left alone.
        ([slice_of("p", {**device("a"), "allowMultipleAllocations": True}, "b")], 1, ["b"]),
        ([slice_of("p", {**device("a"), "bindingConditions": ["ready"]}, "b")], 1, ["b"]),
    ],
)
def test_a_node_uses_the_pools_that_are_for_it(
    slices: list[v1.ResourceSlice], count: int, expected: list[str] | None
) -> None:
    wanted = [claim("c", exactly("r", count))]
    found = allocate(wanted, node("node-1", zone="a"), slices, lambda name: device_class(), ())
    assert (found and [result.device for result in found[0].devices.results]) == expected


@pytest.mark.parametrize(
    ("slices", "names"),
    [
        ([slice_of("net", "a", node="", allNodes=True)], None),
        ([slice_of("net", "a", node="", nodeSelector=ZONE)], ["zone"]),
        ([slice_of("net", "a", node="", nodeSelector=ZONE), slice_of("node-1", "z")], ["metadata.name"]),
    ],
)
def test_an_allocation_says_where_its_devices_can_be_used(
    slices: list[v1.ResourceSlice], names: list[str] | None
) -> None:
    wanted = [claim("c", exactly("r", len(slices)))]
    found = allocate(wanted, node("node-1", zone="a"), slices, lambda name: device_class(), ())
    assert found is not None
    chosen = found[0].nodeSelector
    terms = chosen.nodeSelectorTerms if chosen is not None else ()
    assert [need.key for term in terms for need in (*term.matchFields, *term.matchExpressions)] == (
        names or []
    )


def test_a_result_carries_the_configuration_of_its_classes_and_of_the_claim() -> None:
    own = {"opaque": {"driver": DRIVER, "parameters": {"x": 1}}}
    wanted = claim(
        "c",
        exactly("a", deviceClassName="shared"),
        first(
            "b", alternative("x", 9, deviceClassName="other"), alternative("y", 1, deviceClassName="shared")
        ),
        config=[own, {**own, "requests": ["a"]}, {**own, "requests": ["b/x"]}, {**own, "requests": ["b/y"]}],
    )
    classes = {"shared": device_class("shared", mode="shared"), "other": device_class("other", mode="other")}
    found = allocate([wanted], node(), [TWO], classes.get, ())
    assert found is not None
    assert [(each.source, each.requests) for each in found[0].devices.config] == [
        ("FromClass", ("a", "b/y")),
        ("FromClaim", ()),
        ("FromClaim", ("a",)),
        ("FromClaim", ("b/y",)),
    ]


@pytest.mark.parametrize(
    ("claims", "classes", "message"),
    [
        (
            [claim("c", exactly("r", 1, BAD))],
            [device_class()],
            "claim default/c: selector #0: CEL runtime error: no such key: nothing",
        ),
        (
            [claim("c", exactly())],
            [device_class("gpu", "true", BAD)],
            "class gpu: selector #1: CEL runtime error",
        ),
        (
            [claim("c", exactly("r", 1, "noDevice("))],
            [device_class()],
            "claim default/c: selector #0: CEL compile error",
        ),
        ([claim("c", exactly("r", 1, "1"))], [device_class()], "could not be converted to bool"),
        ([claim("c", exactly())], [], "claim default/c, request r: could not retrieve device class gpu"),
        (
            [claim("c", exactly("r", 33))],
            [device_class()],
            "number of requested devices 33 exceeds the claim limit of 32",
        ),
        ([claim("c", exactly(), constraints=[{}])], [device_class()], "empty constraint"),
    ],
)
def test_a_claim_that_makes_no_sense_says_so(
    claims: list[v1.ResourceClaim], classes: list[v1.DeviceClass], message: str
) -> None:
    with pytest.raises(AllocationError) as error:
        allocated(claims, TWO, classes=tuple(classes))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        (
            [slice_of("s", "a", pool="p", count=2)],
            "resource pool gpu.example.com/p is currently being updated",
        ),
        ([slice_of("s", "a", "a", pool="p")], "resource pool gpu.example.com/p is currently invalid"),
    ],
)
def test_all_devices_of_a_pool_are_only_known_when_it_is_whole(
    slices: list[v1.ResourceSlice], message: str
) -> None:
    with pytest.raises(AllocationError, match=message):
        allocated([claim("c", everything())], *slices)


def test_as_many_devices_as_a_claim_may_have_are_found_at_once() -> None:
    names = [f"d{number:02}" for number in range(40)]
    found = allocated([claim("c", exactly("r", 32)), claim("d", exactly("r", 8))], slice_of("node-1", *names))
    assert found is not None
    assert len(found) == 40


def test_a_search_that_would_not_end_does() -> None:
    # Twenty pairs of alike devices, of which no three are alike.
    devices = [device(f"d{number}", index=number // 2) for number in range(40)]
    requests = [exactly(f"r{number}") for number in range(16)]
    constraint = {"matchAttribute": f"{DRIVER}/index"}
    constraints = [{**constraint, "requests": [f"r{n}", f"r{n + 1}", f"r{n + 2}"]} for n in range(13, 14)]
    with pytest.raises(AllocationError, match="node node-1: timed out trying to allocate devices"):
        allocated([claim("c", *requests, constraints=constraints)], slice_of("node-1", *devices))


def test_devices_of_allocations_are_in_use_but_for_those_with_admin_access() -> None:
    wanted = [claim("c", exactly()), claim("d", exactly("r", 1, adminAccess=True))]
    found = allocate(wanted, node(), [TWO], lambda name: device_class(), ())
    assert found is not None
    assert allocated_devices([*found, None]) == {DeviceId(DRIVER, "node-1", "small")}
    assert [pool.name for pool in gather_pools([TWO], node())] == ["node-1"]
