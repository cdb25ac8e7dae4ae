"""endpointslice-mirroring-controller: upstream's rows, and Endpoints that are mirrored in a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Cause, Conflict, Forbidden, NotFound, ServerError
from steersman.api.kinds import ObjectMeta, ObjectReference, OwnerReference
from steersman.api.kinds.services import (
    ENDPOINTSLICES,
    Endpoint,
    EndpointAddress,
    EndpointConditions,
    EndpointPort,
    Endpoints,
    EndpointSlice,
    EndpointsPort,
    EndpointSubset,
    Service,
    ServiceSpec,
)
from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.api.scheme import Key
from steersman.controllers.endpointslicemirroring import (
    LEADER,
    SKIP_MIRROR,
    Memory,
    controller,
    metrics,
    should_mirror,
)
from steersman.controllers.endpointslicemirroring.reconciler import MIRROR, Size, recycle
from steersman.controllers.shared.endpoint_slices import MANAGED_BY, SERVICE_NAME
from steersman.controllers.shared.trigger_time import LAST_CHANGE_TRIGGER_TIME
from steersman.intent.actions import Action, Create, Delete, Emit, Update
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = Key("test", "test-ep")
UID = "d8f2c1f6"
MIRRORED = {SERVICE_NAME: "test-ep", MANAGED_BY: MIRROR}
V4, V6 = "IPv4", "IPv6"


def subset(text: str) -> EndpointSubset:
    """A subset: ``10.0.0.1/pod-1/node-1 !10.0.0.2 | http:80/TCP``; the second address is not ready."""
    addresses, _, ports = text.partition("|")
    words = addresses.split()
    return EndpointSubset(
        addresses=tuple(address(word) for word in words if word[0] != "!"),
        notReadyAddresses=tuple(address(word[1:]) for word in words if word[0] == "!"),
        ports=tuple(map(port, ports.split())),
    )


def address(word: str) -> EndpointAddress:
    ip, _, rest = word.partition("/")
    hostname, _, node = rest.partition("/")
    return EndpointAddress(ip=ip, hostname=hostname, nodeName=node or None)


def port(word: str) -> EndpointsPort:
    name, _, rest = word.partition(":")
    number, _, protocol = rest.partition("/")
    return EndpointsPort(name=name, port=int(number), protocol=protocol)


def endpoints(*subsets: str, **meta: Any) -> Endpoints:
    meta = {"name": "test-ep", "namespace": "test", "uid": UID, **meta}
    return Endpoints(metadata=ObjectMeta(**meta), subsets=tuple(map(subset, subsets)))


def service(selector: Mapping[str, str] = {}) -> Service:
    return Service(metadata=ObjectMeta(name="test-ep", namespace="test"), spec=ServiceSpec(selector=selector))


def mirrored(
    addresses: Sequence[str] = (),
    ports: str = "http:80/TCP",
    *,
    name: str = "test-ep-1",
    family: str = V4,
    ready: bool | None = True,
    **meta: Any,
) -> EndpointSlice:
    """A slice that exists."""
    meta = {"labels": MIRRORED, "namespace": "test", "uid": name, "resourceVersion": "1", **meta}
    given = [address(word) for word in addresses]
    return EndpointSlice(
        metadata=ObjectMeta(name=name, **meta),
        addressType=family,
        endpoints=tuple(
            Endpoint(
                addresses=tuple(one.ip.split(",")),
                hostname=one.hostname or None,
                nodeName=one.nodeName,
                conditions=EndpointConditions(ready=ready),
            )
            for one in given
        ),
        ports=tuple(
            EndpointPort(name=one.name, port=one.port, protocol=one.protocol)
            for one in map(port, ports.split())
        ),
    )


def look(
    *objects: Any, limit: int = 1000, answers: Any = None, recorded: list[Action[Any]] | None = None
) -> tuple[list[Action[Any]], Verdict]:
    """The writes and events of a round, and its verdict."""
    configured = controller.configured(Settings({"mirroring-max-endpoints-per-subset": limit}))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *objects), KEY)
    if seen is None:
        return [], Rest("gone")
    actions, verdict = walk(configured.decide(seen, NOW), answers, recorded=recorded)
    return [one for one in actions if isinstance(one, Create | Update | Delete | Emit)], verdict


def written(actions: list[Action[Any]]) -> list[EndpointSlice]:
    bodies = [one.body for one in actions if isinstance(one, Create)]
    targets = [one.target for one in actions if isinstance(one, Update)]
    return [one for one in (*bodies, *targets) if isinstance(one, EndpointSlice)]


def shown(slices: list[EndpointSlice]) -> list[tuple[str, list[str], list[str]]]:
    """The family, the endpoints and the ports of slices."""
    return sorted(
        (
            one.addressType,
            sorted(("" if e.conditions.ready else "!") + e.addresses[0] for e in one.endpoints or ()),
            sorted(f"{p.name}:{p.port}/{p.protocol}" for p in one.ports or ()),
        )
        for one in slices
    )


# -- which Endpoints are mirrored -------------------------------------------------------------------

ONE = "10.0.0.1 | :80/"


@pytest.mark.parametrize(
    ("objects", "kinds"),
    [
        ((service(), endpoints("| :80/")), []),
        ((service(), endpoints(ONE, labels={SKIP_MIRROR: "true"})), []),
        ((service(), endpoints(ONE, labels={SKIP_MIRROR: "false"})), [Create]),
        ((endpoints(ONE),), []),
        ((service({"foo": "bar"}), endpoints(ONE)), []),
        ((service(), endpoints("| :80/"), mirrored()), [Delete]),
        ((service(), endpoints("| :80/"), mirrored(labels={MANAGED_BY: "something-else"})), []),
        (
            (service(), endpoints(" ".join(f"10.0.{i // 255}.{i % 255}" for i in range(1000)) + "| :80/")),
            [Create],
        ),
        (
            (service(), endpoints(" ".join(f"10.0.{i // 255}.{i % 255}" for i in range(1001)) + "| :80/")),
            [Emit, Create],
        ),
        ((service(), mirrored(["10.0.0.1"])), [Delete]),
        ((service({"foo": "bar"}), endpoints(ONE), mirrored(["10.0.0.1"])), [Delete]),
        ((endpoints(ONE), mirrored(["10.0.0.1"])), [Delete]),
        ((service(), endpoints(ONE, labels={SKIP_MIRROR: "true"}), mirrored(["10.0.0.1"])), [Delete]),
        ((service(), endpoints(ONE, annotations={LEADER: "{}"}), mirrored(["10.0.0.1"])), [Delete]),
    ],
)
def test_endpoints_of_services_without_a_selector_are_mirrored(
    objects: tuple[Any, ...], kinds: list[type[Action[Any]]]
) -> None:
    """Upstream's TestSyncEndpoints, and what is cleaned up."""
    assert [type(action) for action in look(*objects)[0]] == kinds


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, True),
        ({"labels": {SKIP_MIRROR: "true"}}, False),
        ({"labels": {SKIP_MIRROR: "invalid"}}, True),
        ({"annotations": {LEADER: ""}}, False),
    ],
)
def test_labels_and_annotations_of_endpoints_decide(meta: dict[str, Any], expected: bool) -> None:
    """Upstream's TestShouldMirror."""
    assert should_mirror(endpoints(**meta)) is expected


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, True),
        ({"namespace": "ns2"}, False),
        ({"labels": {**MIRRORED, SERVICE_NAME: "svc2"}}, False),
        ({"labels": {**MIRRORED, MANAGED_BY: f"{MIRROR}foo"}}, False),
        ({"labels": {SERVICE_NAME: "test-ep"}}, False),
        ({"labels": {MANAGED_BY: MIRROR}}, False),
    ],
)
def test_slices_are_found_by_their_labels(meta: dict[str, Any], expected: bool) -> None:
    """Upstream's TestEndpointSlicesMirroredForService."""
    seen = controller.see(StaticCaches(controller, service(), endpoints(ONE), mirrored(**meta)), KEY)
    assert seen is not None
    assert bool(seen.slices) is expected


