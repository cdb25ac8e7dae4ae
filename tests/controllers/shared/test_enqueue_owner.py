"""Which owners a change enqueues, and which selectors are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import DEPLOYMENTS, LabelSelector, ReplicaSet
from steersman.api.scheme import Key
from steersman.controllers.deployment import controller
from steersman.controllers.shared.enqueue_owner import enqueue_owner, enqueue_revision_owner
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.intent.controller import Change
from steersman.testing.decision_driver import StaticCaches
from tests.harness.workloads import CREATED, deployment, owned_by, replicaset

ONE, TWO = deployment(name="one"), deployment(name="two")
OF_ONE, OF_TWO, ORPHAN = replicaset(ONE, "a"), replicaset(TWO, "a"), replicaset(None, "a")
UNLIKE = replicaset(None, "a", labels={"app": "db"})
GOING = replicaset(None, "a", deleted=CREATED + timedelta(seconds=1))
NAMESAKE = replace(
    OF_ONE,
    metadata=replace(OF_ONE.metadata, ownerReferences=(replace(owned_by(ONE), uid="of another time"),)),
)
FOREIGN = replace(
    OF_ONE, metadata=replace(OF_ONE.metadata, ownerReferences=(replace(owned_by(ONE), kind="Rollout"),))
)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        pytest.param(None, OF_ONE, ["one"], id="what it controls has come"),
        pytest.param(OF_ONE, OF_ONE, ["one"], id="has changed"),
        pytest.param(OF_ONE, None, ["one"], id="has gone"),
        pytest.param(OF_ONE, OF_TWO, ["one", "two"], id="has changed hands"),
        pytest.param(OF_ONE, ORPHAN, ["one", "one", "two"], id="was let go"),
        pytest.param(None, ORPHAN, ["one", "two"], id="an orphan has come"),
        pytest.param(UNLIKE, ORPHAN, ["one", "two"], id="or has other labels"),
        pytest.param(ORPHAN, ORPHAN, [], id="or has changed otherwise"),
        pytest.param(None, UNLIKE, [], id="nobody selects it"),
        pytest.param(ORPHAN, None, [], id="an orphan has gone"),
        pytest.param(None, GOING, [], id="or goes"),
        pytest.param(None, NAMESAKE, [], id="who controls it only had the name"),
        pytest.param(None, FOREIGN, [], id="or is of another kind"),
    ],
)
def test_a_change_enqueues_the_controller_the_previous_one_and_possible_adopters(
    old: ReplicaSet | None, new: ReplicaSet | None, names: list[str]
) -> None:
    to = enqueue_owner(DEPLOYMENTS, selects)
    found = to(StaticCaches(controller, ONE, TWO), Change(old, new))
    assert list(found) == [Key("default", name) for name in names]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        pytest.param(None, OF_ONE, [], id="one of its own has come: it wrote it"),
        pytest.param(OF_ONE, OF_ONE, ["one"], id="has changed"),
        pytest.param(OF_ONE, None, ["one", "one"], id="has gone"),
        pytest.param(NAMESAKE, None, ["one"], id="has gone that was a namesake's"),
        pytest.param(FOREIGN, None, [], id="has gone that was another kind's"),
        pytest.param(None, ORPHAN, ["one", "two"], id="an orphan has come"),
    ],
)
def test_a_new_revision_does_not_enqueue_its_own_owner(
    old: ReplicaSet | None, new: ReplicaSet | None, names: list[str]
) -> None:
    # What else it is of does not matter.
    found = enqueue_revision_owner(DEPLOYMENTS, selects)(StaticCaches(controller, ONE, TWO), Change(old, new))
    assert list(found) == [Key("default", name) for name in names]


@pytest.mark.parametrize("selector", [None, LabelSelector()])
def test_a_selector_that_is_missing_or_selects_everything_is_no_use(selector: Any) -> None:
    owner = replace(ONE, spec=replace(ONE.spec, selector=selector))
    with pytest.raises(ValueError, match=r"spec\.selector is"):
        selector_of(owner)
    assert not selects(owner, ORPHAN)
