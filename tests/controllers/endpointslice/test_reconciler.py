"""The reconciler in rows: how endpoints are packed, and which slices are created, updated and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.ip_addresses import Family
from steersman.api.kinds import Container, ContainerPort, ObjectMeta, Pod
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import EndpointSlice, Service, ServicePort
from steersman.controllers.endpointslice.endpoints import CONTROLLER_NAME
from steersman.controllers.endpointslice.metrics import count
from steersman.controllers.endpointslice.reconciler import (
    Reconciliation,
    SliceChanges,
    reconcile,
    reuse_deleted,
)
from steersman.controllers.shared.endpoint_slices import HEADLESS, MANAGED_BY, SERVICE_NAME, identity
from tests.harness.endpoint_slices import LATER, a_node, a_pod, a_service, a_slice, placeholder, pods

SERVICE = a_service()
NODES = {"node-1": a_node()}
OTHER_PORT = replace(
    SERVICE,
    spec=replace(SERVICE.spec, ports=(ServicePort(name="foo", targetPort=81, protocol="TCP"),)),
)


def run(
    service: Service,
    of: Iterable[Pod],
    existing: Sequence[EndpointSlice] = (),
    *,
    nodes: Mapping[str, Node] = NODES,
    family: Family = "IPv4",
    limit: int = 100,
) -> Reconciliation:
    """Reconciles one family, with creates turned into updates."""
    found = reconcile(service, of, nodes, existing, family, limit)
    return replace(found, changes=reuse_deleted(service, found.changes))


def after(changes: SliceChanges) -> list[EndpointSlice]:
    """The slices there are once the changes are written, with names for new ones."""
    created = [
        replace(slice, metadata=replace(slice.metadata, name=f"new-{number}", uid=f"new-{number}"))
        for number, slice in enumerate(changes.create)
    ]
    return [*changes.unchanged, *changes.update, *created]


def lengths(slices: Iterable[EndpointSlice]) -> list[int]:
    return sorted(len(slice.endpoints or ()) for slice in slices)


def writes(found: Reconciliation) -> tuple[int, int, int]:
    """The number of slices created, updated and deleted."""
    return len(found.changes.create), len(found.changes.update), len(found.changes.delete)


def counted(found: Reconciliation, limit: int = 100) -> tuple[int, int, int]:
    """The number of desired slices, of slices, and of endpoints."""
    counts = count(found.efficiency, limit, "")
    return counts.desired_slices, counts.slices, counts.endpoints


def test_a_service_without_pods_has_a_placeholder() -> None:
    found = run(SERVICE, [])
    (slice,) = found.changes.create
    assert (slice.ports, slice.endpoints) == ((), ())
    assert counted(found) == (1, 1, 0)
    assert (found.added, found.removed) == (0, 0)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param([], (1, 0, 0), id="none"),
        pytest.param([placeholder(SERVICE)], (0, 0, 0), id="the same"),
        pytest.param([a_slice(SERVICE, labels={"bar": "baz"})], (0, 1, 0), id="another"),
        pytest.param([placeholder(SERVICE), placeholder(SERVICE, 2)], (0, 1, 1), id="two of them"),
    ],
)
def test_a_placeholder_is_kept_or_written(
    existing: list[EndpointSlice], expected: tuple[int, int, int]
) -> None:
    found = run(SERVICE, [], existing)
    assert writes(found) == expected
    assert counted(found) == (1, 1, 0)


V4, V6 = "1.2.3.4", "1234::5678:0000:0000:9abc:def0"


@pytest.mark.parametrize(
    ("labels", "spec", "family", "address", "expected"),
    [
        pytest.param({}, {"clusterIP": "10.0.0.10", "ipFamilies": ()}, "IPv4", V4, {}, id="no families"),
        pytest.param({}, {}, "IPv4", V4, {HEADLESS: ""}, id="IPv4"),
        pytest.param({}, {"clusterIP": "1.1.1.1"}, "IPv4", V4, {}, id="IPv4, cluster IP"),
        pytest.param({"foo": "bar"}, {}, "IPv4", V4, {HEADLESS: "", "foo": "bar"}, id="labels"),
        pytest.param(
            {SERVICE_NAME: "bad", MANAGED_BY: "actor", HEADLESS: "invalid"},
            {},
            "IPv4",
            V4,
            {HEADLESS: ""},
            id="bad labels",
        ),
        pytest.param(
            {}, {"ipFamilies": ("IPv6",)}, "IPv6", "1234::5678:0:0:9abc:def0", {HEADLESS: ""}, id="IPv6"
        ),
        pytest.param(
            {}, {"clusterIP": "1234::1"}, "IPv6", "1234::5678:0:0:9abc:def0", {}, id="IPv6, cluster IP"
        ),
    ],
)
def test_one_pod_has_one_slice(
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    family: Family,
    address: str,
    expected: Mapping[str, str],
) -> None:
    pod = a_pod(1, ips=[V4, V6], hostname="example-hostname")
    node = {"node-1": a_node(zone="us-central1-a")}
    found = run(a_service(labels=labels, **spec), [pod], nodes=node, family=family)
    (slice,) = found.changes.create
    assert slice.metadata.labels == {SERVICE_NAME: "foo", MANAGED_BY: CONTROLLER_NAME, **expected}
    (endpoint,) = slice.endpoints or ()
    assert (endpoint.addresses, endpoint.zone, endpoint.hostname) == ((address,), "us-central1-a", None)
    assert (found.added, found.removed) == (1, 0)
    assert counted(found) == (1, 1, 1)


def spread(total: int, first: int, step: int = 4) -> list[int]:
    """Every fourth pod, as upstream's tables have it."""
    return list(range(first, total - 4, step))


