"""The resize of a claim: upstream's tables of sizes, states and conditions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    VolumeResourceRequirements,
)
from steersman.api.quantity import storage_of
from steersman.controllers.expand.resize import (
    CONTROLLER_IN_PROGRESS,
    CONTROLLER_INFEASIBLE,
    FILE_SYSTEM_PENDING,
    FILE_SYSTEM_PENDING_MESSAGE,
    NODE_IN_PROGRESS,
    NODE_INFEASIBLE,
    NODE_PENDING,
    PRE_RESIZE_CAPACITY,
    RESIZE_CONDITIONS,
    RESIZING,
    NodeStep,
    Size,
    finished,
    in_progress,
    is_complete,
    merge_conditions,
    needs_expansion,
    next_size,
    node_pending,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def claim(
    requested: str = "2Gi",
    capacity: str = "1Gi",
    allocated: str = "",
    state: str = "",
    *conditions: Condition,
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace="shop"),
        spec=PersistentVolumeClaimSpec(resources=VolumeResourceRequirements(requests={"storage": requested})),
        status=PersistentVolumeClaimStatus(
            capacity={"storage": capacity},
            allocatedResources={"storage": allocated} if allocated else {},
            allocatedResourceStatuses={"storage": state} if state else {},
            conditions=conditions,
        ),
    )


def volume(capacity: str, *, annotated: bool = False) -> PersistentVolume:
    annotations = {PRE_RESIZE_CAPACITY: "1Gi"} if annotated else {}
    return PersistentVolume(
        metadata=ObjectMeta(name="disk", annotations=annotations),
        spec=PersistentVolumeSpec(capacity={"storage": capacity}),
    )


def condition(type_: str, status: str = "True", at: datetime = NOW, message: str = "") -> Condition:
    return Condition(type=type_, status=status, lastTransitionTime=at, message=message)


# -- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "allocated", "state", "expanded", "expected"),
    [
        # The volume is smaller than requested: it has to be expanded.
        ("2Gi", "", "", "1Gi", "2Gi"),
        ("3Gi", "2Gi", "", "1Gi", "3Gi"),
        ("3Gi", "2Gi", CONTROLLER_IN_PROGRESS, "1Gi", "2Gi"),
        ("3Gi", "", CONTROLLER_IN_PROGRESS, "1Gi", "3Gi"),
        ("3Gi", "2Gi", NODE_PENDING, "2Gi", "2Gi"),
        ("3Gi", "2Gi", NODE_IN_PROGRESS, "2Gi", "2Gi"),
        ("3Gi", "2Gi", NODE_INFEASIBLE, "2Gi", "2Gi"),
        ("2Gi", "9Gi", CONTROLLER_INFEASIBLE, "1Gi", "2Gi"),
        # It has been expanded: the rest is the node's, or was never written down.
        ("2Gi", "", "", "2Gi", "2Gi"),
        ("2Gi", "3Gi", "", "3Gi", "3Gi"),
        ("2Gi", "2Gi", NODE_PENDING, "2Gi", NodeStep.WAIT),
        ("2Gi", "2Gi", NODE_IN_PROGRESS, "2Gi", NodeStep.WAIT),
        ("2Gi", "2Gi", NODE_INFEASIBLE, "2Gi", NodeStep.MARK_PENDING),
        ("2Gi", "3Gi", CONTROLLER_IN_PROGRESS, "3Gi", "3Gi"),
        ("2Gi", "3Gi", CONTROLLER_INFEASIBLE, "3Gi", "3Gi"),
        ("2Gi", "", CONTROLLER_INFEASIBLE, "3Gi", "2Gi"),
        ("2Gi", "3Gi", "StateOfTheFuture", "3Gi", "2Gi"),
    ],
)
def test_a_resize_is_resumed_with_the_size_it_began_with(
    requested: str, allocated: str, state: str, expanded: str, expected: Size | NodeStep
) -> None:
    assert next_size(claim(requested, "1Gi", allocated, state), volume(expanded)) == expected


@pytest.mark.parametrize(
    ("requested", "capacity", "annotated", "needed"),
    [
        ("1Gi", "1Gi", False, False),
        ("2Gi", "1Gi", False, True),
        ("1024Mi", "1Gi", False, False),
        ("1Gi", "2Gi", False, False),
        ("1Gi", "1Gi", True, True),
        ("not a size", "1Gi", False, False),
    ],
)
def test_a_claim_is_expanded_that_requests_more_than_it_has(
    requested: str, capacity: str, annotated: bool, needed: bool
) -> None:
    assert needs_expansion(claim(requested, capacity), volume("1Gi", annotated=annotated)) == needed


@pytest.mark.parametrize(
    ("requested", "capacity", "expanded", "complete"),
    [
        ("2Gi", "2Gi", "2Gi", True),
        ("2Gi", "1Gi", "2Gi", False),
        ("1Gi", "1Gi", "2Gi", False),
        ("2Gi", "3Gi", "3Gi", True),
        ("2000Mi", "2Gi", "2Gi", True),
    ],
)
def test_an_expansion_is_complete_once_the_claim_has_what_its_volume_has(
    requested: str, capacity: str, expanded: str, complete: bool
) -> None:
    assert is_complete(claim(requested, capacity), volume(expanded)) == complete


@given(
    st.sampled_from(["1Gi", "2Gi", "3Gi"]),
    st.sampled_from(["", "1Gi", "2Gi", "3Gi"]),
    st.sampled_from(
        ["", CONTROLLER_IN_PROGRESS, CONTROLLER_INFEASIBLE, NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE]
    ),
    st.sampled_from(["1Gi", "2Gi", "3Gi"]),
)
def test_a_volume_is_never_expanded_to_a_size_that_was_never_requested(
    requested: str, allocated: str, state: str, expanded: str
) -> None:
    size = next_size(claim(requested, "1Gi", allocated, state), volume(expanded))
    assert isinstance(size, NodeStep) or size in (requested, allocated)


# -- conditions -----------------------------------------------------------------------------------

BEGUN = condition(RESIZING)
OTHER = condition("Unused", "False")


@pytest.mark.parametrize(
    ("present", "new", "keep_old", "expected"),
    [
        ((BEGUN,), (), False, ()),
        (
            (BEGUN,),
            (condition(FILE_SYSTEM_PENDING),),
            False,
            (condition(FILE_SYSTEM_PENDING),),
        ),
        ((BEGUN,), (condition(RESIZING, at=LATER),), False, (BEGUN,)),
        (
            (BEGUN,),
            (condition(RESIZING, "False", LATER),),
            False,
            (condition(RESIZING, "False", LATER),),
        ),
        ((), (BEGUN,), False, (BEGUN,)),
        ((BEGUN,), (condition("NodeResizeError"),), True, (BEGUN, condition("NodeResizeError"))),
        ((OTHER, BEGUN), (), False, (OTHER,)),
        ((BEGUN, OTHER), (condition(FILE_SYSTEM_PENDING),), False, (OTHER, condition(FILE_SYSTEM_PENDING))),
        ((OTHER,), (BEGUN,), True, (OTHER, BEGUN)),
    ],
    ids=[
        "all are removed",
        "a new one",
        "the same one with a new time",
        "the same one with another status",
        "none before",
        "a new one beside the old",
        "others stay",
        "others stay where they are",
        "beside others",
    ],
)
def test_conditions_of_a_resize_are_merged(
    present: tuple[Condition, ...],
    new: tuple[Condition, ...],
    keep_old: bool,
    expected: tuple[Condition, ...],
) -> None:
    """The first six are upstream's."""
    assert merge_conditions(present, new, keep_old=keep_old) == expected


