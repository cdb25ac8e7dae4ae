"""node-route-controller (a service): keeps a route in the cloud to the pod CIDRs of each node.

One round looks at all nodes and routes: it deletes the routes that lead nowhere, creates those that are missing and tells by the
condition NetworkUnavailable of each node whether its routes exist. Routes outside the cluster's CIDRs are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from steersman.api.cloud import Route
from steersman.api.conditions import find_condition
from steersman.api.errors import ApiError, NotFound
from steersman.api.go_duration import format_duration
from steersman.api.ip_addresses import Network, parse_cidr
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.meta import format_time
from steersman.api.scheme import Key
from steersman.controllers.shared.flags import ALLOCATE_NODE_CIDRS, CLUSTER_CIDR, CLUSTER_NAME
from steersman.intent.actions import Action, Batch, Emit, Failed, Outcome, Patch, PatchType
from steersman.intent.cloud import CreateRoute, DeleteRoute, ListRoutes
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure, Metric
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

PERIOD = Flag("route-reconciliation-period", 10.0, "The time between two looks at the routes of the cloud.")
CONFIGURE = Flag(
    "configure-cloud-routes", True, "Whether routes to the pods of nodes are set up in the cloud."
)
BY_CHANGES = "CloudControllerManagerWatchBasedRoutesReconciliation"
"""The feature gate with which routes are looked at when nodes change, instead of periodically."""
MIN_INTERVAL = 10.0
"""Seconds between two looks at the routes with that gate."""
MOST_CALLS = 200
"""Concurrent calls of the provider."""
ROUTES = Key("", "routes")
"""The one key of this controller."""
SYNCS = Metric("route_controller_route_sync_total", "Number of times that routes were synced with the cloud")


class Config(msgspec.Struct, frozen=True):
    """The controller's flags and gates."""

    cluster_name: str = CLUSTER_NAME.default
    cluster_cidrs: tuple[Network, ...] = ()
    period: float = PERIOD.default
    by_changes: bool = False


class Memory:
    """When the routes were last looked at."""

    def __init__(self) -> None:
        self.last: datetime | None = None


class Observed(msgspec.Struct, frozen=True):
    nodes: tuple[Node, ...]
    memory: Memory


class Plan(msgspec.Struct, frozen=True):
    """The calls that make the routes those of the nodes."""

    delete: tuple[Route, ...]
    create: tuple[tuple[Node, Route], ...]
    affected: tuple[Node, ...]
    """The nodes that have routes or should have some."""


def plan_routes(nodes: Sequence[Node], routes: Sequence[Route], cidrs: Sequence[Network]) -> Plan:
    """Compare the routes of the cloud with the pod CIDRs of nodes."""
    by_node: dict[str, list[Route]] = {}
    for route in routes:
        if route.target_node:
            by_node.setdefault(route.target_node, []).append(route)
    kept: set[tuple[str, str]] = set()
    create: dict[tuple[str, str], tuple[Node, Route]] = {}
    for node in nodes:
        for cidr in node.spec.podCIDRs:
            name = node.metadata.name
            if _has_route(by_node.get(name, ()), cidr, node):
                kept.add((name, cidr))
            else:
                route = Route(cidr, name, target_node_addresses=node.status.addresses)
                create[name, cidr] = node, route
    delete = tuple(
        route
        for route in routes
        if is_responsible(route, cidrs)
        and (route.blackhole or (route.target_node, route.destination_cidr) not in kept)
    )
    affected = tuple(node for node in nodes if node.spec.podCIDRs or node.metadata.name in by_node)
    return Plan(delete, tuple(create.values()), affected)


def _has_route(routes: Iterable[Route], cidr: str, node: Node) -> bool:
    """Whether the first route to the CIDR leads to the node's current addresses, as far as the provider knows them."""
    for route in routes:
        if route.destination_cidr == cidr:
            return not route.enable_node_addresses or _same_addresses(route, node)
    return False


def _same_addresses(route: Route, node: Node) -> bool:
    known, current = route.target_node_addresses, node.status.addresses
    return len(known) == len(current) and all(address in known for address in current)


def is_responsible(route: Route, cidrs: Iterable[Network]) -> bool:
    """Whether the destination begins or ends in one of the cluster's CIDRs. An invalid destination is left alone."""
    network = parse_cidr(route.destination_cidr)
    if network is None:
        return False
    return any(network[0] in cidr or network[-1] in cidr for cidr in cidrs)


def network_condition(node: Node, created: bool, now: datetime) -> Patch[Node] | None:
    """The patch of the condition NetworkUnavailable; None if it says so already."""
    status, reason = ("False", "RouteCreated") if created else ("True", "NoRouteCreated")
    known = find_condition(node.status.conditions, "NetworkUnavailable")
    if known is not None and (known.status, known.reason) == (status, reason):
        return None
    time = format_time(now)
    condition = {
        "type": "NetworkUnavailable",
        "status": status,
        "reason": reason,
        "message": "RouteController created a route"
        if created
        else "RouteController failed to create a route",
        "lastHeartbeatTime": time,
        "lastTransitionTime": time,
    }
    return Patch(node, {"status": {"conditions": [condition]}}, PatchType.STRATEGIC, subresource="status")


