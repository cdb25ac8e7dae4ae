"""clusterrole-aggregation, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from steersman.api.kinds import LabelSelector, LabelSelectorRequirement, ObjectMeta
from steersman.api.kinds.rbac import CLUSTERROLES, AggregationRule, ClusterRole, PolicyRule
from steersman.controllers.clusterroleaggregation import aggregated_rules, controller, decide
from steersman.intent.actions import Patch, PatchType
from steersman.intent.verdict import InvalidSpec, Rest
from steersman.runtime.controller_group import ControllerGroup
from steersman.sim.world import World
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS = PolicyRule(apiGroups=("",), resources=("pods",), verbs=("get",))
JOBS = PolicyRule(apiGroups=("batch",), resources=("jobs",), verbs=("get", "list"))


def role(name: str, *rules: PolicyRule, labels: Mapping[str, str] | None = None) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name=name, uid=name, labels=labels or {}), rules=rules)


def collector(*rules: PolicyRule, by: tuple[Mapping[str, str], ...] = ({"to": "view"},)) -> ClusterRole:
    return ClusterRole(
        metadata=ObjectMeta(name="view", uid="view", labels={"to": "view"}),
        aggregationRule=AggregationRule(
            clusterRoleSelectors=tuple(LabelSelector(matchLabels=labels) for labels in by)
        ),
        rules=rules,
    )


def seen(*roles: ClusterRole):  # type: ignore[no-untyped-def]
    return controller.see(StaticCaches(controller, *roles), roles[0].key)


def test_rules_are_collected_once_each_in_the_order_of_selectors_and_names() -> None:
    collecting = collector(by=({"to": "view"}, {"also": "view"}))
    looked = seen(
        collecting,
        role("b", JOBS, PODS, labels={"to": "view"}),
        role("a", PODS, labels={"also": "view"}),
        role("c", JOBS, labels={"to": "edit"}),
    )
    assert aggregated_rules(looked) == (JOBS, PODS)


def test_a_role_never_collects_its_own_rules() -> None:
    assert aggregated_rules(seen(collector(PODS))) == ()


def test_missing_rules_are_applied_by_force_and_nothing_but_rules() -> None:
    collecting = collector(PODS)
    actions, verdict = walk(decide(seen(collecting, role("a", JOBS, labels={"to": "view"})), NOW))
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "view"},
        "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]}],
    }
    manager = "clusterrole-aggregation-controller"
    assert actions == [Patch(collecting, body, PatchType.APPLY, field_manager=manager, force=True)]
    assert verdict == Rest("rules updated: 1")


@pytest.mark.parametrize(
    ("roles", "because"),
    [
        ((role("plain", PODS),), "no aggregationRule"),
        ((collector(JOBS), role("a", JOBS, labels={"to": "view"})), "rules up to date"),
    ],
)
def test_nothing_is_written_where_nothing_is_missing(roles: tuple[ClusterRole, ...], because: str) -> None:
    assert walk(decide(seen(*roles), NOW)) == ([], Rest(because))


def test_a_selector_that_cannot_be_fails_alone() -> None:
    broken = ClusterRole(
        metadata=ObjectMeta(name="view"),
        aggregationRule=AggregationRule(
            clusterRoleSelectors=(
                LabelSelector(matchExpressions=(LabelSelectorRequirement(key="a", operator="Near"),)),
            )
        ),
    )
    with pytest.raises(InvalidSpec, match="Near"):
        walk(decide(seen(broken), NOW))


def test_every_change_of_a_role_is_a_reason_to_look_at_those_that_aggregate() -> None:
    with World(seed=1) as world:
        world.spawn(ControllerGroup((controller,), world.api("manager"), world).run())
        api = world.api()
        world.run(api.create(CLUSTERROLES, "", collector()))
        world.run(api.create(CLUSTERROLES, "", role("a", JOBS, labels={"to": "view"})))
        world.run(world.settle())
        assert [one.resources for one in world.run(api.get(CLUSTERROLES, "", "view")).rules or ()] == [
            ("jobs",)
        ]
        world.run(api.delete(CLUSTERROLES, "", "a"))
        world.run(world.settle())
        assert not world.run(api.get(CLUSTERROLES, "", "view")).rules


# -- upstream's table -----------------------------------------------------------------------------

HAMMER = (
    PolicyRule(verbs=("hammer",), resources=("nails",)),
    PolicyRule(verbs=("hammer",), resources=("wedges",)),
)
CHISEL = (PolicyRule(verbs=("chisel",), resources=("mortises",)),)
SAW = (PolicyRule(verbs=("saw",), resources=("boards",)),)
BAR, NOT_BAR = {"foo": "bar"}, {"foo": "not-bar"}
BOTH = (BAR, NOT_BAR)


@pytest.mark.parametrize(
    ("combined", "others", "rules"),
    [
        (collector(*SAW, by=(BAR,)), [role("hammer", *HAMMER, labels=BAR)], HAMMER),
        (collector(*HAMMER, by=(BAR,)), [role("hammer", *HAMMER, labels=NOT_BAR)], ()),
        (
            collector(by=(BAR,)),
            [
                role("hammer", *HAMMER, labels=BAR),
                role("chisel", *CHISEL, labels=BAR),
                role("saw", *SAW, labels=NOT_BAR),
            ],
            (*CHISEL, *HAMMER),
        ),
        (
            collector(by=BOTH),
            [
                role("hammer", *HAMMER, labels=BAR),
                role("chisel", *CHISEL, labels=BAR),
                role("saw", *SAW, labels=NOT_BAR),
            ],
            (*CHISEL, *HAMMER, *SAW),
        ),
        (
            collector(by=BOTH),
            [
                role("hammer", *HAMMER, labels=BAR),
                role("chisel", *CHISEL, labels=BAR),
                role("saw", *SAW, labels=BAR),
                role("other-saw", *SAW, labels=NOT_BAR),
            ],
            (*CHISEL, *HAMMER, *SAW),
        ),
        (collector(*HAMMER, by=(BAR,)), [role("hammer", *HAMMER, labels=BAR)], None),
        # An aggregationRule without selectors selects nothing; an empty selector selects all.
        (collector(*HAMMER, by=()), [role("hammer", *HAMMER, labels=BAR)], ()),
        (collector(by=({},)), [role("saw", *SAW)], SAW),
    ],
    ids=[
        "dead rules removed",
        "rules removed",
        "in the order of names",
        "several selectors",
        "duplicates removed",
        "up to date",
        "no selectors",
        "an empty selector",
    ],
)
def test_a_role_gets_the_rules_of_those_it_selects(
    combined: ClusterRole, others: list[ClusterRole], rules: tuple[PolicyRule, ...] | None
) -> None:
    actions, _ = walk(decide(seen(combined, *others), NOW))
    if rules is None:
        assert actions == []
        return
    (patch,) = actions
    assert isinstance(patch, Patch)
    assert patch.body["rules"] == [
        {"resources": list(rule.resources), "verbs": list(rule.verbs or ())} for rule in rules
    ]


def test_a_list_that_is_empty_and_one_that_is_missing_are_the_same() -> None:
    combined = ClusterRole(
        metadata=ObjectMeta(name="view", uid="view"),
        aggregationRule=AggregationRule(clusterRoleSelectors=(LabelSelector(matchLabels=BAR),)),
        rules=None,
    )
    assert walk(decide(seen(combined), NOW)) == ([], Rest("rules up to date"))
