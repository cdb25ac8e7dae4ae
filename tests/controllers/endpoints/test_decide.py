"""endpoints-controller: upstream's rows, and those of our own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Cause, Conflict, Forbidden, NotFound, ServerError
from steersman.api.kinds import (
    Condition,
    Container,
    ContainerPort,
    InitContainer,
    ObjectMeta,
    ObjectReference,
    Pod,
    PodIP,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.services import (
    EndpointAddress,
    Endpoints,
    EndpointsPort,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.scheme import Key
from steersman.controllers.endpoints import (
    HEADLESS,
    LEADER,
    LEFTOVERS,
    MANAGED_BY,
    MANAGER,
    OVER_CAPACITY,
    Leftovers,
    Observation,
    controller,
    endpoint_address,
    endpoint_ports,
)
from steersman.controllers.shared.endpoint_subsets import MAX_CAPACITY, sort_subsets
from steersman.controllers.shared.trigger_time import LAST_CHANGE_TRIGGER_TIME
from steersman.intent.actions import Action, Create, Delete, Emit, Update
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD = datetime(2018, 1, 1, 12, tzinfo=UTC)
KEY = Key("other", "foo")
V4, V6 = ("IPv4",), ("IPv6",)
OWN = {MANAGED_BY: MANAGER}
TCP = ServicePort(port=80, protocol="TCP", targetPort=8080)


def pod(
    number: int = 0,
    *,
    ready: bool = True,
    ports: int = 1,
    families: tuple[str, ...] = V4,
    namespace: str = "other",
    phase: str = "",
    terminating: bool = False,
    labels: Mapping[str, str] = {"foo": "bar"},
    **spec: Any,
) -> Pod:
    """Upstream's testPod."""
    ips = {
        "IPv4": f"1.2.{3 + (4 + number) // 256}.{(4 + number) % 256}",
        "IPv6": f"2000::{4 + number:x}",
    }
    found = tuple(PodIP(ip=ips[family]) for family in families)
    numbers = tuple(ContainerPort(name=f"port{i}", containerPort=8080 + i) for i in range(ports))
    return Pod(
        metadata=ObjectMeta(
            name=f"pod{number}",
            namespace=namespace,
            labels=labels,
            resourceVersion=str(number),
            deletionTimestamp=NOW if terminating else None,
        ),
        spec=PodSpec(containers=(Container(ports=numbers),), **spec),
        status=PodStatus(
            phase=phase,
            podIP=found[0].ip if found else "",
            podIPs=found,
            conditions=(Condition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def service(
    *ports: ServicePort, labels: Mapping[str, str] = {}, created: datetime | None = None, **spec: Any
) -> Service:
    spec = {"selector": {"foo": "bar"}, "ipFamilies": V4, **spec}
    return Service(
        metadata=ObjectMeta(name="foo", namespace="other", labels=labels, creationTimestamp=created),
        spec=ServiceSpec(ports=ports, **spec),
    )


def address(number: int) -> EndpointAddress:
    """The address of `pod`."""
    return EndpointAddress(
        ip=f"1.2.3.{4 + number}",
        nodeName="",
        targetRef=ObjectReference(kind="Pod", name=f"pod{number}", namespace="other"),
    )


def stored(
    *subsets: EndpointSubset, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}
) -> Endpoints:
    """Endpoints that are written."""
    return Endpoints(
        metadata=ObjectMeta(
            name="foo", namespace="other", resourceVersion="1", labels=labels, annotations=annotations
        ),
        subsets=subsets,
    )


FOREIGN = EndpointSubset(
    addresses=(EndpointAddress(ip="6.7.8.9", nodeName=""),), ports=(EndpointsPort(port=1000, protocol="TCP"),)
)


def look(*objects: Any, key: Key = KEY, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, *objects), key)
    return walk(controller.decide(seen, NOW), answers) if seen is not None else ([], Rest("gone"))


def _see(caches: StaticCaches) -> Observation | Leftovers:
    seen = controller.see(caches, KEY)
    assert seen is not None
    return seen


def written(*objects: Any) -> Endpoints:
    """The Endpoints that the one action of a round writes."""
    (action,), _ = look(*objects)
    found = (
        action.body if isinstance(action, Create) else action.target if isinstance(action, Update) else None
    )
    assert isinstance(found, Endpoints)
    return found


def counted(endpoints: Endpoints) -> tuple[int, int]:
    return (
        sum(len(subset.addresses) for subset in endpoints.subsets),
        sum(len(subset.notReadyAddresses) for subset in endpoints.subsets),
    )


# -- Services -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {}},
        {"type": "ExternalName"},
        {"type": "ExternalName", "selector": {}},
        {"type": "ExternalName", "ports": ()},
        {"type": "ExternalName", "selector": {}, "ports": ()},
    ],
)
def test_services_without_pods_keep_the_endpoints_they_have(spec: dict[str, Any]) -> None:
    """Upstream's TestSyncEndpointsItemsPreserveNoSelector and TestSyncServiceExternalNameType."""
    found = replace(service(TCP), spec=ServiceSpec(**{"ports": (TCP,), "selector": {"foo": "bar"}, **spec}))
    assert look(found, pod())[0] == []
    assert look(found, pod(), stored(FOREIGN))[0] == []


