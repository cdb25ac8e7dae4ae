"""The EndpointSlice controller: the writes, events and metrics of a round, and what enqueues a Service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Cause, Conflict, Forbidden, NotFound
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import ENDPOINTSLICES, EndpointSlice, Service, ServicePort
from steersman.api.scheme import Key
from steersman.controllers.endpointslice import controller, metrics
from steersman.controllers.endpointslice.endpoints import CONTROLLER_NAME
from steersman.controllers.endpointslice.hints import TOPOLOGY_MODE
from steersman.controllers.endpointslice.memory import Memory
from steersman.controllers.shared.endpoint_slices import MANAGED_BY, SERVICE_NAME
from steersman.controllers.shared.trigger_time import LAST_CHANGE_TRIGGER_TIME, observed_times
from steersman.intent.actions import Action, Create, Delete, Emit, Update
from steersman.intent.controller import Change, Controller, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import InvalidSpec
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.harness.endpoint_slices import LATER, a_node, a_pod, a_service, a_slice, placeholder

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVICE = a_service()
KEY = SERVICE.key
DUAL: dict[str, Any] = {"ipFamilies": ("IPv4", "IPv6")}
TWO_IPS = ("1.2.3.4", "fd00::4")


class Bench:
    """A controller with caches and a memory that last for several rounds."""

    def __init__(self, *objects: Object, **flags: Any) -> None:
        gates = flags.pop("gates", {})
        configured = controller.configured(
            Settings({key.replace("_", "-"): flags[key] for key in flags}, gates)
        )
        assert configured is not None
        self.controller: Controller[Any] = configured
        self.caches = StaticCaches(configured, *objects)
        self.memory = memory_of(self.caches, Memory)

    def round(self, answers: Any = None, key: Key = KEY) -> list[Action[Any]]:
        """Runs a round; returns its actions."""
        seen = self.controller.see(self.caches, key)
        if seen is None:
            return []
        return walk(self.controller.decide(seen, NOW), answers)[0]

    def failing(self, answers: Any, error: type[Exception]) -> list[Action[Any]]:
        """Runs a round that raises an error; returns its actions until then."""
        recorded: list[Action[Any]] = []
        seen = self.controller.see(self.caches, KEY)
        with pytest.raises(error):
            walk(self.controller.decide(seen, NOW), answers, recorded=recorded)
        return recorded

    def watch(self, kind: Any) -> Watch[Any]:
        return next(watch for watch in self.controller.watches if watch.kind is kind)

    def enqueued(self, kind: Any, old: Object | None, new: Object | None) -> list[Key]:
        return list(self.watch(kind).to(self.caches, Change(old, new)))


def writes(actions: list[Action[Any]]) -> list[str]:
    """The writes of a round: the verb and the name."""
    words: list[str] = []
    for action in actions:
        match action:
            case Create(body=EndpointSlice() as slice):
                words.append(f"create {slice.addressType}")
            case Update(target=EndpointSlice() as slice):
                words.append(f"update {slice.metadata.name}")
            case Delete(target=EndpointSlice() as slice):
                words.append(f"delete {slice.metadata.name}")
            case _:
                pass
    return words


def events(actions: list[Action[Any]]) -> list[tuple[str, str, str]]:
    return [(one.type, one.reason, one.message) for one in actions if isinstance(one, Emit)]


def measured(actions: list[Action[Any]], metric: Any) -> list[tuple[float, tuple[str, ...]]]:
    return [(one.value, one.labels) for one in actions if isinstance(one, Measure) and one.metric == metric]


# -- which Services -------------------------------------------------------------------------------

EXTERNAL = {"type": "ExternalName", "externalName": "example.com"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"selector": {}}, [], id="no selector"),
        pytest.param(EXTERNAL, [], id="external name"),
        pytest.param({**EXTERNAL, "selector": {}}, [], id="external name without selector"),
        pytest.param({**EXTERNAL, "ports": ()}, [], id="external name without ports"),
        pytest.param({**EXTERNAL, "selector": {}, "ports": ()}, [], id="external name without both"),
        pytest.param({}, ["create IPv4"], id="selector"),
        pytest.param({"selector": {"app": "none"}}, ["create IPv4"], id="a selector of no pods"),
        pytest.param({"deleted": LATER}, [], id="being deleted"),
        pytest.param(DUAL, ["create IPv4", "create IPv6"], id="dual-stack"),
    ],
)
def test_services_with_a_selector_have_slices(spec: Mapping[str, Any], expected: list[str]) -> None:
    bench = Bench(a_service(**spec), a_pod(1, ips=TWO_IPS), a_node())
    actions = bench.round()
    assert writes(actions) == expected
    assert measured(actions, metrics.SYNCS) == [(1.0, ("success",))]


def test_a_service_that_is_gone_is_forgotten() -> None:
    bench = Bench(SERVICE, a_pod(1), a_node())
    bench.round()
    bench.caches.remove(SERVICE)
    measures = bench.watch(bench.controller.watches[0].kind).measures
    assert measures is not None
    shown = {one.metric.name: one.value for one in measures(bench.caches, Change(SERVICE, None))}
    assert set(shown.values()) == {0}
    assert bench.round() == []
    assert bench.memory.trigger_times.get(KEY) is None
    assert not len(bench.memory.totals)


def test_only_pods_that_the_selector_selects_are_endpoints() -> None:
    other = replace(a_pod(2), metadata=replace(a_pod(2).metadata, labels={"foo": "boo"}))
    elsewhere = replace(a_pod(3), metadata=replace(a_pod(3).metadata, namespace="other"))
    (create,) = [
        one for one in Bench(SERVICE, a_pod(1), other, elsewhere, a_node()).round() if isinstance(one, Create)
    ]
    assert isinstance(create.body, EndpointSlice)
    assert [one.targetRef.name for one in create.body.endpoints or () if one.targetRef] == ["pod1"]


def test_a_service_that_goes_during_a_round_is_not_counted_for_ever() -> None:
    bench = Bench(SERVICE, a_pod(1), a_node())
    seen = bench.controller.see(bench.caches, KEY)
    bench.caches.remove(SERVICE)
    walk(bench.controller.decide(seen, NOW))
    assert len(bench.memory.totals) == 1
    assert bench.round() == []
    assert not len(bench.memory.totals)


# -- which slices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        pytest.param({}, [], id="its own"),
        pytest.param(
            {"labels": {SERVICE_NAME: "foo", MANAGED_BY: "other"}}, ["create IPv4"], id="managed by another"
        ),
        pytest.param({"labels": {SERVICE_NAME: "foo"}}, ["create IPv4"], id="managed by none"),
        pytest.param(
            {"labels": {SERVICE_NAME: "bar", MANAGED_BY: CONTROLLER_NAME}}, ["create IPv4"], id="of another"
        ),
        pytest.param({"deletionTimestamp": LATER, "finalizers": ("f",)}, ["create IPv4"], id="being deleted"),
        pytest.param({"ownerReferences": ()}, ["create IPv4", "delete foo-1"], id="of another owner"),
    ],
)
def test_only_managed_slices_of_the_service_count(meta: Mapping[str, Any], expected: list[str]) -> None:
    bench = Bench(SERVICE, a_pod(1), a_node(), a_slice(SERVICE, 1, [a_pod(1)], **meta))
    assert writes(bench.round()) == expected


def test_a_slice_of_a_family_that_the_service_no_longer_has_is_deleted_last() -> None:
    service = a_service(**DUAL)
    slices = a_slice(service, 1, [a_pod(1)]), a_slice(service, 2, [a_pod(1, ips=["fd00::1"])], family="IPv6")
    bench = Bench(SERVICE, a_pod(1), a_pod(2), a_node(), *slices)
    assert writes(bench.round()) == ["update foo-1", "delete foo-2"]


def test_creates_come_before_updates_and_updates_before_deletes() -> None:
    stray = a_slice(SERVICE, 3, [a_pod(9)], ownerReferences=())
    existing = a_slice(SERVICE, 1, [a_pod(1), a_pod(2)]), a_slice(SERVICE, 2, [a_pod(3)]), stray
    pods = [a_pod(1), *(a_pod(number) for number in range(3, 8))]
    bench = Bench(SERVICE, *pods, a_node(), *existing, max_endpoints_per_slice=2)
    assert writes(bench.round()) == ["create IPv4", "update foo-1", "update foo-2", "delete foo-3"]


def test_a_deleted_service_gets_no_new_slices_but_updates_and_deletes() -> None:
    stray = a_slice(SERVICE, 3, [a_pod(9)], ownerReferences=())
    existing = a_slice(SERVICE, 1, [a_pod(1), a_pod(2)]), stray
    pods = [a_pod(1), *(a_pod(number) for number in range(3, 8))]
    service = a_service(deleted=LATER)
    bench = Bench(service, *pods, a_node(), *existing, max_endpoints_per_slice=2)
    assert writes(bench.round()) == ["update foo-1", "delete foo-3"]


def test_a_replaced_slice_of_a_deleted_service_is_updated() -> None:
    service = a_service(deleted=LATER, ports=(ServicePort(name="foo", targetPort=81, protocol="TCP"),))
    bench = Bench(service, a_pod(1), a_node(), a_slice(SERVICE, 1, [a_pod(1)]))
    assert writes(bench.round()) == ["update foo-1"]


# -- errors ---------------------------------------------------------------------------------------


def told(text: str) -> list[tuple[str, str, str]]:
    message = f"Error updating Endpoint Slices for Service test/foo: {text}"
    return [("Warning", "FailedToUpdateEndpointSlices", message)]


@pytest.mark.parametrize(
    ("existing", "answer", "text"),
    [
        pytest.param(
            [],
            {Create: Forbidden("no")},
            "failed to create EndpointSlice for Service test/foo: no",
            id="create",
        ),
        pytest.param(
            [a_slice(SERVICE, 1, [a_pod(2)])],
            {Update: Conflict("changed")},
            "failed to update foo-1 EndpointSlice for Service test/foo: changed",
            id="update",
        ),
        pytest.param(
            [a_slice(SERVICE, 1, [a_pod(1)]), a_slice(SERVICE, 2, [a_pod(2)])],
            {Delete: Forbidden("no")},
            "failed to delete foo-2 EndpointSlice for Service test/foo: no",
            id="delete",
        ),
        pytest.param(
            [a_slice(SERVICE, 1, [a_pod(1)]), a_slice(SERVICE, 2, family="IPv6")],
            {Delete: Forbidden("no")},
            "error deleting foo-2 EndpointSlice for Service test/foo: no",
            id="delete of another family",
        ),
    ],
)
def test_a_refused_write_is_told_and_tried_again(
    existing: list[EndpointSlice], answer: Mapping[Any, Any], text: str
) -> None:
    bench = Bench(SERVICE, a_pod(1), a_node(), *existing)
    actions = bench.failing(answer, ApiError)
    assert events(actions) == told(text)
    assert measured(actions, metrics.SYNCS) == [(1.0, ("error",))]
    assert bench.memory.trigger_times.get(KEY) is None, "the next round has the same trigger time"


def test_the_failures_of_two_families_are_told_together() -> None:
    bench = Bench(a_service(**DUAL), a_pod(1, nodeName="gone"), a_node())
    bench.caches.put(a_pod(2, ips=TWO_IPS))
    text = "skipping Pod pod1 for Service test/foo: Node gone Not Found"
    assert events(bench.failing(None, InvalidSpec)) == told(text), "the same text once"
    actions = bench.failing({Create: Forbidden("no")}, Forbidden)
    assert events(actions) == told(f"[{text}, failed to create EndpointSlice for Service test/foo: no]")
    assert writes(actions) == ["create IPv4", "create IPv6"], "each family is tried"


def test_pods_on_missing_nodes_do_not_stop_the_others() -> None:
    bench = Bench(SERVICE, a_pod(1, nodeName="gone"), a_pod(2), a_node())
    actions = bench.failing(None, InvalidSpec)
    assert writes(actions) == ["create IPv4"]
    assert measured(actions, metrics.ADDED) == [(1.0, ())]


def test_a_terminating_namespace_takes_no_slices_and_that_is_no_error() -> None:
    refusal = Forbidden("terminating", causes=(Cause("NamespaceTerminating", "", ""),))
    actions = Bench(SERVICE, a_pod(1), a_node()).round({Create: refusal})
    assert events(actions) == []
    assert measured(actions, metrics.SYNCS) == [(1.0, ("success",))]


def test_a_slice_that_is_already_gone_needs_no_second_delete() -> None:
    existing = a_slice(SERVICE, 1, [a_pod(1)]), a_slice(SERVICE, 2, [a_pod(2)])
    actions = Bench(SERVICE, a_pod(1), a_node(), *existing).round({Delete: NotFound("gone")})
    assert events(actions) == []


# -- trigger times --------------------------------------------------------------------------------


def annotation(actions: list[Action[Any]]) -> list[str | None]:
    bodies = [
        one.body if isinstance(one, Create) else one.target
        for one in actions
        if isinstance(one, Create | Update)
    ]
    return [
        body.metadata.annotations.get(LAST_CHANGE_TRIGGER_TIME)
        for body in bodies
        if isinstance(body, EndpointSlice)
    ]


def test_a_slice_says_when_the_change_happened_that_it_shows() -> None:
    at = datetime(2026, 1, 1, 6, tzinfo=UTC)
    bench = Bench(SERVICE, a_pod(1, at=at), a_node())
    assert annotation(bench.round()) == ["2026-01-01T00:00:00Z"], "at first, when the Service was created"
    bench.caches.put(a_slice(SERVICE, 1, [a_pod(1)]))
    bench.caches.put(a_pod(2, at=at + timedelta(hours=1)), a_pod(3, at=at + timedelta(hours=2)))
    assert annotation(bench.round()) == ["2026-01-01T07:00:00Z"], "the earliest of what changed"
    changed = a_slice(
        SERVICE, 1, [a_pod(number) for number in (1, 2, 3)], annotations={LAST_CHANGE_TRIGGER_TIME: "x"}
    )
    bench.caches.put(changed)
    bench.caches.remove(a_pod(3))
    assert annotation(bench.round()) == [None], "unknown for a pod that is gone"


# -- hints ----------------------------------------------------------------------------------------

AUTO = a_service(annotations={TOPOLOGY_MODE: "Auto"})
ZONES: list[Node] = [a_node(f"node-{zone}-{n}", f"zone-{zone}", "100m") for zone in "abc" for n in range(10)]


def zoned(*numbers: int) -> list[Pod]:
    """Pods by the number of their node: 0 to 9 in zone a, 10 to 19 in zone b, 20 to 29 in zone c."""
    return [a_pod(number, nodeName=ZONES[number].metadata.name) for number in numbers]


def hints(actions: list[Action[Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in actions:
        body = one.body if isinstance(one, Create) else one.target if isinstance(one, Update) else None
        for endpoint in (body.endpoints or ()) if isinstance(body, EndpointSlice) else ():
            zone = endpoint.hints.forZones[0].name if endpoint.hints is not None else ""
            found[zone] = found.get(zone, 0) + 1
    return found


def slices_of(pods: list[Pod], number: int = 1) -> EndpointSlice:
    slice = a_slice(SERVICE, number, pods)
    zone = {node.metadata.name: node.metadata.labels["topology.kubernetes.io/zone"] for node in ZONES}
    endpoints = tuple(replace(one, zone=zone[one.nodeName or ""]) for one in slice.endpoints or ())
    return replace(slice, endpoints=endpoints)


AC, AB, C = zoned(5, 6, 25, 26), zoned(7, 8, 16, 17, 18), zoned(27, 28, 29)
ENABLED = ("Normal", "TopologyAwareHintsEnabled", "Topology Aware Hints has been enabled, addressType: IPv4")
OVERLOADED = (
    "Warning",
    "TopologyAwareHintsDisabled",
    "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold "
    "(4 endpoints, 3 zones), addressType: IPv4",
)


@pytest.mark.parametrize(
    ("service", "pods", "existing", "written", "zones", "said"),
    [
        pytest.param(
            AUTO,
            C,
            [slices_of(C)],
            1,
            {"zone-a": 1, "zone-b": 1, "zone-c": 1},
            [ENABLED],
            id="three of one zone",
        ),
        pytest.param(AUTO, AC, [slices_of(AC)], 0, {}, [OVERLOADED], id="beyond the threshold"),
        pytest.param(
            AUTO,
            [*AC, *AB],
            [slices_of(AC), slices_of(AB, 2)],
            2,
            {"zone-a": 3, "zone-b": 3, "zone-c": 3},
            [ENABLED],
            id="two slices",
        ),
        pytest.param(
            a_service(annotations={TOPOLOGY_MODE: "disabled"}),
            [*AC, *AB],
            [slices_of(AC), slices_of(AB, 2)],
            0,
            {},
            [],
            id="disabled",
        ),
    ],
)
def test_topology_aware_hints(
    service: Service,
    pods: list[Pod],
    existing: list[EndpointSlice],
    written: int,
    zones: Mapping[str, int],
    said: list[tuple[str, str, str]],
) -> None:
    actions = Bench(service, *pods, *ZONES, *existing).round()
    assert len(writes(actions)) == written
    assert hints(actions) == zones
    assert events(actions) == said


def test_hints_are_told_of_once_and_when_they_are_removed() -> None:
    bench = Bench(AUTO, *C, *ZONES, slices_of(C))
    (update,) = [one for one in bench.round() if isinstance(one, Update)]
    assert isinstance(update.target, EndpointSlice)
    bench.caches.put(update.target)
    assert events(bench.round()) == []
    bench.caches.put(SERVICE)
    actions = bench.round()
    message = "Topology Aware Hints has been disabled, addressType: IPv4"
    assert events(actions) == [("Warning", "TopologyAwareHintsDisabled", message)]
    assert hints(actions) == {"": 3}
    bench.caches.put(slices_of(C))
    assert events(bench.round()) == []


def test_nodes_that_get_a_zone_enable_hints() -> None:
    bare = [a_node(f"node-{number}", cpu="1") for number in (1, 2)]
    pods = [a_pod(number, nodeName=f"node-{number}") for number in (1, 2)]
    bench = Bench(AUTO, *pods, *bare)
    (event,) = events(bench.round())
    assert event[2].startswith("Insufficient Node information")
    for number, old in enumerate(bare):
        new = a_node(old.metadata.name, f"zone-{number}", "1")
        bench.caches.put(new)
        assert bench.enqueued(bench.controller.watches[3].kind, old, new) == []
    assert events(bench.round()) == [ENABLED]


THREE_ZONES: dict[str, Any] = {
    "pods": [a_pod(n, nodeName=node) for n, node in enumerate(("n-a", "n-b", "n-b", "n-b", "n-c", "n-c"))],
    "nodes": [a_node(f"n-{zone}", f"zone-{zone}", "100m") for zone in "abc"],
}
BY_ZONE = {"zone-a": 1, "zone-b": 3, "zone-c": 2}


@pytest.mark.parametrize(
    ("distribution", "mode", "gate", "zones", "labels"),
    [
        ("PreferClose", "Disabled", True, BY_ZONE, ("Disabled", "PreferClose")),
        ("PreferClose", "Auto", True, {"zone-a": 2, "zone-b": 2, "zone-c": 2}, ("Auto", "")),
        (None, "", True, {"": 6}, ("Disabled", "")),
        ("PreferSameNode", "Disabled", True, BY_ZONE, ("Disabled", "PreferSameNode")),
        ("PreferSameZone", "Disabled", False, {"": 6}, ("Disabled", "")),
        ("PreferSameZone", "Disabled", True, BY_ZONE, ("Disabled", "PreferSameZone")),
    ],
)
def test_the_traffic_distribution_and_the_topology_mode(
    distribution: str | None, mode: str, gate: bool, zones: Mapping[str, int], labels: tuple[str, str]
) -> None:
    service = a_service(trafficDistribution=distribution, annotations={TOPOLOGY_MODE: mode})
    bench = Bench(
        service,
        *THREE_ZONES["pods"],
        *THREE_ZONES["nodes"],
        gates={"PreferSameTrafficDistribution": gate},
    )
    actions = bench.round()
    assert hints(actions) == zones
    assert measured(actions, metrics.CHANGED_PER_SYNC) == [(1.0, labels)]
    by_distribution = measured(actions, metrics.BY_TRAFFIC_DISTRIBUTION)
    assert by_distribution == ([(1.0, (labels[1],))] if labels[1] else [])


def test_hints_that_cannot_be_set_are_not_written_again_and_again() -> None:
    """A slice whose endpoints have no zone is looked at, and stays as it is."""
    pods = [a_pod(number) for number in (1, 2, 3)]
    bench = Bench(AUTO, *pods, a_node(ready=False), *ZONES, a_slice(AUTO, 1, pods))
    bench.memory.trigger_times.record(KEY, observed_times(AUTO, pods))
    actions = bench.round()
    assert events(actions)[0][2] == "One or more endpoints do not have a zone specified, addressType: IPv4"
    assert writes(actions) == []


# -- metrics --------------------------------------------------------------------------------------


def test_a_round_is_measured() -> None:
    bench = Bench(SERVICE, *(a_pod(number) for number in range(5)), a_node(), max_endpoints_per_slice=2)
    actions = bench.round()
    assert measured(actions, metrics.ADDED) == [(5.0, ())]
    assert measured(actions, metrics.REMOVED) == [(0.0, ())]
    assert measured(actions, metrics.CHANGES) == [(1.0, ("create",))] * 3
    assert measured(actions, metrics.CHANGED_PER_SYNC) == [(3.0, ("Disabled", ""))]
    assert measured(actions, metrics.SLICES) == [(3.0, ())]
    assert measured(actions, metrics.DESIRED_SLICES) == [(3.0, ())]
    assert measured(actions, metrics.ENDPOINTS) == [(5.0, ())]


# -- what enqueues a Service ----------------------------------------------------------------------

MINE, PLAIN = a_slice(SERVICE, 1), a_slice(SERVICE, 1, labels={})


def relabelled(**labels: str) -> EndpointSlice:
    return a_slice(SERVICE, 1, labels=labels)


OTHER = {SERVICE_NAME: "bar", MANAGED_BY: CONTROLLER_NAME}
UNMANAGED = {SERVICE_NAME: "foo", MANAGED_BY: "other"}
BAR = Key("test", "bar")


@pytest.mark.parametrize(
    ("tracked", "old", "new", "expected"),
    [
        pytest.param(None, None, MINE, [KEY], id="a new slice"),
        pytest.param(1, None, MINE, [], id="a new slice of its own"),
        pytest.param(None, None, PLAIN, [], id="a slice of no Service"),
        pytest.param(None, None, relabelled(**UNMANAGED), [], id="a slice of another controller"),
        pytest.param(
            2, MINE, replace(MINE, metadata=replace(MINE.metadata, generation=2)), [], id="its own update"
        ),
        pytest.param(
            1, MINE, replace(MINE, metadata=replace(MINE.metadata, generation=2)), [KEY], id="an update"
        ),
        pytest.param(9, MINE, relabelled(**OTHER), [BAR, KEY], id="moved to another Service"),
        pytest.param(9, MINE, relabelled(**UNMANAGED), [KEY], id="handed to another controller"),
        pytest.param(9, relabelled(**UNMANAGED), MINE, [KEY], id="taken from another controller"),
        pytest.param(1, MINE, None, [KEY], id="deleted by another client"),
        pytest.param(None, MINE, None, [KEY], id="deleted, and never written here"),
        pytest.param(-1, MINE, None, [], id="deleted by itself"),
        pytest.param(None, relabelled(**UNMANAGED), None, [], id="deleted, of another controller"),
    ],
)
def test_slices_that_others_change_enqueue_their_service(
    tracked: int | None, old: EndpointSlice | None, new: EndpointSlice | None, expected: list[Key]
) -> None:
    bench = Bench()
    if tracked == -1:
        bench.memory.tracker.deleted(MINE)
    elif tracked is not None:
        bench.memory.tracker.wrote(replace(MINE, metadata=replace(MINE.metadata, generation=tracked)))
    assert bench.enqueued(ENDPOINTSLICES, old, new) == expected


def test_the_slices_a_round_has_written_are_tracked() -> None:
    bench = Bench(SERVICE, a_pod(1), a_node())

    def answer(action: Action[Any]) -> Any:
        return a_slice(SERVICE, 7) if isinstance(action, Create) else USUAL

    bench.round(answer)
    assert bench.enqueued(ENDPOINTSLICES, None, a_slice(SERVICE, 7)) == []


@pytest.mark.parametrize(("period", "expected"), [(0.0, (0.0, 1.0)), (0.5, (0.5, 1.0)), (3.0, (3.0, 3.0))])
def test_changes_are_batched(period: float, expected: tuple[float, float]) -> None:
    bench = Bench(endpointslice_updates_batch_period=period)
    assert (bench.watch(PODS).delay, bench.watch(ENDPOINTSLICES).delay) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(a_node("b", "zone-b", "1"), a_node("b", "zone-b", "9"), False, id="CPUs"),
        pytest.param(
            a_node("b", "zone-b", "1"), a_node("b", "zone-b", "1", ready=False), True, id="not ready"
        ),
        pytest.param(a_node("b", "zone-b", "1"), a_node("b", "zone-c", "1"), True, id="zone"),
        pytest.param(None, a_node("b", "zone-b", "1"), False, id="new, within the threshold"),
        pytest.param(a_node("b", "zone-b", "1"), None, True, id="gone"),
    ],
)
def test_nodes_enqueue_the_services_that_they_overload(
    old: Node | None, new: Node | None, expected: bool
) -> None:
    bench = Bench(SERVICE, a_node("a", "zone-a", "1"), *([new] if new is not None else []))
    bench.memory.hinted.set(KEY, "IPv4", {"zone-a": 2, "zone-b": 2})
    assert bench.enqueued(bench.controller.watches[3].kind, old, new) == ([KEY] if expected else [])


def test_a_placeholder_that_is_there_is_kept() -> None:
    assert writes(Bench(SERVICE, a_node(), placeholder(SERVICE)).round()) == []
