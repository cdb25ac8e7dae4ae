"""Desired endpoints in rows: the endpoints of pods, their ports, and the labels of slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import Container, ContainerPort, InitContainer, ObjectMeta, Pod, PodSpec
from steersman.api.kinds.services import EndpointPort, EndpointSlice, Service, ServicePort
from steersman.controllers.endpointslice.endpoints import (
    CONTROLLER_NAME,
    address_types,
    desired_endpoints,
    endpoint_of,
    endpoint_ports,
    is_placeholder,
    new_slice,
    owned_by,
    slice_labels,
)
from steersman.controllers.shared.endpoint_slices import HEADLESS, MANAGED_BY, SERVICE_NAME
from tests.harness.endpoint_slices import a_node, a_pod, a_service, a_slice

SERVICE = a_service()
PUBLISHING = a_service("publishnotready", publishNotReadyAddresses=True)
RESERVED = {SERVICE_NAME: "foo", MANAGED_BY: CONTROLLER_NAME}
ZONE = a_node(zone="us-central1-a", region="us-central1")


@pytest.mark.parametrize(
    ("pod", "service", "ready", "serving", "terminating"),
    [
        pytest.param(a_pod(1), SERVICE, True, True, False, id="ready"),
        pytest.param(a_pod(1), PUBLISHING, True, True, False, id="ready, published"),
        pytest.param(a_pod(1, ready=False), SERVICE, False, False, False, id="unready"),
        pytest.param(a_pod(1, ready=False), PUBLISHING, True, False, False, id="unready, published"),
        pytest.param(a_pod(1, terminating=True), SERVICE, False, True, True, id="ready, terminating"),
        pytest.param(
            a_pod(1, ready=False, terminating=True), SERVICE, False, False, True, id="unready, terminating"
        ),
        pytest.param(
            a_pod(1, ready=False, terminating=True),
            PUBLISHING,
            True,
            False,
            True,
            id="terminating, published",
        ),
    ],
)
def test_the_conditions_of_an_endpoint_are_those_of_its_pod(
    pod: Pod, service: Service, ready: bool, serving: bool, terminating: bool
) -> None:
    endpoint = endpoint_of(pod, None, service, "IPv4")
    conditions = endpoint.conditions
    assert (conditions.ready, conditions.serving, conditions.terminating) == (ready, serving, terminating)
    assert (endpoint.addresses, endpoint.nodeName, endpoint.zone) == (("1.2.3.5",), "node-1", None)
    target = endpoint.targetRef
    assert target is not None
    assert (target.kind, target.namespace, target.name, target.uid) == ("Pod", "test", "pod1", "uid-1")


def test_an_endpoint_has_the_zone_of_its_node() -> None:
    assert endpoint_of(a_pod(1), ZONE, SERVICE, "IPv4").zone == "us-central1-a"
    assert endpoint_of(a_pod(1), a_node(), SERVICE, "IPv4").zone is None
    assert endpoint_of(a_pod(1, nodeName=""), None, SERVICE, "IPv4").nodeName is None


@pytest.mark.parametrize(
    ("ips", "ipv4", "ipv6"),
    [
        (["1.2.3.4", "1234::5678:0000:0000:9abc:def0"], ("1.2.3.4",), ("1234::5678:0:0:9abc:def0",)),
        (["1.2.3.4"], ("1.2.3.4",), ()),
        (["fd00:0:0::1"], (), ("fd00::1",)),
        (["001.002.003.004"], ("1.2.3.4",), ()),
        (["nonsense"], (), ()),
    ],
)
def test_an_endpoint_has_the_addresses_of_one_family(
    ips: list[str], ipv4: tuple[str, ...], ipv6: tuple[str, ...]
) -> None:
    pod = a_pod(1, ips=ips)
    assert endpoint_of(pod, None, SERVICE, "IPv4").addresses == ipv4
    assert endpoint_of(pod, None, SERVICE, "IPv6").addresses == ipv6


def test_an_endpoint_has_a_hostname_in_the_subdomain_of_its_service() -> None:
    assert endpoint_of(a_pod(1, hostname="h", subdomain="foo"), ZONE, SERVICE, "IPv4").hostname == "h"
    assert endpoint_of(a_pod(1, hostname="h", subdomain="bar"), ZONE, SERVICE, "IPv4").hostname is None


def named(**ports: int) -> Container:
    listed = [ContainerPort(name=name, containerPort=port, protocol="TCP") for name, port in ports.items()]
    return Container(ports=tuple(listed))


def sidecar(**ports: int) -> InitContainer:
    return InitContainer(ports=named(**ports).ports, restartPolicy="Always")


def wanted(name: str, target: int | str, app: str | None = None) -> ServicePort:
    return ServicePort(name=name, port=1, targetPort=target, protocol="TCP", appProtocol=app)


@pytest.mark.parametrize(
    ("ports", "spec", "expected"),
    [
        pytest.param(
            [wanted("http", 80, "example.com/custom-protocol")],
            PodSpec(containers=(named(),)),
            [("http", 80, "example.com/custom-protocol")],
            id="application protocol",
        ),
        pytest.param(
            [wanted("http", 80), wanted("https", "https", "https")],
            PodSpec(containers=(named(https=443),)),
            [("http", 80, None), ("https", 443, "https")],
            id="a number and a name",
        ),
        pytest.param(
            [wanted("http-sidecar", 8080), wanted("http", "http")],
            PodSpec(initContainers=(sidecar(**{"http-sidecar": 8080}),), containers=(named(http=8090),)),
            [("http-sidecar", 8080, None), ("http", 8090, None)],
            id="a sidecar and a container",
        ),
        pytest.param(
            [wanted("http", "http")],
            PodSpec(initContainers=(sidecar(http=8080),), containers=(named(http=8090),)),
            [("http", 8090, None)],
            id="the same name in both",
        ),
        pytest.param(
            [wanted("http", "http"), wanted("gone", "no-such")],
            PodSpec(containers=(named(http=8090),)),
            [("http", 8090, None)],
            id="a name the pod lacks is left out",
        ),
        pytest.param([], PodSpec(), [], id="no ports"),
        pytest.param(
            [wanted("a", 80), wanted("b", 80)],
            PodSpec(),
            [("a", 80, None), ("b", 80, None)],
            id="the same number twice",
        ),
    ],
)
def test_the_ports_of_an_endpoint(ports: list[ServicePort], spec: PodSpec, expected: list[Any]) -> None:
    found = endpoint_ports(a_service(ports=tuple(ports)), Pod(spec=spec))
    assert [(port.name, port.port, port.appProtocol) for port in found] == expected
    assert all(port.protocol == "TCP" for port in found)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"clusterIP": "10.0.0.10", "ipFamilies": ()}, ("IPv4",), id="old server, IPv4"),
        pytest.param({"clusterIP": "2000::1", "ipFamilies": ()}, ("IPv6",), id="old server, IPv6"),
        pytest.param({"ipFamilies": ("IPv4",)}, ("IPv4",), id="IPv4"),
        pytest.param({"ipFamilies": ("IPv6",)}, ("IPv6",), id="IPv6"),
        pytest.param({"ipFamilies": ("IPv4", "IPv6")}, ("IPv4", "IPv6"), id="dual-stack"),
        pytest.param({"ipFamilies": ("IPv6", "IPv4")}, ("IPv6", "IPv4"), id="dual-stack, IPv6 first"),
        pytest.param({"clusterIP": "None", "ipFamilies": ()}, ("IPv4", "IPv6"), id="old server, headless"),
        pytest.param(
            {"clusterIP": "None", "ipFamilies": (), "selector": {}}, ("IPv4", "IPv6"), id="no selector"
        ),
        pytest.param({"clusterIP": "None", "ipFamilies": ("IPv4", "IPv6")}, ("IPv4", "IPv6"), id="headless"),
        pytest.param({"clusterIP": "None", "ipFamilies": ("IPv6",)}, ("IPv6",), id="headless, IPv6"),
    ],
)
def test_a_service_has_slices_of_its_ip_families(spec: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    assert address_types(a_service(**spec)) == expected


FULL = {"clusterIP": "1.1.1.1"}
NONE = {"clusterIP": "None"}
HEADLESS_LABEL = {HEADLESS: ""}
FOO = {"foo": "bar"}
EVIL = {SERVICE_NAME: "bad", MANAGED_BY: "actor"}


@pytest.mark.parametrize(
    ("current", "spec", "labels", "expected", "changed"),
    [
        pytest.param({}, FULL, {}, {}, False, id="no labels"),
        pytest.param({}, NONE, FOO, {**HEADLESS_LABEL, **FOO}, True, id="headless, with labels"),
        pytest.param({}, NONE, {}, HEADLESS_LABEL, False, id="headless, without labels"),
        pytest.param({}, FULL, HEADLESS_LABEL, {}, False, id="headless by a label alone"),
        pytest.param(
            {**RESERVED, **HEADLESS_LABEL}, FULL, HEADLESS_LABEL, {}, False, id="was headless, labelled"
        ),
        pytest.param({**RESERVED, **HEADLESS_LABEL}, FULL, {}, {}, False, id="was headless"),
        pytest.param({**RESERVED, **FOO}, NONE, FOO, {**HEADLESS_LABEL, **FOO}, False, id="the same labels"),
        pytest.param({}, FULL, FOO, FOO, True, id="labels of the Service"),
        pytest.param({**RESERVED, **FOO}, FULL, {}, {}, True, id="labels of the slice only"),
        pytest.param(RESERVED, FULL, FOO, FOO, True, id="reserved labels and one of the Service"),
        pytest.param(RESERVED, FULL, {**EVIL, HEADLESS: "invalid"}, {}, False, id="reserved labels hijacked"),
        pytest.param(RESERVED, FULL, {**EVIL, **FOO}, FOO, True, id="reserved labels hijacked, and another"),
    ],
)
def test_a_slice_mirrors_the_labels_of_its_service(
    current: Mapping[str, str],
    spec: Mapping[str, Any],
    labels: Mapping[str, str],
    expected: Mapping[str, str],
    changed: bool,
) -> None:
    assert slice_labels(current, a_service(labels=labels, **spec)) == ({**RESERVED, **expected}, changed)


@pytest.mark.parametrize(
    ("labels", "spec", "expected"),
    [
        pytest.param({}, FULL, {}, id="no labels"),
        pytest.param(FOO, FULL, FOO, id="one label"),
        pytest.param(FOO, NONE, {**FOO, **HEADLESS_LABEL}, id="headless"),
        pytest.param({**FOO, "foo2": "bar2"}, FULL, {**FOO, "foo2": "bar2"}, id="two labels"),
        pytest.param({**EVIL, **FOO}, FULL, FOO, id="reserved labels hijacked"),
        pytest.param({}, {**FULL, "annotations": FOO}, {}, id="annotations are not mirrored"),
    ],
)
def test_a_new_slice(labels: Mapping[str, str], spec: Mapping[str, Any], expected: Mapping[str, str]) -> None:
    ports = (EndpointPort(name="foo", protocol="TCP"),)
    service = a_service(labels=labels, **spec)
    slice = new_slice(service, "IPv4", ports)
    assert slice.metadata.labels == {**RESERVED, **expected}
    assert (slice.metadata.generateName, slice.metadata.namespace) == ("foo-", "test")
    assert (slice.addressType, slice.ports, slice.endpoints) == ("IPv4", ports, ())
    (owner,) = slice.metadata.ownerReferences
    assert (owner.apiVersion, owner.kind, owner.name, owner.uid) == ("v1", "Service", "foo", "test-foo")
    assert (owner.controller, owner.blockOwnerDeletion) == (True, True)
    assert not slice.metadata.annotations


def test_a_name_of_the_greatest_length_takes_no_dash() -> None:
    assert new_slice(a_service("s" * 252), "IPv4").metadata.generateName == "s" * 252 + "-"
    assert new_slice(a_service("s" * 253), "IPv4").metadata.generateName == "s" * 253


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"uid": "other"}, False),
        ({"kind": "Endpoints"}, False),
        ({"apiVersion": "v2"}, False),
        ({"controller": None}, True),
    ],
)
def test_a_slice_is_owned_by_the_service_of_its_owner_reference(
    change: Mapping[str, Any], expected: bool
) -> None:
    slice = a_slice(SERVICE)
    owner = replace(slice.metadata.ownerReferences[0], **change)
    assert owned_by(a_slice(SERVICE, ownerReferences=(owner,)), SERVICE) == expected


EMPTY = EndpointSlice(metadata=ObjectMeta(namespace="test"))


def with_meta(**meta: Any) -> EndpointSlice:
    return replace(EMPTY, metadata=replace(EMPTY.metadata, **meta))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(EMPTY, EMPTY, True, id="empty"),
        pytest.param(with_meta(name="foo"), with_meta(name="bar"), True, id="names differ"),
        pytest.param(with_meta(labels=FOO), with_meta(labels={"bar": "true"}), False, id="labels differ"),
        pytest.param(with_meta(labels={"a": ""}), EMPTY, True, id="a label without a value"),
        pytest.param(with_meta(namespace="other"), EMPTY, False, id="namespaces differ"),
        pytest.param(with_meta(creationTimestamp=None), EMPTY, True, id="times differ"),
        pytest.param(replace(EMPTY, addressType="IPv6"), EMPTY, False, id="families differ"),
        pytest.param(replace(EMPTY, endpoints=(), ports=()), EMPTY, True, id="empty lists and none"),
        pytest.param(replace(EMPTY, ports=(EndpointPort(port=1),)), EMPTY, False, id="ports"),
        pytest.param(
            replace(EMPTY, endpoints=a_slice(SERVICE, of=[a_pod(1)]).endpoints), EMPTY, False, id="endpoints"
        ),
    ],
)
def test_a_placeholder_is_recognised(one: EndpointSlice, other: EndpointSlice, expected: bool) -> None:
    assert is_placeholder(one, other) == expected


def test_of_two_pods_with_one_address_each_is_an_endpoint() -> None:
    twins = [a_pod(1, ips=["10.0.0.1"]), a_pod(2, ips=["10.0.0.1"])]
    ended = a_pod(3, ips=["10.0.0.1"], phase="Succeeded")
    desired = desired_endpoints(SERVICE, [*twins, ended], {"node-1": a_node()}, "IPv4")
    (group,) = desired.groups.values()
    assert [one.targetRef.name for one in group.endpoints.values() if one.targetRef] == ["pod1", "pod2"]
