"""Services: no two have the same address or port, and what one gives back another can have."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Invalid
from steersman.api.generated.core_v1 import LoadBalancerIngress, LoadBalancerStatus, ServiceStatus
from steersman.api.generated.meta_v1 import Condition
from steersman.api.generated.networking_v1 import ServiceCIDRStatus
from steersman.server import admission
from steersman.server.admission.service_allocation import CIDR
from steersman.server.admission.service_ip_addresses import IPADDRESSES, SERVICECIDRS
from steersman.server.bootstrap_objects import create_bootstrap_objects
from steersman.server.storage.watch import Selection
from tests.harness import verbs


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def test_the_servers_own_service_has_the_first_address(ask: Any) -> None:
    assert ask.get("services", "kubernetes").spec.clusterIPs == ("10.0.0.1",)


def test_every_service_has_an_address_of_its_own_above_the_reserved_band(ask: Any) -> None:
    made = [ask.create("services", service(f"s{i}")).spec.clusterIP for i in range(60)]
    assert len(dict.fromkeys(made)) == 60
    low = IPv4Network(CIDR).network_address + 256
    assert all(low < IPv4Address(ip) < IPv4Network(CIDR).broadcast_address for ip in made)


def test_an_address_is_free_again_once_its_service_is_gone(ask: Any) -> None:
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    said = ask.forbidden_error("services", service("b", clusterIP="10.0.0.9"))
    assert said == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.9"]: '
        "failed to allocate IP 10.0.0.9: provided IP is already allocated"
    )
    ask.delete("services", "a")
    assert ask.create("services", service("b", clusterIP="10.0.0.9")).spec.clusterIP == "10.0.0.9"


def test_a_small_range_is_used_to_the_last_address_and_then_full(ask: Any) -> None:
    ask.server.remove(ask.resource(SERVICECIDRS), "kubernetes")
    ask.server.extend(admission.default(cidr="10.0.0.0/28"))
    made = [ask.create("services", service(f"s{i}")).spec.clusterIP for i in range(13)]
    assert len(dict.fromkeys(made)) == 13
    assert "range is full" in ask.forbidden_error("services", service("more"))


def test_an_update_that_leaves_out_what_was_allocated_keeps_it(ask: Any) -> None:
    old = ask.create("services", service("s", type="NodePort"))
    bare = replace(
        old,
        spec=replace(
            old.spec,
            clusterIP="",
            clusterIPs=(),
            ports=tuple(replace(port, nodePort=0) for port in old.spec.ports),
        ),
    )
    assert ask.patch("services", "s", lambda _: bare).spec == old.spec


def test_a_node_port_that_is_given_back_can_be_had(ask: Any) -> None:
    ask.create("services", service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30123}]))
    ask.patch("services", "a", lambda old: replace(old, spec=replace(old.spec, type="ClusterIP")))
    again = service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30123}])
    assert ask.create("services", again).spec.ports[0].nodePort == 30123


def test_one_port_over_two_protocols_is_one_node_port(ask: Any) -> None:
    ports = [
        {"name": "t", "port": 53, "protocol": "TCP"},
        {"name": "u", "port": 53, "protocol": "UDP", "nodePort": 30053},
    ]
    made = ask.create("services", service("dns", type="NodePort", ports=ports))
    assert [port.nodePort for port in made.spec.ports] == [30053, 30053]


def test_a_service_that_is_no_longer_a_balancer_has_no_balancers_fields(ask: Any) -> None:
    ask.create("services", service("s", type="LoadBalancer", externalTrafficPolicy="Local"))
    made = ask.patch("services", "s", lambda old: replace(old, spec=replace(old.spec, type="ClusterIP")))
    spec = made.spec
    assert (spec.healthCheckNodePort, spec.allocateLoadBalancerNodePorts, spec.externalTrafficPolicy) == (
        0,
        None,
        "",
    )
    assert spec.ports[0].nodePort == 0


def test_a_service_that_is_no_longer_a_balancer_has_no_balancers_status(ask: Any) -> None:
    ask.create("services", service("s", type="LoadBalancer"))
    ingress = LoadBalancerIngress(ip="192.0.2.1", ipMode="VIP")
    status = ServiceStatus(loadBalancer=LoadBalancerStatus(ingress=(ingress,)))
    verbs.patch(
        ask.server,
        ask.resource("services"),
        "default",
        "s",
        lambda old: replace(old, status=status),
        subresource="status",
    )
    kept = ask.patch(
        "services", "s", lambda old: replace(old, spec=replace(old.spec, publishNotReadyAddresses=True))
    )
    assert kept.status == status
    made = ask.patch("services", "s", lambda old: replace(old, spec=replace(old.spec, type="ClusterIP")))
    assert made.status == ServiceStatus()


def test_a_fork_allocates_for_itself(ask: Any) -> None:
    fork = ask.server.fork()
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    from steersman.api.generated.core_v1 import Service
    from steersman.server.codec.convert import to_struct

    there = to_struct(Service, service("b", clusterIP="10.0.0.9"))
    assert verbs.create(fork, ask.resource("services"), "default", there).spec.clusterIP == "10.0.0.9"
    with pytest.raises(Invalid):
        ask.create("services", service("b", clusterIP="10.0.0.9"))


# -- ServiceCIDRs and IPAddresses -----------------------------------------------------------------


def addresses(ask: Any) -> dict[str, str]:
    """The IPAddresses and the Services that have them."""
    found = ask.server.table(ask.resource(IPADDRESSES)).select(Selection())
    return {each.metadata.name: each.spec.parentRef.name for each in found}


def add_range(ask: Any, name: str, *cidrs: str, ready: bool = True) -> None:
    ask.create(SERVICECIDRS, {"metadata": {"name": name}, "spec": {"cidrs": cidrs}}, "")
    condition = Condition(
        type="Ready", status="True" if ready else "False", lastTransitionTime=ask.server.now()
    )
    status = ServiceCIDRStatus(conditions=(condition,))
    ask.server.rewrite(ask.resource(SERVICECIDRS), "", name, lambda old: replace(old, status=status))


def test_each_cluster_ip_has_an_ipaddress_that_goes_with_its_service(ask: Any) -> None:
    made = ask.create("services", service("a"))
    ask.create("services", service("headless", clusterIP="None"))
    assert addresses(ask) == {"10.0.0.1": "kubernetes", made.spec.clusterIP: "a"}
    (found,) = (
        each
        for each in ask.server.table(ask.resource(IPADDRESSES)).select(Selection())
        if each.metadata.name == made.spec.clusterIP
    )
    assert found.metadata.labels == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert (found.spec.parentRef.resource, found.spec.parentRef.namespace) == ("services", "default")
    assert found.metadata.uid
    ask.patch("services", "a", lambda old: replace(old, spec=replace(old.spec, sessionAffinity="ClientIP")))
    assert addresses(ask)[made.spec.clusterIP] == "a"
    outside = replace(made.spec, type="ExternalName", externalName="example.com", clusterIP="", clusterIPs=())
    ask.patch("services", "a", lambda old: replace(old, spec=outside))
    assert addresses(ask) == {"10.0.0.1": "kubernetes"}
    ask.create("services", service("b", clusterIP="10.0.0.9"))
    ask.delete("services", "b")
    assert addresses(ask) == {"10.0.0.1": "kubernetes"}


def test_an_ipaddress_of_another_parent_is_taken(ask: Any) -> None:
    parent = {"resource": "gateways", "group": "example.com", "name": "g"}
    ask.create(IPADDRESSES, {"metadata": {"name": "10.0.0.9"}, "spec": {"parentRef": parent}}, "")
    assert "provided IP is already allocated" in ask.forbidden_error(
        "services", service("a", clusterIP="10.0.0.9")
    )
    assert ask.create("services", service("a", clusterIP="10.0.0.10")).spec.clusterIP == "10.0.0.10"


def test_addresses_come_from_every_range_that_is_ready(ask: Any) -> None:
    asked = service("a", clusterIP="192.168.7.3")
    add_range(ask, "extra", "192.168.7.0/28", "2001:db8::/64", ready=False)
    outside = "the provided network does not match the current range"
    assert outside in ask.forbidden_error("services", asked)
    ask.server.remove(ask.resource(SERVICECIDRS), "extra")
    add_range(ask, "extra", "192.168.7.0/28", "2001:db8::/64")
    assert outside in ask.forbidden_error("services", service("a", clusterIP="192.168.7.15"))
    assert ask.create("services", asked).spec.clusterIP == "192.168.7.3"
    ask.server.remove(ask.resource(SERVICECIDRS), "kubernetes")
    made = [ask.create("services", service(f"s{i}")).spec.clusterIP for i in range(13)]
    assert all(IPv4Address(ip) in IPv4Network("192.168.7.0/28") for ip in made)
    assert "range is full" in ask.forbidden_error("services", service("more"))


def test_a_range_that_is_being_deleted_gives_no_addresses(ask: Any) -> None:
    add_range(ask, "extra", "192.168.7.0/28")
    meta = {"deletionTimestamp": ask.server.now(), "finalizers": ("example.com/keep",)}
    ask.server.rewrite(
        ask.resource(SERVICECIDRS),
        "",
        "extra",
        lambda old: replace(old, metadata=replace(old.metadata, **meta)),
    )
    said = ask.forbidden_error("services", service("a", clusterIP="192.168.7.3"))
    assert "the provided network does not match the current range" in said


# -- repair of IPAddresses ------------------------------------------------------------------------


def events(ask: Any) -> list[tuple[str, str, str, str]]:
    """The name of what each event is about, its reason, action and message."""
    found = ask.server.table(ask.resource("events")).select(Selection())
    return [(each.involvedObject.name, each.reason, each.action, each.message) for each in found]


def managed(ip: str, family: str = "IPv4", **parent: str) -> dict[str, Any]:
    """An IPAddress that says that it was allocated for a Service."""
    labels = {
        "ipaddress.kubernetes.io/ip-family": family,
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"resource": "services", "namespace": "default", "name": "a", **parent}
    return {"metadata": {"name": ip, "labels": labels}, "spec": {"parentRef": parent}}


def test_a_deleted_ipaddress_of_a_cluster_ip_is_created_again(ask: Any) -> None:
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    before = ask.server.table(ask.resource(IPADDRESSES)).get("10.0.0.9")
    ask.delete(IPADDRESSES, "10.0.0.9", "")
    after = ask.server.table(ask.resource(IPADDRESSES)).get("10.0.0.9")
    assert after.spec == before.spec
    assert after.metadata.labels == before.metadata.labels
    assert after.metadata.uid != before.metadata.uid
    message = "Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing"
    assert events(ask) == [("a", "ClusterIPNotAllocated", "ClusterIPAllocation", message)]


def test_the_labels_of_an_ipaddress_are_repaired_without_an_event(ask: Any) -> None:
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    before = ask.server.table(ask.resource(IPADDRESSES)).get("10.0.0.9")
    resource = ask.resource(IPADDRESSES)
    ask.server.rewrite(
        resource, "", "10.0.0.9", lambda old: replace(old, metadata=replace(old.metadata, labels={}))
    )
    after = ask.server.table(resource).get("10.0.0.9")
    assert after.metadata.labels == before.metadata.labels
    assert after.metadata.uid != before.metadata.uid
    assert events(ask) == []


@pytest.mark.parametrize(
    ("parent", "reason", "message"),
    [
        (
            {"name": "gone"},
            "IPAddressNotAllocated",
            "IPAddress: 10.0.0.77 for Service default/gone appears to have leaked: cleaning up",
        ),
        (
            {"name": "a"},
            "IPAddressWrongReference",
            "IPAddress: 10.0.0.77 for Service default/a has a wrong reference; cleaning up",
        ),
        (
            {"resource": "gateways", "group": "example.com", "name": "g"},
            "IPAddressNotAllocated",
            "IPAddress 10.0.0.77 appears to have been modified, not referencing a Service "
            "&ParentReference{Group:example.com,Resource:gateways,Namespace:default,Name:g,}: cleaning up",
        ),
    ],
)
def test_a_leaked_ipaddress_is_removed(ask: Any, parent: dict[str, str], reason: str, message: str) -> None:
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    ask.create(IPADDRESSES, managed("10.0.0.77", **parent), "")
    assert addresses(ask) == {"10.0.0.1": "kubernetes", "10.0.0.9": "a"}
    assert events(ask) == [("10.0.0.77", reason, "IPAddressAllocation", message)]


def test_an_ipaddress_of_another_controller_is_left_alone(ask: Any) -> None:
    body = managed("10.0.0.77", name="gone")
    del body["metadata"]["labels"]
    ask.create(IPADDRESSES, body, "")
    assert addresses(ask) == {"10.0.0.1": "kubernetes", "10.0.0.77": "gone"}
    assert events(ask) == []


def test_what_was_stored_with_errors_is_repaired_at_the_start(ask: Any) -> None:
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    table = ask.server.table(ask.resource(IPADDRESSES))
    right = table.get("10.0.0.9")
    meta = replace(
        right.metadata, name="10.0.0.77", uid="other", resourceVersion=ask.server.store.next_version
    )
    table.put("10.0.0.77", replace(right, metadata=meta))
    table.remove("10.0.0.9")
    assert addresses(ask) == {"10.0.0.1": "kubernetes", "10.0.0.77": "a"}
    create_bootstrap_objects(ask.server)
    assert addresses(ask) == {"10.0.0.1": "kubernetes", "10.0.0.9": "a"}
    assert [reason for _, reason, _, _ in events(ask)] == ["IPAddressWrongReference"]


# -- two IP families; tests/real/test_dual_stack.py compares more of them with a real server ---------


@pytest.fixture
def dual(ask: Any) -> Any:
    """A cluster with two ranges, of which that of IPv6 is the second."""
    resource = ask.resource(SERVICECIDRS)
    ranges = ("10.0.0.0/16", "fd00:10:96::/112")
    ask.server.rewrite(
        resource, "", "kubernetes", lambda old: replace(old, spec=replace(old.spec, cidrs=ranges))
    )
    return ask


def families(spec: Any) -> tuple[Any, ...]:
    """The policy, the families, and the family of each address."""
    return spec.ipFamilyPolicy, spec.ipFamilies, tuple("6" if ":" in ip else "4" for ip in spec.clusterIPs)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ("SingleStack", ("IPv4",), ("4",))),
        ({"ipFamilies": ["IPv6"]}, ("SingleStack", ("IPv6",), ("6",))),
        ({"ipFamilyPolicy": "PreferDualStack"}, ("PreferDualStack", ("IPv4", "IPv6"), ("4", "6"))),
        (
            {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]},
            ("RequireDualStack", ("IPv6", "IPv4"), ("6", "4")),
        ),
        ({"clusterIP": "fd00:10:96::ffff"}, ("SingleStack", ("IPv6",), ("6",))),
    ],
)
def test_a_service_has_an_address_of_each_of_its_families(
    dual: Any, asked: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    made = dual.create("services", service("a", **asked)).spec
    assert families(made) == expected
    assert made.clusterIP == made.clusterIPs[0]
    assert addresses(dual) == {"10.0.0.1": "kubernetes", **dict.fromkeys(made.clusterIPs, "a")}


def test_a_service_gets_and_loses_its_second_address_by_its_policy(dual: Any) -> None:
    first = dual.create("services", service("a")).spec.clusterIP

    def change(policy: str) -> Any:
        return dual.patch(
            "services", "a", lambda old: replace(old, spec=replace(old.spec, ipFamilyPolicy=policy))
        ).spec

    both = change("RequireDualStack")
    assert families(both) == ("RequireDualStack", ("IPv4", "IPv6"), ("4", "6"))
    assert both.clusterIPs[0] == first
    assert addresses(dual) == {"10.0.0.1": "kubernetes", **dict.fromkeys(both.clusterIPs, "a")}
    one = change("SingleStack")
    assert (families(one), one.clusterIPs) == (("SingleStack", ("IPv4",), ("4",)), (first,))
    assert addresses(dual) == {"10.0.0.1": "kubernetes", first: "a"}


def test_one_ipv6_address_is_one_address_however_it_is_written(dual: Any) -> None:
    dual.create("services", service("a", clusterIP="fd00:10:96::9"))
    said = dual.forbidden_error("services", service("b", clusterIP="fd00:10:96:0::9"))
    assert "provided IP is already allocated" in said
