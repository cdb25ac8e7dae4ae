"""Pods with ResourceClaims: they wait, get devices and give them back. The messages are kube-scheduler's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.sim.dynamicresources import COUNT, Devices
from steersman.testing import Cluster
from tests.harness.devices import exactly, first

UNHELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
SIMULATED = {"deviceClassName": "simulated"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, dra=Devices(count=2), controllers=["node-lifecycle-controller"]) as made:
        yield made


def add_claim(cluster: Cluster, name: str, count: int = 1, *expressions: str, **spec: Any) -> None:
    request = exactly("r", count, *expressions, **SIMULATED, **spec)
    add_claim_of(cluster, name, request)


def add_claim_of(cluster: Cluster, name: str, *requests: dict[str, Any], **devices: Any) -> None:
    spec = {"devices": {"requests": list(requests), **devices}}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def add_pod(cluster: Cluster, name: str, *claims: str, **spec: Any) -> None:
    container = {
        "name": "main",
        "image": "app:1",
        "resources": {"claims": [{"name": each} for each in claims]},
    }
    references = [{"name": each, "resourceClaimName": each} for each in claims]
    body = {"containers": [container], "resourceClaims": references, **spec}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body})


def devices(cluster: Cluster, name: str) -> list[str]:
    status = cluster.get("ResourceClaim", name).status
    results = status.allocation.devices.results if status.allocation is not None else ()
    return [f"{result.pool}/{result.device}" for result in results]


def users(cluster: Cluster, name: str) -> list[str]:
    return [each.name for each in cluster.get("ResourceClaim", name).status.reservedFor]


def message(cluster: Cluster, name: str) -> str:
    conditions = cluster.get("Pod", name).status.conditions
    return next(
        (each.message for each in conditions if each.type == "PodScheduled" and each.status == "False"), ""
    )


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.get("Pod", name).status.phase)


def test_a_claim_is_allocated_reserved_and_protected_before_its_pod_runs(cluster: Cluster) -> None:
    add_claim(cluster, "c")
    add_pod(cluster, "p", "c")
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")
    claim = cluster.get("ResourceClaim", "c")
    pod = cluster.get("Pod", "p")
    assert devices(cluster, "c") == ["node-1/device-0"]
    assert pod.spec.nodeName == "node-1"
    assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert [(each.resource, each.name, each.uid) for each in claim.status.reservedFor] == [
        ("pods", "p", pod.metadata.uid)
    ]
    assert claim.status.allocation.allocationTimestamp is not None
    terms = claim.status.allocation.nodeSelector.nodeSelectorTerms
    assert [need.values for term in terms for need in term.matchFields] == [("node-1",)]


def test_devices_are_not_given_twice_and_pods_wait_for_them(cluster: Cluster) -> None:
    for number in range(5):
        add_claim(cluster, f"c{number}")
        add_pod(cluster, f"p{number}", f"c{number}")
    cluster.settle()
    given = [each for number in range(5) for each in devices(cluster, f"c{number}")]
    assert len(given) == len(set(given)) == 4
    waiting = next(f"p{number}" for number in range(5) if phase(cluster, f"p{number}") == "Pending")
    assert message(cluster, waiting) == (
        f"0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, {UNHELPFUL}"
    )
    cluster.patch("Node", "node-2", {"metadata": {"annotations": {COUNT: "3"}}})
    cluster.wait_until(lambda: phase(cluster, waiting) == "Running")
    assert devices(cluster, waiting.replace("p", "c")) == ["node-2/device-2"]


def test_a_pod_waits_silently_for_claims_that_do_not_exist(cluster: Cluster) -> None:
    add_pod(cluster, "p", "c")
    cluster.advance(minutes=10)
    assert cluster.get("Pod", "p").status.conditions == ()
    assert [each for each in cluster.list("events") if each.involvedObject.name == "p"] == []
    start = cluster.now
    add_claim(cluster, "c")
    cluster.wait_until(lambda: bool(cluster.get("Pod", "p").spec.nodeName))
    assert cluster.now == start, "the pod was not attempted before, so there is no back-off"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"deviceClassName": "none"},
            f"0/2 nodes are available: request r: device class none does not exist. no new claims to deallocate, {UNHELPFUL}",
        ),
        (
            {"count": 9, **SIMULATED},
            f"0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, {UNHELPFUL}",
        ),
        (
            {
                **SIMULATED,
                "selectors": [{"cel": {"expression": "device.attributes['sim.steersman.dev'].x == 1"}}],
            },
            'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: x',
        ),
    ],
)
def test_a_pod_that_does_not_fit_says_why(cluster: Cluster, spec: dict[str, Any], expected: str) -> None:
    add_claim_of(cluster, "c", {"name": "r", "exactly": spec})
    add_pod(cluster, "p", "c")
    cluster.settle()
    assert message(cluster, "p") == expected


def test_a_class_that_is_created_later_lets_a_pod_go_on(cluster: Cluster) -> None:
    add_claim_of(cluster, "c", {"name": "r", "exactly": {"deviceClassName": "late"}})
    add_pod(cluster, "p", "c")
    cluster.settle()
    cluster.apply(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "late"}, "spec": {}}
    )
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")


def test_pods_share_a_claim_on_its_node(cluster: Cluster) -> None:
    add_claim(cluster, "c")
    add_pod(cluster, "p", "c")
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")
    add_pod(cluster, "q", "c")
    cluster.wait_until(lambda: phase(cluster, "q") == "Running")
    assert cluster.get("Pod", "q").spec.nodeName == cluster.get("Pod", "p").spec.nodeName
    assert users(cluster, "c") == ["p", "q"]
    add_pod(cluster, "elsewhere", "c", nodeSelector={"kubernetes.io/hostname": "node-2"})
    cluster.settle()
    assert message(cluster, "elsewhere") == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        f"1 resourceclaim not available on the node. still not schedulable, {UNHELPFUL}"
    )
    assert users(cluster, "c") == ["p", "q"]


def test_an_unused_claim_moves_to_the_node_that_its_next_pod_needs(cluster: Cluster) -> None:
    add_claim(cluster, "c")
    add_pod(cluster, "p", "c")
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")
    cluster.delete("Pod", "p")
    cluster.patch("ResourceClaim", "c", {"status": {"reservedFor": None}}, subresource="status")
    add_pod(cluster, "q", "c", nodeSelector={"kubernetes.io/hostname": "node-2"})
    cluster.wait_until(lambda: phase(cluster, "q") == "Running")
    assert devices(cluster, "c") == ["node-2/device-0"]


def test_selectors_constraints_and_alternatives_choose_devices(cluster: Cluster) -> None:
    cluster.patch("Node", "node-2", {"metadata": {"annotations": {COUNT: "4"}}})
    numa = "sim.steersman.dev/numa"
    domain = 'device.attributes["sim.steersman.dev"]'
    add_claim(cluster, "indexed", 1, f"{domain}.index == 3")
    add_claim_of(
        cluster,
        "pair",
        exactly("r", 2, f"{domain}.index > 0", **SIMULATED),
        constraints=[{"matchAttribute": numa}],
    )
    alternatives: list[dict[str, Any]] = [
        {"name": "many", "count": 9, **SIMULATED},
        {"name": "one", **SIMULATED},
    ]
    add_claim_of(cluster, "either", first("r", *alternatives))
    add_pod(cluster, "p1", "indexed")
    cluster.wait_until(lambda: phase(cluster, "p1") == "Running")
    assert devices(cluster, "indexed") == ["node-2/device-3"]
    add_pod(cluster, "p2", "pair")
    cluster.settle()
    # Devices 2 and 3 share a NUMA node, and device 3 is in use.
    assert message(cluster, "p2").startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    add_pod(cluster, "p3", "either")
    cluster.wait_until(lambda: phase(cluster, "p3") == "Running")
    assert cluster.get("ResourceClaim", "either").status.allocation.devices.results[0].request == "r/one"


def test_several_claims_of_a_pod_are_of_one_node(cluster: Cluster) -> None:
    add_claim(cluster, "taken")
    add_pod(cluster, "p", "taken", nodeSelector={"kubernetes.io/hostname": "node-1"})
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")
    add_claim(cluster, "one")
    add_claim(cluster, "other")
    add_pod(cluster, "q", "one", "other")
    cluster.wait_until(lambda: phase(cluster, "q") == "Running")
    assert devices(cluster, "one") + devices(cluster, "other") == ["node-2/device-0", "node-2/device-1"]


@pytest.mark.parametrize("seed", range(5))
def test_devices_are_given_once_in_any_order_of_tasks(seed: int) -> None:
    with Cluster(seed, nodes=2, dra=Devices(count=2), controllers=[], shuffle=True) as cluster:
        for number in range(6):
            add_claim(cluster, f"c{number}")
            add_pod(cluster, f"p{number}", f"c{number}")
        cluster.settle()
        given = [each for number in range(6) for each in devices(cluster, f"c{number}")]
        assert len(given) == len(set(given)) == 4, f"seed {seed}"


def test_a_bound_pod_starts_when_its_claims_are_its_own(cluster: Cluster) -> None:
    add_pod(cluster, "p", "c", nodeName="node-1")
    add_claim(cluster, "c")
    cluster.advance(hours=1)
    assert phase(cluster, "p") == "Pending"
    add_pod(cluster, "q", "c")
    cluster.wait_until(lambda: phase(cluster, "q") == "Running")
    assert phase(cluster, "p") == "Pending"
    mine = {"resource": "pods", "name": "p", "uid": cluster.get("Pod", "p").metadata.uid}
    theirs = {"resource": "pods", "name": "q", "uid": cluster.get("Pod", "q").metadata.uid}
    cluster.patch("ResourceClaim", "c", {"status": {"reservedFor": [mine, theirs]}}, subresource="status")
    cluster.wait_until(lambda: phase(cluster, "p") == "Running")


def test_a_pod_that_waits_for_its_claims_can_be_deleted(cluster: Cluster) -> None:
    add_pod(cluster, "p", "c", nodeName="node-1")
    cluster.advance(minutes=1)
    cluster.delete("Pod", "p")
    cluster.settle()
    assert cluster.list("pods") == []


def test_without_devices_claims_are_ignored() -> None:
    with Cluster(nodes=1, controllers=[]) as cluster:
        add_pod(cluster, "p", "nothing")
        cluster.wait_until(lambda: phase(cluster, "p") == "Running")