@pytest.mark.parametrize("labels", [OWN, {**OWN, HEADLESS: ""}])
def test_endpoints_that_are_right_are_not_written(labels: Mapping[str, str]) -> None:
    """Upstream's TestSyncEndpointsExisting{Nil,Empty}Subsets and TestSyncEndpointsHeadlessServiceLabel."""
    assert look(service(ServicePort(port=80)), stored(labels=labels)) == (
        [],
        Rest("Endpoints are up to date"),
    )


@pytest.mark.parametrize(
    "current",
    [
        EndpointSubset(addresses=(address(0),), notReadyAddresses=(address(1),)),
        EndpointSubset(
            addresses=tuple(
                replace(a, targetRef=replace(a.targetRef, resourceVersion="1"))  # type: ignore[type-var]
                for a in (address(0),)
            ),
            notReadyAddresses=(address(1),),
        ),
    ],
    ids=["identical", "another resourceVersion"],
)
def test_a_pods_resource_version_is_no_reason_to_write(current: EndpointSubset) -> None:
    """Upstream's TestSyncEndpointsItemsPreexistingIdentical and …WithPodResourceVersionUpdateOnly."""
    subset = replace(current, ports=(EndpointsPort(port=8080, protocol="TCP"),))
    assert look(service(TCP), pod(), pod(1, ready=False), stored(subset, labels=OWN))[0] == []


def test_the_order_of_addresses_is_no_reason_to_write() -> None:
    """Upstream's TestSyncEndpointsItemsPreexistingIdenticalUnsorted."""
    subset = EndpointSubset(
        addresses=(address(1), address(0)), ports=(EndpointsPort(port=8080, protocol="TCP"),)
    )
    assert look(service(TCP), pod(), pod(1), stored(subset, labels=OWN))[0] == []


def test_a_service_without_pods_gets_empty_endpoints() -> None:
    """Upstream's TestSyncEndpointsNewNoSubsets."""
    found = written(service(ServicePort(port=80)))
    assert (found.metadata.name, found.metadata.namespace, found.subsets) == ("foo", "other", ())
    assert found.metadata.labels == {**OWN, HEADLESS: ""}


@pytest.mark.parametrize("protocol", ["TCP", "UDP", "SCTP"])
def test_endpoints_have_the_protocol_of_the_service(protocol: str) -> None:
    """Upstream's TestSyncEndpointsProtocol{TCP,UDP,SCTP}."""
    found = written(service(ServicePort(port=80, targetPort=8080, protocol=protocol)), pod(), stored(FOREIGN))
    assert found.metadata.resourceVersion == "1"
    assert found.metadata.labels == {**OWN, HEADLESS: ""}
    assert found.subsets == (
        EndpointSubset(addresses=(address(0),), ports=(EndpointsPort(port=8080, protocol=protocol),)),
    )


