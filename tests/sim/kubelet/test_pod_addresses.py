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
SIX = "fd00:0:0:5::/64"


def allocated(addresses: PodAddresses, uid: str, cidr: str) -> str:
    """The address of a pod on a node with one CIDR."""
    (found,) = addresses.allocate(uid, (cidr,))
    return found


def test_pods_get_addresses_of_the_cidr_but_its_own_the_gateway_and_the_broadcast_address() -> None:
    addresses = PodAddresses()
    found = [allocated(addresses, f"pod-{number}", NODE) for number in range(5)]
    assert found == [f"10.128.2.{number}" for number in (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("cidr", ["", "nonsense", "10.128.2.0/31", "10.128.2.0/32"])
def test_a_pod_without_a_usable_cidr_gets_an_address_of_no_node(cidr: str) -> None:
    address = allocated(PodAddresses(), "pod", cidr)
    assert address == "10.244.0.1"
    assert ip_address(address) not in ip_network(CLUSTER_CIDR)


def test_a_full_cidr_gives_an_address_of_no_node_and_a_released_address_is_used_again() -> None:
    addresses = PodAddresses()
    found = [allocated(addresses, f"pod-{number}", NODE) for number in range(6)]
    assert found[-1] == "10.244.0.1"
    addresses.release("pod-2")
    assert allocated(addresses, "another", NODE) == "10.128.2.4"
    assert allocated(addresses, "another", NODE) == "10.128.2.4", "it keeps its address"


def test_ipv6() -> None:
    addresses = PodAddresses()
    assert allocated(addresses, "a", SIX) == "fd00:0:0:5::2"
    assert allocated(addresses, "b", SIX) == "fd00:0:0:5::3"


def test_a_pod_has_an_address_of_each_cidr_and_releases_both() -> None:
    addresses = PodAddresses()
    both = (SIX, "10.128.2.0/30")
    assert addresses.allocate("a", both) == ("fd00:0:0:5::2", "10.128.2.2")
    # The second CIDR is full, which is no reason to be without the first.
    assert addresses.allocate("b", both) == ("fd00:0:0:5::3",)
    addresses.release("a")
    assert addresses.allocate("c", both) == ("fd00:0:0:5::4", "10.128.2.2")
    addresses.reserve("old", ("fd00:0:0:5::5", "10.128.2.9"))
    assert addresses.allocate("d", both) == ("fd00:0:0:5::6",)


@pytest.mark.parametrize("address", ["10.244.0.7", "10.128.2.2", "fd00::1", "not an address"])
def test_a_reserved_address_is_not_given_to_another_pod(address: str) -> None:
    addresses = PodAddresses()
    addresses.reserve("old", (address,))
    found = [allocated(addresses, f"pod-{number}", NODE) for number in range(20)]
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
            held[number] = allocated(addresses, str(number), cidr)
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


def test_pods_and_services_are_dual_stack_where_the_cluster_is() -> None:
    flags = {
        "cluster-cidr": "10.128.0.0/16, fd00:10:128::/48",
        "node-cidr-mask-size-ipv4": 24,
        "service-cluster-ip-range": "10.0.0.0/16, fd00:10:96::/112",
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], "ipFamilyPolicy": "PreferDualStack"},
    }
    with Cluster(seed=1, nodes=1, flags=flags) as cluster:
        cluster.apply([pod, service])
        cluster.settle()
        node = cluster.get("Node", "node-1")
        found = [each.ip for each in cluster.get("Pod", "web").status.podIPs]
        assert len(found) == 2
        for ip, cidr in zip(found, node.spec.podCIDRs, strict=True):
            assert ip_address(ip) in ip_network(cidr)
        spec = cluster.get("Service", "web").spec
        assert spec.ipFamilies == ("IPv4", "IPv6")
        assert spec.clusterIP == spec.clusterIPs[0]
        for ip, cidr in zip(spec.clusterIPs, ("10.0.0.0/16", "fd00:10:96::/112"), strict=True):
            assert ip_address(ip) in ip_network(cidr)
        held = {each.metadata.name for each in cluster.list("IPAddress")}
        assert held == {"10.0.0.1", *spec.clusterIPs}
        slices = [
            each
            for each in cluster.list("EndpointSlice")
            if each.metadata.labels["kubernetes.io/service-name"] == "web"
        ]
        assert {each.addressType: each.endpoints[0].addresses for each in slices} == {
            "IPv4": (found[0],),
            "IPv6": (found[1],),
        }
