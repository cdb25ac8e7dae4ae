"""Owner references and time as objects carry it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from steersman.api.kinds import DEPLOYMENTS, PODS, Deployment, ObjectMeta, OwnerReference, Pod, ReplicaSet
from steersman.api.meta import (
    controller_of,
    format_micro_time,
    format_time,
    is_controlled_by,
    owner_reference,
    truncate_to_seconds,
)

OWNER = Deployment(metadata=ObjectMeta(name="web", namespace="shop", uid="u1"))


def pod(*references: OwnerReference) -> Pod:
    return Pod(metadata=ObjectMeta(name="web-1", namespace="shop", ownerReferences=references))


def test_a_reference_to_a_controller_blocks_its_deletion_and_names_its_kind() -> None:
    assert owner_reference(OWNER, DEPLOYMENTS) == OwnerReference(
        apiVersion="apps/v1",
        kind="Deployment",
        name="web",
        uid="u1",
        controller=True,
        blockOwnerDeletion=True,
    )
    assert owner_reference(OWNER, PODS).apiVersion == "v1"


def test_the_controller_is_the_reference_that_says_so() -> None:
    plain = OwnerReference(kind="ConfigMap", name="c", uid="u0")
    denied = OwnerReference(kind="ReplicaSet", name="r", uid="u2", controller=False)
    mine = owner_reference(OWNER, DEPLOYMENTS)
    assert controller_of(pod(plain, denied, mine)) == mine
    assert controller_of(pod(plain, denied)) is None
    assert controller_of(pod()) is None


def test_an_owner_is_known_by_its_uid_and_not_by_its_name() -> None:
    owned = pod(owner_reference(OWNER, DEPLOYMENTS))
    assert is_controlled_by(owned, OWNER)
    assert is_controlled_by(owned, ReplicaSet(metadata=ObjectMeta(name="other", uid="u1")))
    assert not is_controlled_by(
        owned, Deployment(metadata=ObjectMeta(name="web", namespace="shop", uid="u9"))
    )
    assert not is_controlled_by(pod(), OWNER)


def test_objects_carry_whole_seconds() -> None:
    exact = datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=UTC)
    assert truncate_to_seconds(exact) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert truncate_to_seconds(truncate_to_seconds(exact)) == truncate_to_seconds(exact)


def test_times_are_written_in_utc_with_four_digits_of_the_year() -> None:
    early = datetime(1, 1, 2, 1, 0, 2, tzinfo=timezone(timedelta(hours=1)))
    assert format_time(early) == "0001-01-02T00:00:02Z"
    assert format_micro_time(early) == "0001-01-02T00:00:02.000000Z"
