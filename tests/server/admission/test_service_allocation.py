"""Services: no two have the same address or port, and what one gives back another can have."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Invalid
from steersman.server import admission
from steersman.server.admission.service_allocation import CIDR
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


def test_a_fork_allocates_for_itself(ask: Any) -> None:
    fork = ask.server.fork()
    ask.create("services", service("a", clusterIP="10.0.0.9"))
    from steersman.api.generated.core_v1 import Service
    from steersman.server.codec.convert import to_struct

    there = to_struct(Service, service("b", clusterIP="10.0.0.9"))
    assert verbs.create(fork, ask.resource("services"), "default", there).spec.clusterIP == "10.0.0.9"
    with pytest.raises(Invalid):
        ask.create("services", service("b", clusterIP="10.0.0.9"))