def test_one_port_may_have_two_protocols() -> None:
    """Upstream's TestSyncEndpointsProtocolMultiProtocolSamePort."""
    found = written(service(TCP, replace(TCP, protocol="UDP")), pod(), stored())
    ports = tuple(EndpointsPort(port=8080, protocol=protocol) for protocol in ("UDP", "TCP"))
    assert found.subsets == (EndpointSubset(addresses=(address(0),), ports=ports),)


@pytest.mark.parametrize(
    ("pods", "ready", "not_ready"),
    [
        ((pod(),), (0,), ()),
        ((pod(ready=False),), (), (0,)),
        ((pod(), pod(1, ready=False)), (0,), (1,)),
        ((pod(), pod(1, namespace="blah"), pod(2, labels={"foo": "baz"})), (0,), ()),
    ],
    ids=["ready", "not ready", "mixed", "others"],
)
def test_endpoints_are_those_of_the_selected_pods(
    pods: tuple[Pod, ...], ready: tuple[int, ...], not_ready: tuple[int, ...]
) -> None:
    """Upstream's TestSyncEndpointsItemsEmptySelectorSelectsAll…, with a selector."""
    assert written(service(TCP), *pods, stored()).subsets == (
        EndpointSubset(
            addresses=tuple(map(address, ready)),
            notReadyAddresses=tuple(map(address, not_ready)),
            ports=(EndpointsPort(port=8080, protocol="TCP"),),
        ),
    )


@pytest.mark.parametrize("labels", [{}, {"foo": "bar"}])
def test_new_endpoints_have_the_labels_of_the_service(labels: Mapping[str, str]) -> None:
    """Upstream's TestSyncEndpointsItems and TestSyncEndpointsItemsWithLabels."""
    ports = (replace(TCP, name="port0"), replace(TCP, name="port1", port=88, targetPort=8088))
    found = written(service(*ports, labels=labels), *map(pod, range(3)), pod(4, namespace="blah"))
    assert found.metadata.labels == {**labels, **OWN, HEADLESS: ""}
    assert found.subsets == sort_subsets(
        (
            EndpointSubset(
                addresses=tuple(map(address, range(3))),
                ports=(
                    EndpointsPort(name="port0", port=8080, protocol="TCP"),
                    EndpointsPort(name="port1", port=8088, protocol="TCP"),
                ),
            ),
        )
    )