def chosen(of: list[Pod], numbers: Iterable[int]) -> list[Pod]:
    return [of[number] for number in numbers]


def test_many_pods_fill_slices() -> None:
    found = run(SERVICE, pods(250))
    assert writes(found) == (3, 0, 0)
    assert lengths(found.changes.create) == [50, 100, 100]
    assert counted(found) == (3, 3, 250)
    assert found.added == 250


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (50, [50, 50, 50, 50, 50]),
        (80, [10, 80, 80, 80]),
        (150, [100, 150]),
        (250, [250]),
        (500, [250]),
    ],
)
def test_a_slice_has_no_more_endpoints_than_its_limit(limit: int, expected: list[int]) -> None:
    found = run(SERVICE, pods(250), limit=limit)
    assert lengths(found.changes.create) == expected
    assert counted(found, limit) == (len(expected), len(expected), 250)


@pytest.mark.parametrize(
    ("total", "written", "slices", "added", "desired"),
    [
        pytest.param(250, (1, 1, 0), [61, 89, 100], 127, (3, 3, 250), id="the rest fits in one"),
        pytest.param(300, (2, 0, 0), [52, 74, 74, 100], 152, (3, 4, 300), id="the rest fits in none"),
    ],
)
def test_new_endpoints_go_into_one_slice_where_they_fit(
    total: int,
    written: tuple[int, int, int],
    slices: list[int],
    added: int,
    desired: tuple[int, int, int],
) -> None:
    of = pods(total)
    existing = [
        a_slice(SERVICE, 1, chosen(of, spread(total, 1))),
        a_slice(SERVICE, 2, chosen(of, spread(total, 3))),
    ]
    found = run(SERVICE, of, existing)
    assert writes(found) == written
    assert lengths(after(found.changes)) == slices
    assert (found.added, found.removed) == (added, 0)
    assert counted(found) == desired


def test_a_changed_port_updates_slices_in_place() -> None:
    of = pods(250)
    existing = after(run(SERVICE, of).changes)
    found = run(OTHER_PORT, of, existing)
    assert writes(found) == (0, 3, 0)
    assert lengths(found.changes.update) == [50, 100, 100]
    # Each endpoint stays in its slice, so none is missing between two updates.
    places = {identity(one): slice.metadata.name for slice in existing for one in slice.endpoints or ()}
    for slice in found.changes.update:
        assert {places[identity(one)] for one in slice.endpoints or ()} == {slice.metadata.name}


def test_changed_labels_of_a_service_update_all_slices() -> None:
    of = pods(250)
    existing = after(run(SERVICE, of).changes)
    found = run(a_service(labels={"foo": "bar"}), of, existing)
    assert writes(found) == (0, 3, 0)
    assert all(slice.metadata.labels["foo"] == "bar" for slice in found.changes.update)


def test_changed_reserved_labels_of_a_service_change_nothing() -> None:
    of = pods(250)
    existing = after(run(SERVICE, of).changes)
    evil = a_service(labels={SERVICE_NAME: "bad", MANAGED_BY: "actor", HEADLESS: "invalid"})
    assert writes(run(evil, of, existing)) == (0, 0, 0)