# -- what slices have -------------------------------------------------------------------------------

HTTP, HTTPS = "http:80/TCP", "https:443/UDP"
BOTH, HIGH = f"{HTTP} {HTTPS}", "http:3000/TCP https:3001/UDP"
FIRST = "10.0.0.1/pod-1/node-1 10.0.0.2/pod-2/node-2"
SECOND = "10.0.1.1/pod-11/node-1 10.0.1.2/pod-12/node-2 10.0.1.3/pod-13/node-3"
L = "2001:db8:{}:3333:4444:5555:6666:7777"
A, B, C, D, E = (L.format(part) for part in ("1111", "2222", "3333", "4444", "5555"))


@pytest.mark.parametrize(
    ("subsets", "slices"),
    [
        ((), []),
        ((f"| {HTTP}",), []),
        ((f"10.0.0.1/pod-1/node-1 | {HTTP}",), [(V4, ["10.0.0.1"], [HTTP])]),
        (
            (f"10.0.0.1/pod-1/node-1 | {HTTP}", "10.0.0.2/pod-2/node-1 | https:443/TCP"),
            [(V4, ["10.0.0.1"], [HTTP]), (V4, ["10.0.0.2"], ["https:443/TCP"])],
        ),
        (
            (f"10.0.0.1/pod-1/node-1 | {HTTP}", "10.0.0.1/pod-1/node-1 | https:443/TCP"),
            [(V4, ["10.0.0.1"], [HTTP, "https:443/TCP"])],
        ),
        (
            (f"10.0.0.1/pod-1/node-1 | {HTTP}", f"10.0.0.2/pod-2/node-1 | {HTTP}"),
            [(V4, ["10.0.0.1", "10.0.0.2"], [HTTP])],
        ),
        ((f"{FIRST} | {BOTH}",), [(V4, ["10.0.0.1", "10.0.0.2"], [HTTP, HTTPS])]),
        (
            (f"!10.0.0.1/pod-1/node-1 !10.0.0.2/pod-2/node-2 | {BOTH}",),
            [(V4, ["!10.0.0.1", "!10.0.0.2"], [HTTP, HTTPS])],
        ),
        (
            (
                f"10.1.1.1/pod-11/node-1 10.1.1.2/pod-12/node-2 !10.0.0.1/pod-1/node-1 !10.0.0.2/pod-2/node-2 | {BOTH}",
            ),
            [(V4, ["!10.0.0.1", "!10.0.0.2", "10.1.1.1", "10.1.1.2"], [HTTP, HTTPS])],
        ),
        (
            (f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"),
            [
                (V4, ["10.0.0.1", "10.0.0.2"], [HTTP, HTTPS]),
                (V4, ["10.0.1.1", "10.0.1.2", "10.0.1.3"], HIGH.split()),
            ],
        ),
        (
            (f"{B}/pod-1/node-1 10.0.0.2/pod-2/node-2 | {BOTH}", f"10.0.1.1/p 10.0.1.2/q {C}/r | {HIGH}"),
            [
                (V4, ["10.0.0.2"], [HTTP, HTTPS]),
                (V4, ["10.0.1.1", "10.0.1.2"], HIGH.split()),
                (V6, [B], [HTTP, HTTPS]),
                (V6, [C], HIGH.split()),
            ],
        ),
        (
            (f"{A} {B} | {BOTH}", f"{C} {D} {E} | {HIGH}"),
            [(V6, [A, B], [HTTP, HTTPS]), (V6, [C, D, E], HIGH.split())],
        ),
        (
            (f"{A} this-is-not-an-ip | {BOTH}", f"this-is-also-not-an-ip {D} {E} | {HIGH}"),
            [(V6, [A], [HTTP, HTTPS]), (V6, [D, E], HIGH.split())],
        ),
        ((f"no-ip1 no-ip2 | {BOTH}", f"no-ip3 no-ip2 no-ip4 | {HIGH}"), []),
        (("010.0.0.1 ::ffff:10.0.0.2 |",), [(V4, ["10.0.0.1", "10.0.0.2"], [])]),
    ],
)
def test_each_subset_has_a_slice_for_each_family(subsets: tuple[str, ...], slices: Any) -> None:
    """Upstream's TestReconcile, where there are no slices yet."""
    actions, _ = look(service(), endpoints(*subsets))
    assert all(isinstance(action, Create | Emit) for action in actions)
    assert shown(written(actions)) == sorted(slices)


def test_a_new_slice_is_named_after_its_endpoints_and_owned_by_them() -> None:
    given = endpoints(
        f"10.0.0.1/pod-1/node-1 | {HTTP}",
        labels={"team": "blue"},
        annotations={"foo": "bar", LAST_APPLIED: "{}", LAST_CHANGE_TRIGGER_TIME: "2026-01-01T00:00:00Z"},
    )
    target = ObjectReference(kind="Pod", name="p", namespace="test", uid="u", resourceVersion="12")
    first = replace(given.subsets[0].addresses[0], targetRef=target)
    given = replace(given, subsets=(replace(given.subsets[0], addresses=(first,)),))
    (found,) = written(look(service(), given)[0])
    owner = OwnerReference(
        apiVersion="v1", kind="Endpoints", name="test-ep", uid=UID, controller=True, blockOwnerDeletion=True
    )
    assert found.metadata == ObjectMeta(
        generateName="test-ep-",
        namespace="test",
        labels={"team": "blue", **MIRRORED},
        annotations={"foo": "bar"},
        ownerReferences=(owner,),
    )
    assert found.endpoints == (
        Endpoint(
            addresses=("10.0.0.1",),
            conditions=EndpointConditions(ready=True),
            hostname="pod-1",
            nodeName="node-1",
            targetRef=target,
        ),
    )


@pytest.mark.parametrize("annotations", [{LAST_APPLIED: "{}"}, {}, {LAST_APPLIED: ""}])
def test_the_last_applied_configuration_is_not_mirrored(annotations: dict[str, str]) -> None:
    """Upstream's rows of TestReconcile about it."""
    (found,) = written(look(service(), endpoints(f"10.0.0.1/pod-1 | {HTTP}", annotations=annotations))[0])
    assert found.metadata.annotations == {}


def test_a_long_name_leaves_no_room_for_a_dash() -> None:
    given = replace(endpoints(ONE), metadata=ObjectMeta(name="n" * 253, namespace="test"))
    named = replace(service(), metadata=ObjectMeta(name="n" * 253, namespace="test"))
    caches = StaticCaches(controller, given, named)
    seen = controller.see(caches, Key("test", "n" * 253))
    assert seen is not None
    (create,) = (one for one in walk(controller.decide(seen, NOW))[0] if isinstance(one, Create))
    assert isinstance(create.body, EndpointSlice)
    assert create.body.metadata.generateName == "n" * 253


OTHER = OwnerReference(apiVersion="v1", kind="Endpoints", name="test-ep", uid="fb91e798")
OWNER = replace(OTHER, uid=UID)
POD_1 = ["10.0.0.1/pod-1"]


@pytest.mark.parametrize(
    ("meta", "existing", "kinds"),
    [
        ({}, mirrored(POD_1, ownerReferences=(OWNER,)), []),
        ({}, mirrored(POD_1, ownerReferences=(OTHER,)), [Update]),
        ({}, mirrored(POD_1, annotations={"foo": "bar"}), [Update]),
        ({"labels": {"foo": "bar"}}, mirrored(POD_1, annotations={"foo": "bar"}), [Update]),
        ({"labels": {"foo": "bar"}}, mirrored(POD_1, labels={"foo": "bar", **MIRRORED}), []),
        ({}, mirrored(POD_1, annotations={LAST_APPLIED: "{}"}), [Update]),
        ({"annotations": {LAST_CHANGE_TRIGGER_TIME: "x"}}, mirrored(POD_1), []),
        (
            {"annotations": {LAST_CHANGE_TRIGGER_TIME: "x"}},
            mirrored(POD_1, annotations={"foo": "bar"}),
            [Update],
        ),
        ({}, mirrored(POD_1, ready=False), [Update]),
        ({}, mirrored(["10.0.0.2/pod-1"]), [Update]),
        ({}, mirrored([*POD_1, "10.0.0.2/pod-2"]), [Update]),
        ({}, mirrored(POD_1, "http:81/TCP"), [Update]),
        ({}, mirrored(["2001:db8::1/pod-1"], family=V6), [Create, Delete]),
        ({"deletionTimestamp": NOW}, mirrored(POD_1), []),
        ({"labels": {SERVICE_NAME: "x", MANAGED_BY: "y"}}, mirrored(POD_1), []),
    ],
)
def test_a_slice_that_is_right_is_not_written(
    meta: dict[str, Any], existing: EndpointSlice, kinds: list[type[Action[Any]]]
) -> None:
    """Upstream's rows of TestReconcile with an existing slice, and more."""
    actions, _ = look(service(), endpoints(f"10.0.0.1/pod-1 | {HTTP}", **meta), existing)
    assert [type(action) for action in actions] == kinds
    for found in written(actions):
        if kinds == [Update]:
            assert (found.metadata.name, found.metadata.resourceVersion) == ("test-ep-1", "1")
            assert shown([found]) == [(V4, ["10.0.0.1"], [HTTP])]


def test_endpoints_that_are_being_deleted_get_no_new_slices() -> None:
    """Upstream's row of TestReconcile about it."""
    assert look(service(), endpoints(f"{FIRST} | {HTTP}", deletionTimestamp=NOW))[0] == []


@pytest.mark.parametrize(
    ("existing", "kinds"),
    [
        (mirrored([], BOTH), [Create, Update]),
        (mirrored(["10.0.0.2/pod-2", "10.0.0.1,10.0.0.3/pod-1"], BOTH, ready=None), [Create, Update]),
        (mirrored(FIRST.split(), BOTH), [Create]),
    ],
    ids=["empty", "some addresses", "identical"],
)
def test_a_slice_of_the_same_ports_is_used_again(
    existing: EndpointSlice, kinds: list[type[Action[Any]]]
) -> None:
    """Upstream's rows of TestReconcile with two subsets and an existing slice."""
    actions, _ = look(service(), endpoints(f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"), existing)
    assert [type(action) for action in actions] == kinds


def test_all_slices_of_a_group_but_one_are_deleted() -> None:
    actions, _ = look(
        service(), endpoints(f"10.0.0.1/pod-1 | {HTTP}"), mirrored(POD_1), mirrored(POD_1, name="test-ep-2")
    )
    assert actions == [Delete(mirrored(POD_1, name="test-ep-2"))]


# -- recycling --------------------------------------------------------------------------------------


def simple(name: str, ip: str) -> EndpointSlice:
    return mirrored([ip], "", name=name, family=V6 if ":" in ip else V4)


def recycled(slices: Sequence[EndpointSlice]) -> list[str]:
    return [f"{one.metadata.name} {(one.endpoints or ())[0].addresses[0]}" for one in slices]


@pytest.mark.parametrize(
    ("create", "delete", "created", "updated", "deleted"),
    [
        ((), (), [], [], []),
        (("foo 10.1.2.3",), ("bar 10.2.3.4",), [], ["bar 10.1.2.3"], []),
        (("foo1 10.1.2.3", "foo2 10.3.4.5"), ("bar 10.2.3.4",), ["foo2 10.3.4.5"], ["bar 10.1.2.3"], []),
        (("foo1 10.1.2.3",), ("bar1 10.2.3.4", "bar2 10.3.4.5"), [], ["bar1 10.1.2.3"], ["bar2 10.3.4.5"]),
        (
            ("foo-v4 10.1.2.3", "foo-v6 2001:db8::1"),
            ("bar-v4 10.2.2.3", "bar-v6 2001:db8::2"),
            [],
            ["bar-v4 10.1.2.3", "bar-v6 2001:db8::1"],
            [],
        ),
        (("foo-v4 10.1.2.3",), ("bar-v6 2001:db8::2",), ["foo-v4 10.1.2.3"], [], ["bar-v6 2001:db8::2"]),
    ],
)
def test_slices_are_updated_instead_of_deleted_and_created(
    create: Sequence[str], delete: Sequence[str], created: list[str], updated: list[str], deleted: list[str]
) -> None:
    """Upstream's TestRecycleSlices."""
    found = recycle([simple(*one.split()) for one in create], [simple(*one.split()) for one in delete])
    assert list(map(recycled, found)) == [created, updated, deleted]


# -- events and metrics -----------------------------------------------------------------------------


def events(actions: list[Action[Any]]) -> list[tuple[str, str, str]]:
    return [(one.type, one.reason, one.message) for one in actions if isinstance(one, Emit)]


def test_addresses_that_are_not_mirrored_have_events() -> None:
    given = endpoints(f"10.0.0.1 10.0.0.2 nonsense | {BOTH}", f"{SECOND} | {HIGH}")
    actions, _ = look(service(), given)
    invalid = "Skipped 1 invalid IP addresses when mirroring to EndpointSlices"
    assert events(actions) == [("Warning", "InvalidIPAddress", invalid)]
    actions, _ = look(service(), endpoints(f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"), limit=2)
    too_many = "A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped"
    assert events(actions) == [("Warning", "TooManyAddressesToMirror", too_many)]
    assert [len(found.endpoints or ()) for found in written(actions)] == [2, 2]


def measured(*objects: Any, limit: int = 1000) -> dict[str, float]:
    recorded: list[Action[Any]] = []
    look(*objects, limit=limit, recorded=recorded)
    values: dict[str, float] = {}
    for one in recorded:
        if isinstance(one, Measure) and one.metric is not metrics.DURATION:
            short = " ".join(
                (one.metric.name.removeprefix("endpoint_slice_mirroring_controller_"), *one.labels)
            )
            values[short] = values.get(short, 0) + one.value
    return {name: value for name, value in values.items() if value}


@pytest.mark.parametrize(
    ("subsets", "existing", "limit", "expected"),
    [
        ((), (), 1000, {}),
        ((f"10.0.0.1 | {HTTP}",), (), 1000, {"slices": 1, "endpoints": 1, "added": 1, "create": 1}),
        ((f"{FIRST} | {BOTH}",), (), 1000, {"slices": 1, "endpoints": 2, "added": 2, "create": 1}),
        (
            (f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"),
            (mirrored([], BOTH),),
            1000,
            {"slices": 2, "endpoints": 5, "added": 5, "create": 1, "update": 1},
        ),
        (
            (f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"),
            (mirrored(["10.0.0.2/pod-2", "10.0.0.1,10.0.0.3/pod-1"], BOTH, ready=None),),
            1000,
            {"slices": 2, "endpoints": 5, "added": 4, "updated": 1, "removed": 1, "create": 1, "update": 1},
        ),
        (
            (f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"),
            (mirrored(FIRST.split(), BOTH),),
            1000,
            {"slices": 2, "endpoints": 5, "added": 3, "create": 1},
        ),
        (
            (f"{A} nonsense | {BOTH}", f"nonsense2 {D} {E} | {HIGH}"),
            (),
            1000,
            {"slices": 2, "endpoints": 3, "added": 3, "skipped": 2, "create": 2},
        ),
        ((f"no-ip1 no-ip2 | {BOTH}", f"no-ip3 no-ip2 no-ip4 | {HIGH}"), (), 1000, {"skipped": 5}),
        (
            (f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"),
            (),
            2,
            {"slices": 2, "endpoints": 4, "added": 4, "skipped": 1, "create": 2},
        ),
    ],
)
def test_metrics_count_what_upstreams_count(
    subsets: tuple[str, ...], existing: tuple[EndpointSlice, ...], limit: int, expected: dict[str, int]
) -> None:
    """The expectedMetrics of upstream's TestReconcile."""
    names = {
        "desired_endpoint_slices": "slices",
        "num_endpoint_slices": "slices",
        "endpoints_desired": "endpoints",
        "endpoints_added_per_sync": "added",
        "endpoints_updated_per_sync": "updated",
        "endpoints_removed_per_sync": "removed",
        "addresses_skipped_per_sync": "skipped",
        "changes create": "create",
        "changes update": "update",
        "changes delete": "delete",
    }
    wanted = {name: expected[short] for name, short in names.items() if expected.get(short)}
    assert measured(service(), endpoints(*subsets), *existing, limit=limit) == wanted


def test_gauges_add_up_all_endpoints() -> None:
    sizes, other = Memory().sizes, Key("test", "other")

    def values(key: Key, size: Size | None) -> list[float]:
        return [one.value for one in sizes.put(key, size)]

    assert values(KEY, Size(5, 2, 2)) == [5, 2, 2]
    assert values(other, Size(3, 1, 1)) == [8, 3, 3]
    assert values(KEY, Size(1, 1, 1)) == [4, 2, 2]
    assert values(KEY, None) == [3, 1, 1]
    assert KEY not in sizes
    assert values(other, None) == [0, 0, 0]


# -- errors -----------------------------------------------------------------------------------------

TERMINATING = Forbidden("no", causes=(Cause("NamespaceTerminating", "", ""),))


def test_a_terminating_namespace_takes_no_slices() -> None:
    actions, verdict = look(
        service(), endpoints(f"{FIRST} | {BOTH}", f"{SECOND} | {HIGH}"), answers={Create: TERMINATING}
    )
    assert [type(action) for action in actions] == [Create]
    assert verdict == Rest("namespace is terminating")


@pytest.mark.parametrize(
    ("kind", "error"),
    [(Create, ServerError("down")), (Update, Conflict("changed")), (Delete, ServerError("down"))],
)
def test_a_refusal_fails_the_round(kind: type[Action[Any]], error: ApiError) -> None:
    given = {
        Create: (),
        Update: (mirrored(),),
        Delete: (mirrored(POD_1), mirrored(POD_1, name="test-ep-2")),
    }[kind]
    with pytest.raises(type(error)):
        look(service(), endpoints(f"10.0.0.1/pod-1 | {HTTP}"), *given, answers={kind: error})


def test_a_slice_that_is_gone_is_no_error() -> None:
    assert look(mirrored(), answers={Delete: NotFound("gone")})[1] == Rest(
        "Endpoints are gone: deleted 1 EndpointSlices"
    )


# -- what is a reason to look -----------------------------------------------------------------------

MINE = mirrored(POD_1)
SKIPPED = endpoints(ONE, labels={SKIP_MIRROR: "true"})
FOREIGN = mirrored(POD_1, labels={**MIRRORED, MANAGED_BY: "you"})
MOVED = mirrored(POD_1, labels={**MIRRORED, SERVICE_NAME: "other"})


@pytest.mark.parametrize(
    ("number", "change", "names"),
    [
        (0, Change(None, endpoints(ONE)), ["test-ep"]),
        (0, Change(endpoints(ONE), None), ["test-ep"]),
        (0, Change(None, SKIPPED), []),
        (0, Change(SKIPPED, None), []),
        (0, Change(SKIPPED, SKIPPED), []),
        (0, Change(endpoints(ONE), SKIPPED), ["test-ep"]),
        (0, Change(SKIPPED, endpoints(ONE)), ["test-ep"]),
        (1, Change(None, service()), ["test-ep"]),
        (1, Change(service(), None), ["test-ep"]),
        (1, Change(None, service({"a": "b"})), []),
        (1, Change(service({"a": "b"}), None), []),
        (1, Change(service(), service()), []),
        (1, Change(service({"a": "b"}), service()), ["test-ep"]),
        (1, Change(service(), service({"a": "b"})), ["test-ep"]),
        (2, Change(None, MINE), ["test-ep"]),
        (2, Change(None, FOREIGN), []),
        (2, Change(MINE, MINE), ["test-ep"]),
        (2, Change(MINE, FOREIGN), ["test-ep"]),
        (2, Change(FOREIGN, FOREIGN), []),
        (2, Change(MINE, MOVED), ["other", "test-ep"]),
        (2, Change(MINE, None), ["test-ep"]),
        (2, Change(FOREIGN, None), []),
        (2, Change(None, mirrored(labels={MANAGED_BY: MIRROR})), []),
    ],
)
def test_what_is_a_reason_to_look(number: int, change: Any, names: list[str]) -> None:
    assert [key.name for key in controller.watches[number].to(StaticCaches(controller), change)] == names


def test_endpoints_of_a_service_with_a_selector_are_no_reason_to_look() -> None:
    """They change with every pod; upstream looks at each of them, and finds nothing to mirror."""
    to = controller.watches[0].to
    selecting = StaticCaches(controller, service({"a": "b"}))
    assert list(to(selecting, Change(None, endpoints(ONE)))) == []
    selecting.put(MINE)
    assert list(to(selecting, Change(None, endpoints(ONE)))) == [KEY]


def test_own_writes_are_no_reason_to_look() -> None:
    caches = StaticCaches(controller, service(), endpoints(f"10.0.0.1/pod-1 | {HTTP}"))
    seen = controller.see(caches, KEY)
    assert seen is not None
    created = replace(MINE, metadata=replace(MINE.metadata, generation=1))
    walk(controller.decide(seen, NOW), {Create: created})
    to = controller.watches[2].to
    assert list(to(caches, Change(None, created))) == []
    changed = replace(created, metadata=replace(created.metadata, generation=2))
    assert list(to(caches, Change(created, changed))) == [KEY]
    assert list(to(caches, Change(created, None))) == [KEY]


def test_changes_of_slices_are_gathered_for_the_batch_period() -> None:
    configured = controller.configured(Settings({"mirroring-endpointslice-updates-batch-period": 1.5}))
    assert configured is not None
    assert [watch.delay for watch in configured.watches] == [0.0, 0.0, 1.5]


# -- in a cluster -----------------------------------------------------------------------------------


def test_endpoints_are_mirrored_while_their_service_has_no_selector() -> None:
    with Cluster(seed=3, controllers=("endpointslice-mirroring-controller",)) as cluster:
        meta = {"name": "db", "labels": {"team": "blue"}}
        ports = [{"name": "sql", "port": 5432}]
        cluster.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": {"ports": ports}}
        )
        subsets = [{"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": ports}]
        cluster.apply({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets})
        cluster.settle()

        def found() -> list[tuple[str, list[str], list[str]]]:
            return shown([one for one in cluster.list(ENDPOINTSLICES) if one.metadata.name != "kubernetes"])

        sql = ["sql:5432/TCP"]
        assert found() == [(V4, ["192.0.2.1"], sql), (V6, ["2001:db8::1"], sql)]
        cluster.patch("Endpoints", "db", {"subsets": [{"addresses": [{"ip": "192.0.2.2"}], "ports": ports}]})
        cluster.settle()
        assert found() == [(V4, ["192.0.2.2"], sql)]
        (sliced,) = (one for one in cluster.list(ENDPOINTSLICES) if one.metadata.name != "kubernetes")
        cluster.patch("EndpointSlice", sliced.metadata.name, {"endpoints": []})
        cluster.settle()
        assert found() == [(V4, ["192.0.2.2"], sql)], "what another writer changes is mended"
        cluster.patch("Service", "db", {"spec": {"selector": {"app": "db"}}})
        cluster.settle()
        assert found() == []