@pytest.mark.parametrize(
    ("before", "labels", "after"),
    [
        ({"foo": "bar"}, {"baz": "blah"}, {"baz": "blah", **OWN}),
        ({"foo": "bar", **OWN}, {}, OWN),
        ({}, {}, OWN),
        ({MANAGED_BY: "you"}, {}, OWN),
    ],
)
def test_endpoints_lose_labels_that_the_service_does_not_have(
    before: Mapping[str, str], labels: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Upstream's TestSyncEndpointsItemsPreexistingLabelsChange."""
    found = written(service(TCP, labels=labels, clusterIP="10.0.0.1"), stored(labels=before))
    assert found.metadata.labels == after


@pytest.mark.parametrize(
    ("cluster_ip", "labels", "headless"),
    [("", {}, True), ("None", {}, True), ("10.0.0.1", {}, False), ("10.0.0.1", {HEADLESS: ""}, False)],
)
def test_endpoints_of_headless_services_have_a_label(
    cluster_ip: str, labels: Mapping[str, str], headless: bool
) -> None:
    assert (
        HEADLESS in written(service(TCP, labels=labels, clusterIP=cluster_ip)).metadata.labels
    ) is headless


def test_odd_labels_of_a_service_cause_no_endless_writes() -> None:
    odd = service(TCP, labels={HEADLESS: "x", MANAGED_BY: "you"}, clusterIP="10.0.0.1")
    assert look(odd, stored(labels=OWN))[0] == []


@pytest.mark.parametrize("current", [(), (stored(FOREIGN),)], ids=["new", "foreign"])
def test_a_headless_service_may_have_no_ports(current: tuple[Endpoints, ...]) -> None:
    """Upstream's TestSyncEndpointsHeadlessService and TestSyncEndpointsHeadlessWithoutPort."""
    found = written(service(clusterIP="None", labels={"a": "b"}), pod(), *current)
    assert found.metadata.labels == {"a": "b", **OWN, HEADLESS: ""}
    assert found.subsets == (EndpointSubset(addresses=(address(0),)),)


def test_another_service_without_ports_has_no_endpoints() -> None:
    assert written(service(clusterIP="10.0.0.1"), pod()).subsets == ()


@pytest.mark.parametrize(
    ("policy", "phase"), [("Never", "Failed"), ("Never", "Succeeded"), ("OnFailure", "Succeeded")]
)
def test_pods_that_have_ended_are_no_endpoints(policy: str, phase: str) -> None:
    """Upstream's TestSyncEndpointsItemsExcludeNotReadyPodsWithRestartPolicy…."""
    ended = pod(ready=False, phase=phase, restartPolicy=policy)
    found = written(service(TCP), ended, stored(labels={**OWN, "foo": "bar"}))
    assert found.subsets == ()
    assert found.metadata.labels == {**OWN, HEADLESS: ""}


@pytest.mark.parametrize(
    ("phase", "ready", "terminating", "publish", "expected"),
    [
        ("Running", True, False, False, (1, 0)),
        ("Running", True, True, False, (0, 0)),
        ("Unknown", True, False, False, (1, 0)),
        ("Unknown", True, True, False, (0, 0)),
        ("Pending", True, False, False, (1, 0)),
        ("Pending", True, True, False, (0, 0)),
        ("Unknown", False, False, False, (0, 1)),
        ("Pending", False, False, False, (0, 1)),
        ("Failed", False, False, False, (0, 0)),
        ("Succeeded", False, False, False, (0, 0)),
        ("Running", False, False, True, (1, 0)),
        ("Running", False, True, True, (1, 0)),
        ("Unknown", False, False, True, (1, 0)),
        ("Unknown", False, True, True, (1, 0)),
        ("Pending", False, False, True, (1, 0)),
        ("Pending", False, True, True, (1, 0)),
        ("Failed", False, False, True, (0, 0)),
        ("Succeeded", False, False, True, (0, 0)),
    ],
)
def test_readiness_and_termination(
    phase: str, ready: bool, terminating: bool, publish: bool, expected: tuple[int, int]
) -> None:
    """Upstream's TestSyncServiceAddresses."""
    asking = service(
        ServicePort(port=80), type="ClusterIP", clusterIP="1.1.1.1", publishNotReadyAddresses=publish
    )
    assert counted(written(asking, pod(phase=phase, ready=ready, terminating=terminating))) == expected


# -- addresses and ports ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod_families", "cluster_ip", "families", "expected"),
    [
        (V4, "10.0.0.1", V4, "IPv4"),
        (V4 + V6, "10.0.0.1", V4, "IPv4"),
        (V6 + V4, "10.0.0.1", V4, "IPv4"),
        (V4, "None", V4, "IPv4"),
        (V4 + V6, "None", V4, "IPv4"),
        (V4 + V6, "3000::1", V6, "IPv6"),
        (V6, "None", V6, "IPv6"),
        (V4 + V6, "None", V6, "IPv6"),
        (V4, "3000::1", V6, ""),
        (V4 + V6, "10.0.0.1", V4 + V6, "IPv4"),
        (V4 + V6, "3000::1", V6 + V4, "IPv6"),
        (V4, "10.0.0.1", (), "IPv4"),
        (V6, "fd00::1", (), "IPv6"),
        (V6, "10.0.0.1", (), ""),
        (V4, "None", (), "IPv4"),
        (V6, "None", (), "IPv6"),
        (V4, "", (), "IPv4"),
    ],
)
def test_addresses_are_of_the_first_family_of_the_service(
    pod_families: tuple[str, ...], cluster_ip: str, families: tuple[str, ...], expected: str
) -> None:
    """Upstream's TestPodToEndpointAddressForService, with and without IP families."""
    given = pod(families=pod_families, nodeName="node-1")
    first = given.status.podIPs[0].ip
    # A leading zero is corrected.
    irregular = PodIP(ip=f"0{first}" if "." in first else first)
    given = replace(given, status=replace(given.status, podIPs=(irregular, *given.status.podIPs[1:])))
    found = endpoint_address(service(clusterIP=cluster_ip, ipFamilies=families), given)
    if not expected:
        assert found is None
        return
    assert found is not None
    assert found.ip == {"IPv4": "1.2.3.4", "IPv6": "2000::4"}[expected]
    assert found.nodeName == "node-1"
    assert found.targetRef == ObjectReference(kind="Pod", namespace="other", name="pod0")