def test_slices_are_repacked_only_when_all_of_them_change() -> None:
    of = pods(300)
    existing = [a_slice(SERVICE, number, of[30 * number : 30 * number + 30]) for number in range(10)]
    assert writes(run(SERVICE, of, existing)) == (0, 0, 0)
    found = run(OTHER_PORT, of, existing)
    assert writes(found) == (0, 3, 7)
    assert lengths(after(found.changes)) == [100, 100, 100]
    assert counted(found) == (3, 3, 300)
    assert (found.added, found.removed) == (300, 0)


def test_the_fullest_of_the_slices_that_change_anyway_is_filled() -> None:
    first, second = [a_pod(n) for n in range(80)], [a_pod(n) for n in range(100, 120)]
    existing = [a_slice(SERVICE, 2, second), a_slice(SERVICE, 1, first)]
    changed = [
        a_pod(int(pod.metadata.name[3:]), ready=number % 10 != 0)
        for number, pod in enumerate([*first, *second])
    ]
    found = run(SERVICE, [*changed, *(a_pod(n) for n in range(200, 215))], existing)
    assert writes(found) == (0, 2, 0)
    assert lengths(after(found.changes)) == [20, 95]
    assert found.added == 15


def test_fewer_pods_leave_their_slice() -> None:
    of = [a_pod(number) for number in range(20)]
    existing = after(run(SERVICE, of).changes)
    found = run(SERVICE, of[:10], existing)
    assert writes(found) == (0, 1, 0)
    assert (found.added, found.removed) == (0, 10)
    assert counted(found) == (1, 1, 10)


def test_an_endpoint_in_two_slices_stays_in_one() -> None:
    of = [a_pod(1), a_pod(2)]
    found = run(SERVICE, of, [a_slice(SERVICE, 1, of), a_slice(SERVICE, 2, of)])
    assert [slice.metadata.name for slice in found.changes.delete] == ["foo-2"]
    assert writes(found) == (0, 0, 1)


@pytest.mark.parametrize(
    ("meta", "replaced"),
    [
        ({}, False),
        ({"ownerReferences": ()}, True),
        ({"ownerReferences": a_slice(a_service("bar")).metadata.ownerReferences}, True),
    ],
    ids=["owned", "without owner", "of another Service"],
)
def test_a_slice_of_another_owner_is_replaced_and_never_reused(
    meta: Mapping[str, Any], replaced: bool
) -> None:
    found = run(SERVICE, [a_pod(1)], [a_slice(SERVICE, 1, [a_pod(1)], **meta)])
    assert writes(found) == ((1, 0, 1) if replaced else (0, 0, 0))


def http_on(number: int, port: int) -> Pod:
    ports = (ContainerPort(name="http", containerPort=port, protocol="TCP"),)
    return a_pod(number, ready=number % 3 != 0, containers=(Container(ports=ports),))


def test_pods_with_different_ports_have_different_slices() -> None:
    service = a_service(ports=(ServicePort(targetPort="http", protocol="TCP"),))
    of = [http_on(number, 8080 + number % 5) for number in range(300)]
    found = run(service, of)
    assert lengths(found.changes.create) == [60] * 5
    assert counted(found) == (5, 5, 300)
    ports = sorted(port.port or 0 for slice in found.changes.create for port in slice.ports or ())
    assert ports == [8080, 8081, 8082, 8083, 8084]


def test_a_headless_service_without_ports_is_not_written_again() -> None:
    service = a_service(clusterIP="None", ports=())
    (created,) = after(run(service, [a_pod(1)]).changes)
    # A server may store no ports as null.
    assert writes(run(service, [a_pod(1)], [replace(created, ports=None)])) == (0, 0, 0)


ON = [a_pod(0, nodeName="node-0"), a_pod(1, nodeName="node-1")]
BOTH = {"node-0": a_node("node-0"), "node-1": a_node("node-1")}
FIRST = {"node-0": a_node("node-0")}
OF_BOTH = [a_slice(SERVICE, 1, ON)]