# -- the round ----------------------------------------------------------------------------------


def observe(caches: Caches, key: Key) -> Observed:
    return Observed(tuple(caches[NODES].list()), memory_of(caches, Memory))


async def decide(seen: Observed, now: datetime, config: Config = Config()) -> Verdict:
    if config.by_changes and seen.memory.last is not None:
        wait = MIN_INTERVAL - (now - seen.memory.last).total_seconds()
        if 0.0 < wait <= MIN_INTERVAL:
            return Wake(timedelta(seconds=wait), "routes were looked at a moment ago")
    seen.memory.last = now
    await Measure(SYNCS)
    routes = await ListRoutes(config.cluster_name)
    plan = plan_routes(seen.nodes, routes, config.cluster_cidrs)
    # A route that is replaced must be gone before its successor comes.
    deleted = await _call([DeleteRoute(config.cluster_name, route) for route in plan.delete])
    missing = await _create(plan.create, config)
    patches = [
        patch
        for node in plan.affected
        if (patch := network_condition(node, _is_reachable(node, missing), now)) is not None
    ]
    for patched in await _call(patches):
        # A node that is gone needs no condition. A failed deletion or creation is found again next time.
        if isinstance(patched, Failed) and not isinstance(patched.error, NotFound):
            raise patched.error
    failed = [outcome.error for outcome in deleted if isinstance(outcome, Failed)]
    failed += [error for errors in missing.values() for error in errors]
    because = f"routes of {len(seen.nodes)} nodes"
    if failed:
        because += f"; {len(failed)} calls failed, the first: {failed[0]}"
    if config.by_changes:
        return Wake(timedelta(seconds=MIN_INTERVAL), because) if failed else Rest(because)
    return Wake(timedelta(seconds=config.period), because)


def _is_reachable(node: Node, missing: Mapping[str, Sequence[ApiError]]) -> bool:
    """Whether the node has pod CIDRs, and a route to each."""
    return bool(node.spec.podCIDRs) and node.metadata.name not in missing


async def _create(wanted: Sequence[tuple[Node, Route]], config: Config) -> dict[str, list[ApiError]]:
    """Create routes; returns the errors by node."""
    began = await Elapsed()
    outcomes = await _call(
        [CreateRoute(config.cluster_name, node.metadata.uid, route) for node, route in wanted]
    )
    took = format_duration(await Elapsed() - began)
    errors: dict[str, list[ApiError]] = {}
    for (node, route), outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, Failed):
            errors.setdefault(node.metadata.name, []).append(outcome.error)
            message = (
                f"Could not create route {node.metadata.uid} {route.destination_cidr} "
                f"for node {node.metadata.name} after {took}: {outcome.error}"
            )
            await Emit(node, "Warning", "FailedToCreateRoute", message)
    return errors


async def _call(actions: Sequence[Action[Any]]) -> list[Outcome[Any]]:
    outcomes: list[Outcome[Any]] = []
    for start in range(0, len(actions), MOST_CALLS):
        outcomes += await Batch(tuple(actions[start : start + MOST_CALLS]), slow_start=False)
    return outcomes


# -- enqueue --------------------------------------------------------------------------------------


def _node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """With the gate: a node that comes or goes, gets other addresses or CIDRs, or is resynced."""
    old, new = change.old, change.new
    if old is None or new is None or old is new:
        return (ROUTES,)
    same = old.spec.podCIDRs == new.spec.podCIDRs and old.status.addresses == new.status.addresses
    return () if same else (ROUTES,)


def _never(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    return ()


def _enabled(settings: Settings) -> bool:
    return settings[ALLOCATE_NODE_CIDRS] and settings[CONFIGURE] and bool(settings[CLUSTER_CIDR].strip())


def configure(settings: Settings) -> Controller[Observed]:
    cidrs = (parse_cidr(text.strip()) for text in settings[CLUSTER_CIDR].split(","))
    config = Config(
        settings[CLUSTER_NAME],
        tuple(cidr for cidr in cidrs if cidr is not None),
        settings[PERIOD],
        settings.enabled(BY_CHANGES),
    )
    retry = MIN_INTERVAL if config.by_changes else config.period
    return Controller(
        name="node-route-controller",
        aliases=("route",),
        service_account="route-controller",
        event_component="route_controller",
        watches=(Watch(NODES, to=_node_changed if config.by_changes else _never),),
        workers=1,
        initial_keys=(ROUTES,),
        flags=(CLUSTER_NAME, CLUSTER_CIDR, ALLOCATE_NODE_CIDRS, PERIOD, CONFIGURE),
        configure=configure,
        enabled=_enabled,
        observe=observe,
        decide=partial(decide, config=config),
        memory=Memory,
        min_backoff=retry,
        max_backoff=retry,
        metrics=(SYNCS,),
        cloud="routes",
    )


controller = configure(DEFAULTS)