def test_pods_without_an_address_of_the_family_are_left_out() -> None:
    odd = pod(1)
    odd = replace(odd, status=replace(odd.status, podIP="?", podIPs=(PodIP(ip="?"),)))
    found = written(service(TCP, ipFamilies=V6), pod(), odd, pod(2, families=V4 + V6))
    assert [a.ip for subset in found.subsets for a in subset.addresses] == ["2000::6"]


@pytest.mark.parametrize(
    ("hostname", "subdomain", "expected"),
    [("h", "foo", "h"), ("h", "bar", ""), ("", "foo", ""), ("h", "", "")],
)
def test_endpoints_have_the_hostname_of_pods_in_the_services_subdomain(
    hostname: str, subdomain: str, expected: str
) -> None:
    found = endpoint_address(service(TCP), pod(hostname=hostname, subdomain=subdomain))
    assert found is not None
    assert found.hostname == expected


@pytest.mark.parametrize("protocol", [None, "http"])
def test_endpoints_have_the_application_protocol_of_the_service(protocol: str | None) -> None:
    """Upstream's TestEndpointPortFromServicePort."""
    (found,) = endpoint_ports(service(replace(TCP, name="test", appProtocol=protocol)), pod()) or ()
    assert found == EndpointsPort(name="test", port=8080, protocol="TCP", appProtocol=protocol)


def named(name: str, target: str | int, port: int = 80) -> ServicePort:
    return ServicePort(name=name, port=port, targetPort=target)


def listening(number: int, port: str, value: int, *, sidecar: str | None = None) -> Pod:
    ports = (ContainerPort(name=port, containerPort=value),)
    given = pod(number, ports=0)
    if sidecar is None:
        return replace(given, spec=PodSpec(containers=(Container(ports=ports),)))
    return replace(given, spec=PodSpec(initContainers=(InitContainer(ports=ports, restartPolicy=sidecar),)))


def test_named_ports_are_looked_up_in_each_pod() -> None:
    """Upstream's TestSyncEndpointsAddDeletePorts."""
    first, second = listening(0, "svc1", 100), listening(1, "svc2", 101)
    one = EndpointSubset(addresses=(address(0),), ports=(EndpointsPort(name="portname1", port=100),))
    two = EndpointSubset(addresses=(address(1),), ports=(EndpointsPort(name="portname2", port=101),))
    ports = (named("portname1", "svc1"), named("portname2", "svc2", 81))
    asking = service(ports[0], clusterIP="1.1.1.1")
    assert written(asking, first, stored(labels=OWN)).subsets == (one,)
    asking = service(*ports, clusterIP="1.1.1.1")
    found = written(asking, first, second, stored(one, labels=OWN))
    assert found.subsets == sort_subsets((one, two))
    asking = service(ports[1], clusterIP="1.1.1.1")
    assert written(asking, first, second, found).subsets == (two,)


@pytest.mark.parametrize(("policy", "expected"), [("Always", 100), ("", None)])
def test_named_ports_of_sidecars_count(policy: str, expected: int | None) -> None:
    found = endpoint_ports(service(named("a", "svc1")), listening(0, "svc1", 100, sidecar=policy))
    assert (found[0].port if found else None) == expected


