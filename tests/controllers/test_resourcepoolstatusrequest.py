"""resourcepoolstatusrequest-controller: upstream's rows, and requests that are answered and deleted in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Invalid, NotFound, ServerError
from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.devices import (
    RESOURCEPOOLSTATUSREQUESTS,
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    PoolStatus,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
    ResourceSliceSpec,
)
from steersman.api.scheme import Key
from steersman.controllers.resourcepoolstatusrequest import (
    ERRORS,
    PROCESSED,
    SECONDS,
    answer,
    controller,
    decide,
    expiry,
    observe,
)
from steersman.intent.actions import Action, Delete, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.settings import DEFAULTS, Settings
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVER = "test.example.com"
KEY = Key("", "test-request")
Slice = ResourceSlice


def request(
    driver: str = DRIVER,
    pool: str | None = None,
    limit: int | None = None,
    age: timedelta | None = timedelta(0),
    status: ResourcePoolStatusRequestStatus | None = None,
) -> ResourcePoolStatusRequest:
    return ResourcePoolStatusRequest(
        metadata=ObjectMeta(name=KEY.name, uid="u", creationTimestamp=None if age is None else NOW - age),
        spec=ResourcePoolStatusRequestSpec(driver=driver, poolName=pool, limit=limit),
        status=status,
    )


def slices(
    name: str,
    pool: str = "pool-1",
    node: str | None = "node-1",
    devices: int = 4,
    *,
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
) -> Slice:
    return Slice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=driver,
            nodeName=node,
            pool=ResourcePool(name=pool, generation=generation, resourceSliceCount=count),
            devices=tuple(Device(name=f"device-{n}") for n in range(devices)),
        ),
    )


def claim(name: str, *devices: str, pool: str = "pool-1", driver: str = DRIVER) -> ResourceClaim:
    results = tuple(DeviceRequestAllocationResult(driver=driver, pool=pool, device=each) for each in devices)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        status=ResourceClaimStatus(allocation=allocation if devices else None),
    )


def answered(asked: ResourcePoolStatusRequest, *objects: Any) -> ResourcePoolStatusRequestStatus:
    seen = observe(StaticCaches(controller, asked, *objects), KEY)
    assert seen is not None
    return answer(seen, NOW)


def look(*objects: Any, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = observe(StaticCaches(controller, *objects), KEY)
    assert seen is not None
    actions, verdict = walk(decide(seen, NOW), answers)
    return [action for action in actions if not isinstance(action, Elapsed)], verdict


# -- upstream's rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "objects", "expected"),
    [
        (request(), (slices("s"),), {"pool-1": (4, 0)}),
        (request(), (slices("s"), claim("a", "device-0"), claim("b", "device-1")), {"pool-1": (4, 2)}),
        (request(), (slices("s"), claim("a", "device-0", "device-1"), claim("b")), {"pool-1": (4, 2)}),
        (request(), (slices("a"), slices("b", "pool-2", "node-2", 8)), {"pool-1": (4, 0), "pool-2": (8, 0)}),
        (request(), (slices("a"), slices("b", "pool-2", driver="other.example.com")), {"pool-1": (4, 0)}),
        (request(pool="pool-1"), (slices("a"), slices("b", "pool-2")), {"pool-1": (4, 0)}),
        (request(pool="pool-3"), (slices("a"), slices("b", "pool-2")), {}),
        (request(), (slices("a"), slices("b")), {"pool-1": (8, 0)}),
        (request(), (slices("a"), claim("a", "d", pool="pool-2"), claim("b", "d", driver="x")), {"pool-1": (4, 0)}),
        (request("nonexistent.example.com"), (slices("a"),), {}),
        (
            request(),
            (slices("old", devices=8), slices("a", generation=2), slices("b", generation=2)),
            {"pool-1": (8, 0)},
        ),
        (request(), (slices("a", count=5), slices("b", count=5), slices("c", count=5)), {"pool-1": None}),
        (
            request(),
            (slices("a"), slices("b", "pool-2", count=3), slices("c", "pool-2", count=3)),
            {"pool-1": (4, 0), "pool-2": None},
        ),
        (request(), (slices("a", count=2), slices("b", count=2)), {"pool-1": (8, 0)}),
        (request(), (slices("a", count=2, generation=1), slices("b", count=2, generation=2)), {"pool-1": None}),
        (request(), (slices("z", "pool-z"), slices("a", "pool-a")), {"pool-a": (4, 0), "pool-z": (4, 0)}),
    ],
    ids=[
        "one pool",
        "allocated devices",
        "two devices of a claim, and a claim without any",
        "two pools",
        "another driver",
        "a pool by name",
        "no pool of the name",
        "two slices",
        "allocations of other pools and drivers",
        "no pool of the driver",
        "slices of an earlier generation",
        "an incomplete pool",
        "a complete and an incomplete pool",
        "complete pools",
        "a generation that has only begun",
        "order of names",
    ],
)  # fmt: skip
def test_pools_are_counted_from_slices_and_claims(
    asked: ResourcePoolStatusRequest, objects: tuple[Any, ...], expected: dict[str, tuple[int, int] | None]
) -> None:
    found = answered(asked, *objects)
    assert found.poolCount == len(expected)
    assert [pool.poolName for pool in found.pools] == list(expected)
    for pool in found.pools:
        counts = expected[pool.poolName]
        assert (pool.validationError is None) is (counts is not None)
        if counts is None:
            assert (pool.totalDevices, pool.allocatedDevices, pool.resourceSliceCount) == (None, None, None)
        else:
            assert (pool.totalDevices, pool.allocatedDevices) == counts
            assert (pool.availableDevices, pool.unavailableDevices) == (counts[0] - counts[1], 0)


@pytest.mark.parametrize(
    ("limit", "shown"), [(1, 1), (2, 2), (3, 2), (None, 2)], ids=["one", "all", "more than all", "none"]
)
def test_a_limit_truncates_the_pools_and_not_their_count(limit: int | None, shown: int) -> None:
    found = answered(request(limit=limit), slices("a"), slices("b", "pool-2", "node-2", 8))
    assert (len(found.pools), found.poolCount) == (shown, 2)
    assert found.conditions[0].message == f"Calculated status for {shown} pools"


def test_without_a_limit_there_are_a_hundred_pools() -> None:
    found = answered(request(), *(slices(f"s{n}", f"pool-{n:03}") for n in range(101)))
    assert (len(found.pools), found.poolCount) == (100, 101)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (("node-1", "node-1"), "node-1"),
        (("node-1", "node-2"), None),
        ((None, None), None),
        (("node-1", None), None),
        (("", ""), None),
    ],
)
def test_a_pool_has_a_node_if_all_its_slices_have(
    nodes: tuple[str | None, ...], expected: str | None
) -> None:
    found = answered(request(), *(slices(f"s{n}", node=node) for n, node in enumerate(nodes)))
    assert [pool.nodeName for pool in found.pools] == [expected]


@pytest.mark.parametrize(
    ("age", "status", "deleted"),
    [
        (timedelta(0), ("Complete", timedelta(0)), False),
        (timedelta(hours=2), ("Complete", timedelta(hours=2)), True),
        (timedelta(hours=25), ("Complete", timedelta(minutes=59)), False),
        (timedelta(hours=2), ("Failed", timedelta(hours=2)), True),
        (timedelta(hours=2), ("Other", timedelta(0)), True),
        (timedelta(minutes=30), ("Other", timedelta(hours=2)), False),
        (timedelta(0), None, False),
        (timedelta(hours=2), None, False),
        (timedelta(hours=25), None, True),
        (None, None, False),
    ],
    ids=[
        "answered",
        "answered long ago",
        "answered a day after it was asked",
        "failed long ago",
        "without a known condition",
        "without a known condition, asked of late",
        "pending",
        "pending for hours",
        "pending for a day",
        "without a time",
    ],
)  # fmt: skip
def test_a_request_is_deleted_an_hour_after_its_answer_or_a_day_after_it_was_asked(
    age: timedelta | None, status: tuple[str, timedelta] | None, deleted: bool
) -> None:
    asked = request("nonexistent.example.com", age=age)
    if status is not None:
        ended = Condition(type=status[0], status="True", lastTransitionTime=NOW - status[1])
        asked = replace(asked, status=ResourcePoolStatusRequestStatus(poolCount=0, conditions=(ended,)))
    actions, _ = look(asked)
    assert any(isinstance(action, Delete) for action in actions) is deleted
    assert not (deleted and len(actions) > 1)


def test_a_pending_request_is_answered() -> None:
    asked = request(pool="pool-1")
    actions, verdict = look(asked, slices("s"), claim("c", "device-0"))
    pool = PoolStatus(
        driver=DRIVER,
        poolName="pool-1",
        generation=1,
        resourceSliceCount=1,
        totalDevices=4,
        allocatedDevices=1,
        availableDevices=3,
        unavailableDevices=0,
        nodeName="node-1",
    )
    condition = Condition(
        type="Complete",
        status="True",
        lastTransitionTime=NOW,
        reason="CalculationComplete",
        message="Calculated status for 1 pools",
    )
    status = ResourcePoolStatusRequestStatus(poolCount=1, pools=(pool,), conditions=(condition,))
    labels = (DRIVER,)
    assert actions == [
        UpdateStatus(asked, status),
        Measure(PROCESSED, labels=labels),
        Measure(SECONDS, 0.0, labels),
    ]
    assert verdict == Rest("answered")


def test_a_request_waits_for_the_slices_of_an_incomplete_pool() -> None:
    found = look(request(), slices("s", count=3))
    message = f"pool {DRIVER}/pool-1 is incomplete: observed 1/3 slices at generation 1"
    assert found == ([], Wake(timedelta(days=1), message))


def test_an_incomplete_pool_beyond_the_limit_does_not_keep_the_answer() -> None:
    actions, verdict = look(request(limit=1), slices("a"), slices("b", "pool-2", count=3))
    assert verdict == Rest("answered")
    assert isinstance(actions[0], UpdateStatus)


def test_an_answered_request_is_left_alone() -> None:
    done = Condition(type="Complete", status="True", lastTransitionTime=NOW)
    status = ResourcePoolStatusRequestStatus(poolCount=0, conditions=(done,))
    assert look(request(status=status), slices("s")) == (
        [],
        Wake(timedelta(hours=1), "answered, to be deleted later"),
    )


# -- other rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ServerError("try again"), Invalid("generation: Required value")])
def test_an_answer_that_is_refused_fails_the_round_and_is_counted(error: ApiError) -> None:
    seen = observe(StaticCaches(controller, request(), slices("s")), KEY)
    assert seen is not None
    recorded: list[Action[Any]] = []
    with pytest.raises(type(error)):
        walk(decide(seen, NOW), {UpdateStatus: error}, recorded=recorded)
    counted = [action.metric for action in recorded if isinstance(action, Measure)]
    assert counted == [ERRORS, PROCESSED, SECONDS]


def test_a_request_that_was_deleted_meanwhile_is_no_error() -> None:
    asked = request(age=timedelta(days=2))
    assert look(asked, answers={Delete: NotFound("gone")})[1] == Rest("already deleted")


def test_a_request_that_is_being_deleted_is_answered_and_not_deleted_again() -> None:
    asked = request(age=timedelta(days=2))
    asked = replace(asked, metadata=replace(asked.metadata, deletionTimestamp=NOW))
    actions, verdict = look(asked, slices("s"))
    assert verdict == Rest("answered")
    (update,) = [action for action in actions if isinstance(action, UpdateStatus)]
    assert not [action for action in actions if isinstance(action, Delete)]
    assert look(replace(asked, status=update.status), slices("s")) == (
        [],
        Rest("answered, to be deleted later"),
    )


def test_a_reason_has_at_most_256_bytes() -> None:
    (pool,) = answered(request(), slices("s", "p" * 253, count=2)).pools
    assert pool.validationError is not None
    assert len(pool.validationError) == 256


def test_more_allocations_than_devices_leave_none() -> None:
    (pool,) = answered(request(), slices("s", devices=1), claim("a", "x"), claim("b", "y")).pools
    assert (pool.allocatedDevices, pool.availableDevices) == (2, 0)


def test_a_slice_concerns_the_pending_requests_of_its_driver() -> None:
    done = request(status=ResourcePoolStatusRequestStatus(poolCount=0))
    to = controller.watches[1].to
    for asked, expected in ((request(), [KEY]), (done, []), (request("other.example.com"), [])):
        caches = StaticCaches(controller, asked)
        assert list(to(caches, Change(None, slices("s")))) == expected


def test_it_runs_behind_its_gate() -> None:
    assert controller.configured(DEFAULTS) is None
    assert controller.configured(Settings(gates={"DRAResourcePoolStatus": True})) is not None


def test_a_request_without_a_time_is_never_due() -> None:
    assert expiry(request(age=None)) is None


# -- worlds ---------------------------------------------------------------------------------------

GATES = {"DRAResourcePoolStatus": True}


def document(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": RESOURCEPOOLSTATUSREQUESTS.api_version,
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, **spec},
    }


def published(name: str, pool: str, devices: int, count: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-1",
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
            "devices": [{"name": f"device-{n}"} for n in range(devices)],
        },
    }


def test_a_request_is_answered_once_and_goes_after_an_hour() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([published("a", "pool-1", 3), published("b", "pool-2", 2), document("all")])
        cluster.settle()
        status = cluster.get("resourcepoolstatusrequest", "all").status
        assert [(pool.poolName, pool.totalDevices) for pool in status.pools] == [("pool-1", 3), ("pool-2", 2)]
        cluster.apply(published("c", "pool-3", 9))
        cluster.advance(minutes=59)
        assert cluster.get("resourcepoolstatusrequest", "all").status == status
        cluster.advance(minutes=1)
        assert cluster.list("resourcepoolstatusrequests") == []


def test_a_request_waits_for_the_last_slice_of_a_pool() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([published("a", "pool-1", 3, count=2), document("early")])
        cluster.advance(hours=23)
        assert cluster.get("resourcepoolstatusrequest", "early").status is None
        cluster.apply(published("b", "pool-1", 3, count=2))
        cluster.settle()
        (pool,) = cluster.get("resourcepoolstatusrequest", "early").status.pools
        assert (pool.totalDevices, pool.resourceSliceCount) == (6, 2)


def test_a_request_that_cannot_be_answered_goes_after_a_day() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([published("a", "pool-1", 3, count=2), document("lost")])
        cluster.advance(hours=23)
        assert len(cluster.list("resourcepoolstatusrequests")) == 1
        cluster.advance(hours=1)
        assert cluster.list("resourcepoolstatusrequests") == []