@pytest.mark.parametrize(
    ("publish", "nodes", "existing", "written", "endpoints", "changed", "missing"),
    [
        pytest.param(False, FIRST, [], (1, 0, 0), 1, (1, 0), 1, id="created without the pod"),
        pytest.param(True, FIRST, [], (1, 0, 0), 2, (2, 0), 0, id="created, published"),
        pytest.param(False, FIRST, OF_BOTH, (0, 1, 0), 1, (0, 1), 1, id="updated without the pod"),
        pytest.param(True, {}, OF_BOTH, (0, 0, 0), 2, (0, 0), 0, id="no nodes, published"),
        pytest.param(True, FIRST, OF_BOTH, (0, 0, 0), 2, (0, 0), 0, id="one node, published"),
        pytest.param(False, {}, OF_BOTH, (0, 1, 0), 0, (0, 2), 2, id="no nodes: a placeholder in its place"),
        pytest.param(False, BOTH, OF_BOTH, (0, 0, 0), 2, (0, 0), 0, id="all nodes"),
    ],
)
def test_a_pod_on_a_missing_node_is_left_out_unless_all_are_published(
    publish: bool,
    nodes: Mapping[str, Node],
    existing: list[EndpointSlice],
    written: tuple[int, int, int],
    endpoints: int,
    changed: tuple[int, int],
    missing: int,
) -> None:
    # The conditions of ready pods are the same with and without publishing.
    service = a_service(publishNotReadyAddresses=publish)
    found = run(service, ON, existing, nodes=nodes)
    assert writes(found) == written
    assert counted(found) == (1, 1, endpoints)
    assert (found.added, found.removed) == changed
    assert len(found.unplaced) == missing


@pytest.mark.parametrize(
    ("create", "delete", "expected"),
    [
        (1, 0, (1, 1, 0)),
        (1, 1, (0, 2, 0)),
        (0, 1, (0, 1, 1)),
        (2, 1, (1, 2, 0)),
        (1, 2, (0, 2, 1)),
    ],
)
def test_a_slice_to_create_takes_the_place_of_one_to_delete(
    create: int, delete: int, expected: tuple[int, int, int]
) -> None:
    new = EndpointSlice(metadata=ObjectMeta(generateName="foo-"), addressType="IPv4")
    updated = a_slice(SERVICE, 0)
    old = tuple(
        a_slice(SERVICE, number + 1, resourceVersion="7", annotations={"a": "b"}) for number in range(delete)
    )
    changes = reuse_deleted(SERVICE, SliceChanges((new,) * create, (updated,), old))
    assert (len(changes.create), len(changes.update), len(changes.delete)) == expected
    for slice in changes.update[1:]:
        assert slice.metadata.name.startswith("foo-")
        assert slice.metadata.resourceVersion == "", "what changed in it meanwhile is replaced"
        assert not slice.metadata.annotations


# -- invariants -----------------------------------------------------------------------------------

STATES = st.lists(st.dictionaries(st.integers(0, 12), st.booleans(), max_size=9), min_size=2, max_size=5)


@given(STATES, st.integers(1, 4))
def test_no_endpoint_of_two_states_is_missing_between_them(states: list[dict[int, bool]], limit: int) -> None:
    """Whatever is written in whatever number of writes: an endpoint that stays is always in some slice."""
    slices: list[EndpointSlice] = []
    for number, state in enumerate(states):
        of = [a_pod(pod, ready=ready) for pod, ready in state.items()]
        before = addresses(slices)
        changes = run(SERVICE, of, slices, limit=limit).changes
        wanted = {pod.status.podIP for pod in of}
        stays = before & wanted
        for world in worlds(slices, changes, number):
            assert stays <= addresses(world)
            slices = world
        assert addresses(slices) == wanted
        assert sum(len(slice.endpoints or ()) for slice in slices) == len(wanted)
        assert all(len(slice.endpoints or ()) <= limit for slice in slices)
        assert writes(run(SERVICE, of, slices, limit=limit)) == (0, 0, 0), "a second look changes nothing"


def addresses(slices: Iterable[EndpointSlice]) -> set[str]:
    return {address for slice in slices for one in slice.endpoints or () for address in one.addresses}


def worlds(slices: list[EndpointSlice], changes: SliceChanges, number: int) -> Iterable[list[EndpointSlice]]:
    """The slices after each write, in the order of writes."""
    world = {slice.metadata.name: slice for slice in slices}
    for index, slice in enumerate(changes.create):
        name = f"s-{number}-{index}"
        world[name] = replace(slice, metadata=replace(slice.metadata, name=name, uid=name))
        yield list(world.values())
    for slice in changes.update:
        world[slice.metadata.name] = slice
        yield list(world.values())
    for slice in changes.delete:
        del world[slice.metadata.name]
        yield list(world.values())


def test_a_service_that_is_deleted_is_reconciled_like_any_other() -> None:
    assert writes(run(a_service(deleted=LATER), [a_pod(1)])) == (1, 0, 0), (
        "the creates are left out when written"
    )