# -- capacity -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "existing", "ready", "not_ready", "expected", "annotated"),
    [
        (None, 0, 0, 0, (0, 0), False),
        (None, MAX_CAPACITY - 1, MAX_CAPACITY - 3, 4, (MAX_CAPACITY - 3, 3), True),
        (None, MAX_CAPACITY - 1, MAX_CAPACITY, 10, (MAX_CAPACITY, 0), True),
        ("truncated", MAX_CAPACITY - 1, MAX_CAPACITY - 1, 0, (MAX_CAPACITY - 1, 0), False),
        ("warning", MAX_CAPACITY, MAX_CAPACITY, 0, (MAX_CAPACITY, 0), False),
        ("warning", MAX_CAPACITY + 1, MAX_CAPACITY + 1, 0, (MAX_CAPACITY, 0), True),
        ("truncated", MAX_CAPACITY, MAX_CAPACITY, 0, (MAX_CAPACITY, 0), False),
        ("invalid", MAX_CAPACITY + 1, MAX_CAPACITY + 1, 0, (MAX_CAPACITY, 0), True),
    ],
)
def test_endpoints_hold_a_thousand_addresses(
    annotation: str | None,
    existing: int,
    ready: int,
    not_ready: int,
    expected: tuple[int, int],
    annotated: bool,
) -> None:
    """Upstream's TestSyncServiceOverCapacity."""
    asking = service(ServicePort(port=80))
    pods = [pod(i, ready=i < ready) for i in range(ready + not_ready)]
    addresses = tuple(one for each in pods[:existing] if (one := endpoint_address(asking, each)))
    annotations = {OVER_CAPACITY: annotation} if annotation is not None else {}
    current = stored(EndpointSubset(addresses=addresses), annotations=annotations)
    found = written(asking, *pods, current)
    assert counted(found) == expected
    assert found.metadata.annotations == ({OVER_CAPACITY: "truncated"} if annotated else {})
    # Once written, there is nothing more to write.
    assert look(asking, *pods, found)[0] == []


# -- the trigger time ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("created", "before", "after"),
    [
        (OLD, {}, "2018-01-01T12:00:00Z"),
        (OLD, {LAST_CHANGE_TRIGGER_TIME: "2001-01-01T12:00:00Z"}, "2018-01-01T12:00:00Z"),
        (None, {LAST_CHANGE_TRIGGER_TIME: "2018-01-01T12:00:00Z"}, None),
    ],
    ids=["set", "overridden", "cleared"],
)
def test_endpoints_say_when_their_change_happened(
    created: datetime | None, before: dict[str, str], after: str | None
) -> None:
    """Upstream's TestLastTriggerChangeTimeAnnotation…."""
    found = written(
        service(TCP, created=created), pod(), stored(FOREIGN, annotations={**before, "kept": "yes"})
    )
    expected = {"kept": "yes"} | ({LAST_CHANGE_TRIGGER_TIME: after} if after else {})
    assert found.metadata.annotations == expected


def test_a_later_change_has_the_time_of_the_pod() -> None:
    asking, later = service(TCP, created=OLD), OLD + timedelta(days=1, milliseconds=250)
    caches = StaticCaches(controller, asking)
    (created,), _ = walk(controller.decide(_see(caches), NOW))
    assert isinstance(created, Create)
    found = created.body
    assert isinstance(found, Endpoints)
    condition = Condition(type="Ready", status="True", lastTransitionTime=later)
    joined = pod()
    caches.put(replace(joined, status=replace(joined.status, conditions=(condition,))))
    caches.put(replace(found, metadata=replace(found.metadata, resourceVersion="1")))
    (updated,), _ = walk(controller.decide(_see(caches), NOW))
    assert isinstance(updated, Update)
    assert updated.target.metadata.annotations[LAST_CHANGE_TRIGGER_TIME] == "2018-01-02T12:00:00.25Z"


def test_a_failed_write_is_tried_again_with_the_same_trigger_time() -> None:
    caches = StaticCaches(controller, service(TCP, created=OLD))
    with pytest.raises(ServerError):
        walk(controller.decide(_see(caches), NOW), {Create: ServerError("down")})
    (created,), _ = walk(controller.decide(_see(caches), NOW))
    assert isinstance(created, Create)
    assert isinstance(created.body, Endpoints)
    assert created.body.metadata.annotations == {LAST_CHANGE_TRIGGER_TIME: "2018-01-01T12:00:00Z"}


