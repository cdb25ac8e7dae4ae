"""The owners of claims by the retention policy, and missing claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.kinds import ObjectMeta, OwnerReference
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.controllers.statefulset.claims import (
    OwnersEdit,
    conflicting_claims,
    has_stale_claim,
    missing_claims,
    new_owners,
    terminating_claim,
)
from tests.harness.statefulsets import NOW, member, stateful


def reference(kind: str, uid: str = "", controller: bool | None = True, name: str = "") -> OwnerReference:
    named = name or {"StatefulSet": "web", "Pod": "web-1"}.get(kind, "other")
    version = {"StatefulSet": "apps/v1", "Pod": "v1"}.get(kind, "example.com/v1")
    return OwnerReference(
        apiVersion=version,
        kind=kind,
        name=named,
        uid=uid or f"{named}-uid",
        controller=controller,
        blockOwnerDeletion=True,
    )


SET, POD = reference("StatefulSet"), reference("Pod")
OTHER, GUEST = reference("Keeper"), reference("Keeper", controller=None)
OLD_SET, OLD_POD = reference("StatefulSet", "gone"), reference("Pod", "gone")
LOOSE_SET = reference("StatefulSet", controller=None)
UNTOUCHED = None


def sized(replicas: int, keep: str) -> StatefulSet:
    return stateful(replicas, claims=("data",), keep=keep)


@pytest.mark.parametrize(
    ("keep", "replicas", "has", "wants"),
    [
        # When scaled, when deleted. Pod web-1 stays where the set wants two, and goes where it wants one.
        ("RR", 2, (), UNTOUCHED),
        ("", 2, (), UNTOUCHED),
        ("RR", 2, (SET,), ()),
        ("RR", 2, (POD, GUEST), (GUEST,)),
        ("RR", 2, (OTHER,), UNTOUCHED),
        ("RD", 2, (), (SET,)),
        ("RD", 1, (), (SET,)),
        ("RD", 2, (SET,), UNTOUCHED),
        ("RD", 2, (POD,), (SET,)),
        ("RD", 2, (GUEST,), (GUEST, SET)),
        ("RD", 2, (LOOSE_SET,), (SET,)),
        ("DR", 2, (), UNTOUCHED),
        ("DR", 2, (POD,), ()),
        ("DR", 1, (), (POD,)),
        ("DR", 1, (POD,), UNTOUCHED),
        ("DR", 1, (SET,), (POD,)),
        ("DD", 2, (), (SET,)),
        ("DD", 2, (SET,), UNTOUCHED),
        ("DD", 2, (POD,), (SET,)),
        ("DD", 1, (SET,), (POD,)),
        ("DD", 1, (POD,), UNTOUCHED),
        ("DD", 1, (SET, POD), (POD,)),
        # Somebody else's.
        ("DD", 2, (OTHER,), UNTOUCHED),
        ("DD", 2, (OTHER, SET), (OTHER,)),
        ("DD", 2, (OLD_SET,), UNTOUCHED),
        ("DD", 1, (OLD_POD,), UNTOUCHED),
    ],
)
def test_a_claim_is_owned_as_the_policy_says(
    keep: str,
    replicas: int,
    has: tuple[OwnerReference, ...],
    wants: tuple[OwnerReference, ...] | None,
) -> None:
    set_ = sized(replicas, keep)
    found = new_owners(set_, member(set_, 1), has)
    assert found == wants
    if found is not None:
        assert new_owners(set_, member(set_, 1), found) is None, "once it is so, it stays so"


def test_owners_are_handed_over_by_those_a_claim_has_at_the_moment() -> None:
    set_ = sized(1, "DD")
    document: dict[str, Any] = {
        "metadata": {"ownerReferences": [msgspec.to_builtins(GUEST)]},
        "spec": {"x": 1},
    }
    OwnersEdit(set_, member(set_, 1))(document)
    assert [owner["kind"] for owner in document["metadata"]["ownerReferences"]] == ["Keeper", "Pod"]
    assert document["spec"] == {"x": 1}


def claim(name: str, *references: OwnerReference, leaving: bool = False) -> PersistentVolumeClaim:
    metadata = ObjectMeta(
        name=name, ownerReferences=references, deletionTimestamp=NOW if leaving else None, uid=f"{name}-uid"
    )
    return PersistentVolumeClaim(metadata=metadata)


@pytest.mark.parametrize(
    ("keep", "references", "stale"),
    [
        ("DR", (OLD_POD,), True),
        ("DR", (POD,), True),
        ("DR", (SET,), False),
        ("DR", (), False),
        ("RD", (OLD_POD,), False),
    ],
)
def test_a_claim_that_goes_with_the_last_pod_of_a_name_is_not_for_the_next(
    keep: str, references: tuple[OwnerReference, ...], stale: bool
) -> None:
    assert has_stale_claim(sized(2, keep), 1, {"data-web-1": claim("data-web-1", *references)}) is stale


@pytest.mark.parametrize(
    ("keep", "references", "told"),
    [("DD", (OTHER,), True), ("DD", (OLD_SET,), True), ("DD", (SET, GUEST), False), ("RR", (OTHER,), False)],
)
def test_a_claim_of_somebody_else_is_told_of_where_it_matters(
    keep: str, references: tuple[OwnerReference, ...], told: bool
) -> None:
    set_, there = sized(2, keep), {"data-web-1": claim("data-web-1", *references)}
    assert list(conflicting_claims(set_, member(set_, 1), there)) == (["data-web-1"] if told else [])


def test_only_claims_that_lack_are_made_with_labels_and_owner() -> None:
    set_ = stateful(2, claims=("data", "logs"), keep="RD")
    (made,) = missing_claims(set_, 1, {"data-web-1": claim("data-web-1")})
    assert made.metadata.name == "logs-web-1"
    assert made.metadata.labels == {"claim": "logs", "app": "web"}
    assert made.metadata.ownerReferences == (SET,)
    assert made.spec is set_.spec.volumeClaimTemplates[1].spec


def test_a_claim_that_is_being_deleted_is_noticed() -> None:
    set_ = sized(2, "RR")
    assert terminating_claim(set_, 1, {"data-web-1": claim("data-web-1", leaving=True)}) == "data-web-1"
    assert terminating_claim(set_, 1, {"data-web-1": claim("data-web-1")}) is None
