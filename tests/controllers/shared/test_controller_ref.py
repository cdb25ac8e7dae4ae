"""Adoption and release of objects by selector."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from steersman.api.kinds import Deployment, ReplicaSet
from steersman.api.meta import is_controlled_by
from steersman.controllers.shared.controller_ref import adoption, claim, divide, release
from steersman.intent.actions import Action, Patch, PatchType, Read
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import Answers, walk
from tests.harness.workloads import CREATED, deployment, owned_by, replicaset

OWNER = deployment()
LATER = CREATED + timedelta(seconds=1)
LEAVING = deployment(deleted=LATER)

MINE = replicaset(OWNER, "v1")
STRAY = replicaset(OWNER, "v2", labels={"app": "db"})
ORPHAN = replicaset(None, "v3")
FOREIGN = replicaset(None, "v4", labels={"app": "db"})
GOING = replicaset(None, "v5", deleted=LATER)
ELSEWHERE = replace(ORPHAN, metadata=replace(ORPHAN.metadata, namespace="elsewhere"))


def matches(rs: ReplicaSet) -> bool:
    return rs.metadata.labels.get("app") == "web"


@pytest.mark.parametrize(
    ("owner", "owned", "orphans", "keep", "adopt", "let_go"),
    [
        pytest.param(OWNER, [MINE], [], [MINE], [], [], id="what matches is kept"),
        pytest.param(OWNER, [STRAY], [], [], [], [STRAY], id="what no longer matches is released"),
        pytest.param(OWNER, [], [ORPHAN], [], [ORPHAN], [], id="an orphan that matches is adopted"),
        pytest.param(OWNER, [], [FOREIGN], [], [], [], id="one that does not is left"),
        pytest.param(OWNER, [], [GOING], [], [], [], id="one that is going is left"),
        pytest.param(OWNER, [], [ELSEWHERE], [], [], [], id="one in another namespace is left"),
        pytest.param(
            LEAVING, [MINE, STRAY], [ORPHAN], [MINE], [], [], id="who is going keeps and does nothing else"
        ),
    ],
)
def test_objects_are_kept_adopted_or_released(
    owner: Deployment,
    owned: list[ReplicaSet],
    orphans: list[ReplicaSet],
    keep: list[ReplicaSet],
    adopt: list[ReplicaSet],
    let_go: list[ReplicaSet],
) -> None:
    claims = divide(owner, owned, orphans, matches)
    assert (list(claims.keep), list(claims.adopt), list(claims.release)) == (keep, adopt, let_go)


def test_an_adoption_adds_the_reference_to_this_very_object() -> None:
    assert adoption(OWNER, ORPHAN) == Patch(
        ORPHAN,
        {
            "metadata": {
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "name": "web",
                        "uid": "web-uid",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
                "uid": "web-v3-uid",
            }
        },
        PatchType.STRATEGIC,
    )


def test_a_release_takes_one_reference_off_this_very_object() -> None:
    assert release(OWNER, STRAY) == Patch(
        STRAY,
        {
            "metadata": {
                "ownerReferences": [{"$patch": "delete", "uid": "web-uid"}],
                "uid": "web-v2-uid",
            }
        },
        PatchType.STRATEGIC,
    )


def test_finalizers_come_with_an_adoption_and_go_with_a_release() -> None:
    assert adoption(OWNER, ORPHAN, ("x/y",)).body["metadata"]["finalizers"] == ["x/y"]
    assert release(OWNER, STRAY, ("x/y",)).body["metadata"]["$deleteFromPrimitiveList/finalizers"] == ["x/y"]


def run(
    owned: list[ReplicaSet], orphans: list[ReplicaSet], answers: Answers | None = None
) -> tuple[list[Action[Any]], list[ReplicaSet]]:
    claimed: list[ReplicaSet] = []

    async def decision() -> Verdict:
        claimed.extend(await claim(OWNER, owned, orphans, matches))
        return Rest("claimed")

    actions, _ = walk(decision(), answers)
    return actions, claimed


def test_nothing_is_asked_when_nothing_has_to_change() -> None:
    assert run([MINE], [FOREIGN]) == ([], [MINE])


def test_the_owner_is_read_live_before_anything_is_adopted() -> None:
    actions, claimed = run([MINE], [ORPHAN])
    assert actions == [Read(OWNER), adoption(OWNER, ORPHAN)]
    kept, adopted = claimed
    assert kept is MINE
    assert is_controlled_by(adopted, OWNER)
    assert adopted.metadata.resourceVersion != ORPHAN.metadata.resourceVersion


def test_a_release_needs_no_live_read() -> None:
    assert run([MINE, STRAY], []) == ([release(OWNER, STRAY)], [MINE])


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(LEAVING, id="it is being deleted"),
        pytest.param(replace(OWNER, metadata=replace(OWNER.metadata, uid="other")), id="it is another one"),
        pytest.param(NotFound("gone"), id="it is gone"),
    ],
)
def test_an_owner_that_is_not_what_it_was_adopts_nothing_but_still_releases(live: object) -> None:
    said: list[Action[Any]] = []

    async def decision() -> Verdict:
        await claim(OWNER, [STRAY], [ORPHAN], matches)
        return Rest("claimed")

    with pytest.raises((Conflict, NotFound)):
        walk(decision(), {Read: live}, recorded=said)
    assert said == [Read(OWNER), release(OWNER, STRAY)]


@pytest.mark.parametrize("refusal", [NotFound("gone"), Invalid("another uid")])
def test_what_cannot_be_released_since_it_is_gone_is_no_failure(refusal: ApiError) -> None:
    actions, claimed = run([MINE, STRAY], [], {Patch: refusal})
    assert actions == [release(OWNER, STRAY)]
    assert claimed == [MINE]


def test_an_orphan_that_is_gone_is_not_claimed() -> None:
    _, claimed = run([MINE], [ORPHAN], {Patch: NotFound("gone")})
    assert claimed == [MINE]


def test_an_orphan_that_somebody_else_adopted_fails_the_round() -> None:
    with pytest.raises(Invalid):
        run([], [ORPHAN], {Patch: Invalid("two controllers")})


def test_all_claims_are_tried_before_the_first_failure_is_raised() -> None:
    said: list[Action[Any]] = []
    another = replicaset(None, "v6")

    async def decision() -> Verdict:
        await claim(OWNER, [STRAY], [ORPHAN, another], matches)
        return Rest("claimed")

    with pytest.raises(Forbidden):
        walk(decision(), {Patch: [Forbidden("no")]}, recorded=said)
    assert said == [
        Read(OWNER),
        release(OWNER, STRAY),
        adoption(OWNER, ORPHAN),
        adoption(OWNER, another),
    ]


def test_other_owners_of_a_released_object_stay() -> None:
    other = replace(owned_by(deployment(name="other")), controller=None)
    shared = replace(
        STRAY, metadata=replace(STRAY.metadata, ownerReferences=(*STRAY.metadata.ownerReferences, other))
    )
    released: list[ReplicaSet] = []

    async def decision() -> Verdict:
        released.append(await release(OWNER, shared))
        return Rest("released")

    walk(decision())
    assert released[0].metadata.ownerReferences == (other,)