# -- deletion and errors ------------------------------------------------------------------------


def test_endpoints_go_with_their_service() -> None:
    """Upstream's TestSyncEndpointsServiceNotFound."""
    assert look(stored())[0] == [Delete(stored())]
    assert look(stored(), answers={Delete: NotFound("gone")})[1] == Rest(
        "deleted 1 Endpoints without a Service"
    )
    assert look()[0] == []


def test_leftover_endpoints_are_deleted_at_start() -> None:
    """Upstream's TestCheckLeftoverEndpoints."""
    assert controller.initial_keys == (LEFTOVERS,)
    lock = replace(stored(), metadata=ObjectMeta(name="lock", namespace="other", annotations={LEADER: "{}"}))
    left = replace(stored(), metadata=ObjectMeta(name="left", namespace="other"))
    assert look(service(TCP), stored(), lock, left, key=LEFTOVERS)[0] == [Delete(left)]
    assert look(service(TCP), stored(), lock, key=LEFTOVERS)[0] == []


TERMINATING = Forbidden("no", causes=(Cause("NamespaceTerminating", "", ""),))


def test_a_terminating_namespace_takes_no_endpoints() -> None:
    actions, verdict = look(service(TCP), answers={Create: TERMINATING})
    assert [type(action) for action in actions] == [Create]
    assert verdict == Rest("namespace is terminating")


@pytest.mark.parametrize("error", [Forbidden("no"), ServerError("down")])
def test_a_refused_creation_has_an_event(error: ApiError) -> None:
    actions: list[Action[Any]] = []
    with pytest.raises(type(error)):
        walk(
            controller.decide(_see(StaticCaches(controller, service(TCP))), NOW),
            {Create: error},
            recorded=actions,
        )
    emitted = actions[-1]
    assert isinstance(emitted, Emit)
    assert (emitted.type, emitted.reason) == ("Warning", "FailedToCreateEndpoint")
    assert emitted.message == f"Failed to create endpoint for service other/foo: {error}"


@pytest.mark.parametrize("error", [Conflict("changed"), TERMINATING])
def test_a_refused_update_has_an_event(error: ApiError) -> None:
    actions: list[Action[Any]] = []
    with pytest.raises(type(error)):
        walk(
            controller.decide(_see(StaticCaches(controller, service(TCP), stored(FOREIGN))), NOW),
            {Update: error},
            recorded=actions,
        )
    emitted = actions[-1]
    assert isinstance(emitted, Emit)
    assert (emitted.type, emitted.reason) == ("Warning", "FailedToUpdateEndpoint")
    assert emitted.message == f"Failed to update endpoint other/foo: {error}"


# -- what is a reason to look ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "change", "keys"),
    [
        (0, Change(None, service(TCP)), [KEY]),
        (0, Change(service(TCP), None), [KEY]),
        (1, Change(None, pod()), [KEY]),
        (1, Change(pod(), None), [KEY]),
        (1, Change(pod(), pod(ready=False)), [KEY]),
        (1, Change(pod(), pod(nodeName="n")), []),
        (1, Change(pod(), pod(labels={})), [KEY]),
        (1, Change(None, pod(labels={})), []),
        (2, Change(None, stored()), []),
        (2, Change(stored(), stored(FOREIGN)), []),
        (2, Change(stored(), None), [KEY]),
    ],
)
def test_what_is_a_reason_to_look(number: int, change: Any, keys: list[Key]) -> None:
    """Among these, upstream's TestEndpointsDeletionEvents."""
    caches = StaticCaches(controller, service(TCP))
    assert list(controller.watches[number].to(caches, change)) == keys


def test_changes_of_pods_are_gathered_for_the_batch_period() -> None:
    configured = controller.configured(Settings({"endpoint-updates-batch-period": 1.5}))
    assert configured is not None
    assert [watch.delay for watch in configured.watches] == [0.0, 1.5, 0.0]
