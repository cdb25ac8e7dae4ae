"""Addresses of simulated pods: of their node's CIDR, and never one for two pods."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steersman.server.admission.service_allocation import CIDR
from steersman.sim.kubelet.pod_addresses import CLUSTER_CIDR, FLAGS, PodAddresses
from steersman.testing.cluster import Cluster

NODE = "10.128.2.0/29"


def test_pods_get_addresses_of_the_cidr_but_its_own_the_gateway_and_the_broadcast_address() -> None:
    addresses = PodAddresses()
    found = [addresses.allocate(f"pod-{number}", NODE) for number in range(5)]
    assert found == [f"10.128.2.{number}" for number in (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("cidr", ["", "nonsense", "10.128.2.0/31", "10.128.2.0/32"])
def test_a_pod_without_a_usable_cidr_gets_an_address_of_no_node(cidr: str) -> None:
    address = PodAddresses().allocate("pod", cidr)
    assert address == "10.244.0.1"
    assert ip_address(address) not in ip_network(CLUSTER_CIDR)


def test_a_full_cidr_gives_an_address_of_no_node_and_a_released_address_is_used_again() -> None:
    addresses = PodAddresses()
    found = [addresses.allocate(f"pod-{number}", NODE) for number in range(6)]
    assert found[-1] == "10.244.0.1"
    addresses.release("pod-2")
    assert addresses.allocate("another", NODE) == "10.128.2.4"
    assert addresses.allocate("another", NODE) == "10.128.2.4", "it keeps its address"


def test_ipv6() -> None:
    addresses = PodAddresses()
    assert addresses.allocate("a", "fd00:0:0:5::/64") == "fd00:0:0:5::2"
    assert addresses.allocate("b", "fd00:0:0:5::/64") == "fd00:0:0:5::3"


@pytest.mark.parametrize("address", ["10.244.0.7", "10.128.2.2", "fd00::1", "not an address"])
def test_a_reserved_address_is_not_given_to_another_pod(address: str) -> None:
    addresses = PodAddresses()
    addresses.reserve("old", address)
    found = [addresses.allocate(f"pod-{number}", NODE) for number in range(20)]
    assert address not in found
    assert len(set(found)) == len(found)


@given(
    some.lists(
        some.tuples(some.integers(0, 9), some.sampled_from([NODE, "10.128.4.0/30", ""]), some.booleans())
    )
)
def test_no_two_pods_have_one_address(steps: list[tuple[int, str, bool]]) -> None:
    addresses = PodAddresses()
    held: dict[int, str] = {}
    for number, cidr, starts in steps:
        if starts:
            held[number] = addresses.allocate(str(number), cidr)
        else:
            addresses.release(str(number))
            held.pop(number, None)
        assert len(set(held.values())) == len(held)


def test_the_ranges_of_pods_and_services_are_apart() -> None:
    assert FLAGS["service-cluster-ip-range"] == CIDR
    assert not ip_network(CLUSTER_CIDR).overlaps(ip_network(CIDR))


WEB = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""


def test_in_a_cluster_each_pod_has_an_address_of_its_nodes_cidr() -> None:
    with Cluster(seed=4, nodes=3) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        for pod in cluster.list("pods")[:6]:
            cluster.delete("Pod", pod.metadata.name)
        cluster.settle()
        with cluster.fork() as fork:
            fork.patch("ReplicaSet", "web", {"spec": {"replicas": 20}})
            fork.settle()
            cidrs = {each.metadata.name: each.spec.podCIDR for each in fork.list("nodes")}
            pods = fork.list("pods")
            assert len({pod.status.podIP for pod in pods}) == len(pods)
            for pod in pods:
                assert ip_address(pod.status.podIP) in ip_network(cidrs[pod.spec.nodeName])
