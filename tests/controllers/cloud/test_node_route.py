"""node-route-controller: rows of upstream's controller tests, and the steps of a round."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.cloud import CloudError, Route
from steersman.api.errors import NotFound, ServerError
from steersman.api.ip_addresses import Network, parse_cidr
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus
from steersman.controllers.cloud.node_route import (
    BY_CHANGES,
    MOST_CALLS,
    ROUTES,
    Memory,
    controller,
    is_responsible,
    network_condition,
    plan_routes,
)
from steersman.intent.actions import Action, Emit, Patch
from steersman.intent.cloud import CreateRoute, DeleteRoute, ListRoutes
from steersman.intent.controller import Change, Controller
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FLAGS: dict[str, Any] = {"allocate-node-cidrs": True, "cluster-cidr": "10.120.0.0/16,ace:cab:deca::/8"}


def network(text: str) -> Network:
    found = parse_cidr(text)
    assert found is not None
    return found


def addresses(ip: str) -> tuple[NodeAddress, ...]:
    return (NodeAddress("InternalIP", ip),) if ip else ()


def node(name: str, ip: str, *cidrs: str, condition: NodeCondition | None = None) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, uid=name.removeprefix("node-").zfill(2)),
        spec=NodeSpec(podCIDRs=cidrs),
        status=NodeStatus(addresses=addresses(ip), conditions=(condition,) if condition else ()),
    )


def route(target: str, ip: str, cidr: str, *, known: bool = False, blackhole: bool = False) -> Route:
    return Route(cidr, target, f"{target} {cidr}", addresses(ip), known, blackhole)


NODE_1 = node("node-1", "10.0.1.1", "10.120.0.0/24")
NODE_2 = node("node-2", "10.0.2.1", "10.120.1.0/24")
NO_CIDR = node("node-2", "10.0.5.1")
NODE_3 = node("node-3", "10.0.3.1", "10.120.0.0/24", "a00:100::/24")
NODE_4 = node("node-4", "10.0.4.1", "10.120.1.0/24", "a00:200::/24")
TWICE = node("node-4", "10.0.4.1", "10.120.1.0/24", "10.120.1.0/24")
R1, R2 = route("node-1", "10.0.1.1", "10.120.0.0/24"), route("node-2", "10.0.2.1", "10.120.1.0/24")
R3 = route("node-3", "10.0.3.1", "10.120.0.0/24"), route("node-3", "10.0.3.1", "a00:100::/24")
R4 = route("node-4", "10.0.4.1", "10.120.1.0/24"), route("node-4", "10.0.4.1", "a00:200::/24")


def all_known(*routes: Route, ip: str = "") -> list[Route]:
    return [replace(one, enable_node_addresses=True, target_node_addresses=addresses(ip)) for one in routes]


TABLE: dict[str, tuple[list[Node], list[Route], list[Route]]] = {
    "routes without addresses": ([NODE_3, NODE_4], all_known(*R3, *R4), [*R3, *R4]),
    "routes with other addresses": ([NODE_3, NODE_4], all_known(*R3, *R4, ip="10.0.13.1"), [*R3, *R4]),
    "two families, no routes": ([NODE_3, NODE_4], [], [*R3, *R4]),
    "two families, all routes": ([NODE_3, NODE_4], [*R3, *R4], [*R3, *R4]),
    "two families, wrong routes": (
        [NODE_3, NODE_4],
        [
            route("node-3", "10.0.3.1", "10.120.1.0/24"),
            route("node-4", "10.0.4.1", "10.120.0.0/24"),
            route("node-3", "10.0.3.1", "a00:200::/24"),
            route("node-4", "10.0.4.1", "a00:100::/24"),
        ],
        [*R3, *R4],
    ),
    "two families, some routes": ([NODE_3, NODE_4], [R3[0], R4[1]], [*R3, *R4]),
    "two families, too many routes": (
        [NODE_3, NODE_4],
        [
            *R3,
            *R4,
            route("node-x", "10.0.5.1", "10.120.2.0/24"),
            route("node-y", "10.0.6.1", "a00:300::/24"),
        ],
        [*R3, *R4],
    ),
    "all routes": ([NODE_1, NODE_2], [R1, R2], [R1, R2]),
    "other addresses": (
        [NODE_1, NODE_2],
        [
            route("node-1", "10.0.1.2", "10.120.0.0/24", known=True),
            route("node-2", "10.0.2.2", "10.120.1.0/24", known=True),
        ],
        [R1, R2],
    ),
    "one route": ([NODE_1, NODE_2], [R1], [R1, R2]),
    "no routes": ([NODE_1, NODE_2], [], [R1, R2]),
    "too many routes": (
        [NODE_1, NODE_2],
        [
            R1,
            R2,
            route("node-3", "10.0.3.1", "10.120.2.0/24"),
            route("node-4", "10.0.4.1", "10.120.3.0/24"),
        ],
        [R1, R2],
    ),
    "one wrong route": ([NODE_1, NODE_2], [R1, route("node-3", "10.0.2.1", "10.120.2.0/24")], [R1, R2]),
    "a node without a CIDR": ([NODE_1, NO_CIDR], [], [R1]),
    "a blackhole in the cluster": (
        [NODE_1, NODE_2],
        [R1, R2, route("", "10.0.100.1", "10.120.2.0/24", blackhole=True)],
        [R1, R2],
    ),
    "a blackhole elsewhere": (
        [NODE_1, NODE_2],
        [R1, R2, route("", "10.0.100.1", "10.1.2.0/24", blackhole=True)],
        [R1, R2, route("", "10.0.100.1", "10.1.2.0/24", blackhole=True)],
    ),
    # differs: upstream creates the route twice, and the second attempt fails.
    "a CIDR twice": ([TWICE], [], [R4[0]]),
    # Not in upstream's table:
    "a blackhole to a node": (
        [NODE_1],
        [route("node-1", "10.0.1.1", "10.120.0.0/24", blackhole=True)],
        [],
    ),
    "a route to no CIDR": ([NODE_1], [R1, route("x", "", "nonsense")], [R1, route("x", "", "nonsense")]),
}


def ends(routes: list[Route]) -> list[tuple[str, str, tuple[NodeAddress, ...]]]:
    return sorted((one.target_node, one.destination_cidr, one.target_node_addresses) for one in routes)


@pytest.mark.parametrize(("nodes", "before", "after"), TABLE.values(), ids=TABLE)
def test_routes_become_those_of_the_nodes(nodes: list[Node], before: list[Route], after: list[Route]) -> None:
    plan = plan_routes(nodes, before, [network("10.120.0.0/16"), network("ace:cab:deca::/8")])
    made = [one for one in before if one not in plan.delete] + [one for _, one in plan.create]
    assert ends(made) == ends(after)
    again = plan_routes(nodes, made, [network("10.120.0.0/16"), network("ace:cab:deca::/8")])
    assert not again.delete
    assert again.create == () or "blackhole" in str(before)


@pytest.mark.parametrize(
    ("cluster", "destination", "expected"),
    [
        ("10.244.0.0/16", "10.244.0.0/24", True),
        ("10.244.0.0/16", "10.244.10.0/24", True),
        ("10.244.0.0/16", "10.244.255.0/24", True),
        ("10.244.0.0/14", "10.244.0.0/24", True),
        ("10.244.0.0/14", "10.247.255.0/24", True),
        ("a00:100::/10", "a00:100::/24", True),
        ("10.244.0.0/16", "10.224.0.0/24", False),
        ("10.244.0.0/16", "10.0.10.0/24", False),
        ("10.244.0.0/16", "10.255.255.0/24", False),
        ("10.244.0.0/14", "10.248.0.0/24", False),
        ("10.244.0.0/14", "10.243.255.0/24", False),
        ("a00:100::/10", "b00:100::/24", False),
    ],
)
def test_only_routes_into_the_cluster_are_ours(cluster: str, destination: str, expected: bool) -> None:
    assert is_responsible(Route(destination, "n"), [network(cluster)]) is expected


CREATED, NOT_CREATED = ("False", "RouteCreated"), ("True", "NoRouteCreated")


@pytest.mark.parametrize(
    ("before", "created", "after"),
    [
        (None, True, CREATED),
        (None, False, NOT_CREATED),
        (CREATED, True, None),
        (("False", "CalicoIsUp"), True, CREATED),
        (("False", "SomeOtherReason"), True, CREATED),
        (("True", "SomeOtherReason"), False, NOT_CREATED),
        (CREATED, False, NOT_CREATED),
        (NOT_CREATED, False, None),
    ],
)
def test_the_condition_of_a_node_tells_whether_it_has_its_routes(
    before: tuple[str, str] | None, created: bool, after: tuple[str, str] | None
) -> None:
    known = None
    if before is not None:
        known = NodeCondition(type="NetworkUnavailable", status=before[0], reason=before[1])
    patch = network_condition(node("node-1", "", condition=known), created, NOW)
    if after is None:
        assert patch is None
        return
    assert patch is not None
    message = "RouteController created a route" if created else "RouteController failed to create a route"
    assert patch.body == {
        "status": {
            "conditions": [
                {
                    "type": "NetworkUnavailable",
                    "status": after[0],
                    "reason": after[1],
                    "message": message,
                    "lastHeartbeatTime": "2026-01-01T12:00:00Z",
                    "lastTransitionTime": "2026-01-01T12:00:00Z",
                }
            ]
        }
    }
    assert patch.subresource == "status"


# -- rounds -----------------------------------------------------------------------------------


def configured(flags: dict[str, Any] | None = None, **gates: bool) -> Controller[Any]:
    made = controller.configured(Settings({**FLAGS, **(flags or {})}, gates))
    assert made is not None
    return made


def look(
    one: Controller[Any], *nodes: Node, last: datetime | None = None, answers: Any = None
) -> tuple[list[Action[Any]], Verdict]:
    caches = StaticCaches(one, *nodes)
    assert isinstance(caches.memory, Memory)
    caches.memory.last = last
    seen = one.see(caches, ROUTES)
    assert seen is not None
    actions, verdict = walk(one.decide(seen, NOW), answers)
    return [each for each in actions if not isinstance(each, Elapsed | Measure)], verdict


def test_a_round_deletes_then_creates_then_tells() -> None:
    stale = route("node-9", "", "10.120.9.0/24")
    actions, verdict = look(configured(), NODE_1, NO_CIDR, answers={ListRoutes: (stale,)})
    assert [type(one) for one in actions] == [ListRoutes, DeleteRoute, CreateRoute, Patch]
    assert actions[1] == DeleteRoute("kubernetes", stale)
    created = Route("10.120.0.0/24", "node-1", target_node_addresses=addresses("10.0.1.1"))
    assert actions[2] == CreateRoute("kubernetes", "01", created)
    (patch,) = (one for one in actions if isinstance(one, Patch))
    assert patch.target is NODE_1
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=10)


def test_a_route_that_cannot_be_created_is_told_and_its_node_is_unavailable() -> None:
    def answer(action: Action[Any]) -> Any:
        failing = isinstance(action, CreateRoute) and action.route.target_node == "node-2"
        return CloudError("table is full") if failing else USUAL

    actions, verdict = look(configured(), NODE_1, NODE_2, answers=answer)
    (event,) = (one for one in actions if isinstance(one, Emit))
    assert (event.type, event.reason) == ("Warning", "FailedToCreateRoute")
    assert event.message == (
        "Could not create route 02 10.120.1.0/24 for node node-2 after 0s: table is full"
    )
    reasons = {
        one.target.metadata.name: one.body["status"]["conditions"][0]["reason"]
        for one in actions
        if isinstance(one, Patch)
    }
    assert reasons == {"node-1": "RouteCreated", "node-2": "NoRouteCreated"}
    assert "1 calls failed, the first: table is full" in verdict.because


def test_a_node_whose_route_has_no_cidr_any_more_is_unavailable() -> None:
    old = route("node-2", "10.0.5.1", "10.120.1.0/24")
    actions, _ = look(configured(), NO_CIDR, answers={ListRoutes: (old,)})
    (patch,) = (one for one in actions if isinstance(one, Patch))
    assert patch.body["status"]["conditions"][0]["reason"] == "NoRouteCreated"


def test_routes_that_cannot_be_listed_are_never_none() -> None:
    with pytest.raises(CloudError, match="no answer"):
        look(configured(), NODE_1, answers={ListRoutes: CloudError("no answer")})


def test_a_route_that_cannot_be_deleted_holds_up_nothing() -> None:
    stale = route("node-9", "", "10.120.9.0/24")
    answers = {ListRoutes: (stale,), DeleteRoute: CloudError("locked")}
    actions, verdict = look(configured(), NODE_1, answers=answers)
    assert [type(one) for one in actions][2:] == [CreateRoute, Patch]
    assert "locked" in verdict.because


def test_a_condition_that_cannot_be_written_fails_the_round_unless_the_node_is_gone() -> None:
    look(configured(), NODE_1, answers={Patch: NotFound("gone")})
    with pytest.raises(ServerError):
        look(configured(), NODE_1, answers={Patch: ServerError("down")})


def test_calls_are_limited() -> None:
    most = 0
    running = 0

    def answer(action: Action[Any]) -> Any:
        nonlocal most, running
        running = running + 1 if isinstance(action, CreateRoute) else 0
        most = max(most, running)
        return USUAL

    nodes = [node(f"node-{n}", "", f"10.120.{n % 256}.{n // 256}/32") for n in range(MOST_CALLS + 5)]
    actions, _ = look(configured(), *nodes, answers=answer)
    assert sum(isinstance(one, CreateRoute) for one in actions) == MOST_CALLS + 5


@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        ({}, True),
        ({"configure-cloud-routes": False}, False),
        ({"allocate-node-cidrs": False}, False),
        ({"cluster-cidr": ""}, False),
    ],
)
def test_flags_say_whether_it_runs(flags: dict[str, Any], runs: bool) -> None:
    assert (controller.configured(Settings({**FLAGS, **flags})) is not None) is runs


def test_the_period_is_a_flag() -> None:
    _, verdict = look(configured({"route-reconciliation-period": 60.0}))
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=60)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (node("node-1", "10.0.1.2", "10.120.0.0/24"), True),
        (node("node-1", "10.0.1.1", "10.121.0.0/24"), True),
        (NODE_1, True),
        (replace(NODE_1, metadata=replace(NODE_1.metadata, labels={"a": "b"})), False),
        (None, True),
    ],
    ids=["address", "CIDR", "resync", "label", "deleted"],
)
def test_with_the_gate_changes_of_nodes_lead_to_a_round(new: Node | None, expected: bool) -> None:
    for gate in (True, False):
        (watch,) = configured(None, **{BY_CHANGES: gate}).watches
        keys = list(watch.to(StaticCaches(controller), Change(NODE_1, new)))
        assert keys == ([ROUTES] if expected and gate else [])


def test_with_the_gate_rounds_are_ten_seconds_apart() -> None:
    one = configured(None, **{BY_CHANGES: True})
    actions, verdict = look(one, NODE_1, last=NOW - timedelta(seconds=4))
    assert actions == []
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=6)
    actions, verdict = look(one, NODE_1, last=NOW - timedelta(seconds=10))
    assert actions
    assert isinstance(verdict, Rest)