# -- the status -----------------------------------------------------------------------------------


def states(status: PersistentVolumeClaimStatus) -> dict[str, str]:
    return dict(status.allocatedResourceStatuses)


def with_states(**found: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        status=PersistentVolumeClaimStatus(capacity={"storage": "2Gi"}, allocatedResourceStatuses=found)
    )


CPU = CONTROLLER_INFEASIBLE


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (node_pending(with_states(), NOW), {"storage": NODE_PENDING}),
        (node_pending(with_states(cpu=CPU), NOW), {"cpu": CPU, "storage": NODE_PENDING}),
        (in_progress(with_states(), "10Gi", NOW), {"storage": CONTROLLER_IN_PROGRESS}),
        (finished(with_states(cpu=CPU, storage=NODE_PENDING), "10Gi"), {"cpu": CPU}),
        (finished(with_states(storage=NODE_PENDING), "10Gi"), {}),
    ],
)
def test_each_step_records_the_state_of_storage_alone(
    status: PersistentVolumeClaimStatus, expected: dict[str, str]
) -> None:
    """The first four are upstream's."""
    assert states(status) == expected


def test_a_resize_from_beginning_to_end() -> None:
    first = claim("2Gi", "1Gi", "", "", OTHER)
    begun = in_progress(first, "2Gi", NOW + timedelta(microseconds=7))
    assert begun.conditions == (OTHER, condition(RESIZING))
    assert begun.allocatedResources == {"storage": "2Gi"}
    assert begun.capacity == {"storage": "1Gi"}
    second = PersistentVolumeClaim(spec=first.spec, status=begun)
    pending = node_pending(second, LATER)
    waits = condition(FILE_SYSTEM_PENDING, at=LATER, message=FILE_SYSTEM_PENDING_MESSAGE)
    assert pending.conditions == (OTHER, condition(RESIZING), waits)
    third = PersistentVolumeClaim(spec=first.spec, status=pending)
    done = finished(third, "2Gi")
    assert done.conditions == (OTHER,)
    assert (done.capacity, done.allocatedResources) == ({"storage": "2Gi"}, {"storage": "2Gi"})
    assert not set(RESIZE_CONDITIONS) & {each.type for each in done.conditions}


def test_the_amount_of_storage_is_zero_where_there_is_none() -> None:
    assert storage_of({}).nanos == storage_of({"storage": "a lot"}).nanos == 0
    assert storage_of({"storage": "1Gi"}) == storage_of({"storage": 1024**3})
