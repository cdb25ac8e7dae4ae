"""What objects count for in a quota, row by row: the answers are upstream's, asked of the server's types and of the cached views."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api import kinds
from steersman.api.generated import core_v1
from steersman.api.kinds.devices import ResourceClaim
from steersman.api.kinds.services import Service
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.api.quantity import Quantity
from steersman.api.quota.usage import evaluator

PODS = (core_v1.Pod, kinds.Pod)
SERVICES = (core_v1.Service, Service)
CLAIMS = (core_v1.PersistentVolumeClaim, PersistentVolumeClaim)
DEVICE_CLAIMS = (ResourceClaim,)

Document = dict[str, Any]


def read(types: tuple[type[Any], ...], document: Document) -> list[Any]:
    """The object as each of the types has it."""
    raw = msgspec.json.encode(document)
    return [msgspec.json.decode(raw, type=each) for each in types]


def amounts(given: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(value) for name, value in given.items()}


def container(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> Document:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


def pod(
    *containers: Document, init: tuple[Document, ...] = (), status: Document | None = None, **spec: Any
) -> Document:
    return {"spec": {"containers": containers, "initContainers": init, **spec}, "status": status or {}}


# -- pods -----------------------------------------------------------------------------------------

COUNTED = {"pods": "1", "count/pods": "1"}
CPU = container({"cpu": "1m"}, {"cpu": "2m"})
CPU_USED = {"requests.cpu": "1m", "limits.cpu": "2m", "cpu": "1m"}
MEMORY = container({"memory": "1m"}, {"memory": "2m"})
MEMORY_USED = {"requests.memory": "1m", "limits.memory": "2m", "memory": "1m"}
STORAGE = container({"ephemeral-storage": "32Mi"}, {"ephemeral-storage": "64Mi"})
STORAGE_USED = {
    "ephemeral-storage": "32Mi",
    "requests.ephemeral-storage": "32Mi",
    "limits.ephemeral-storage": "64Mi",
}
PAGES = container({"hugepages-2Mi": "100Mi"})
PAGES_USED = {"hugepages-2Mi": "100Mi", "requests.hugepages-2Mi": "100Mi"}
DONGLE = container({"example.com/dongle": "3"}, {"example.com/dongle": "3"})
DONGLE_USED = {"requests.example.com/dongle": "3"}
IMPLICIT = container(
    {"deviceclass.resource.kubernetes.io/dongle": "3"}, {"deviceclass.resource.kubernetes.io/dongle": "3"}
)
IMPLICIT_USED = {"requests.deviceclass.resource.kubernetes.io/dongle": "3"}


def mixed(cpu: str, memory: str, dongles: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory, "example.com/dongle": dongles}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        pytest.param(pod(init=(CPU,)), CPU_USED, id="init container: cpu"),
        pytest.param(pod(init=(MEMORY,)), MEMORY_USED, id="init container: memory"),
        pytest.param(pod(init=(STORAGE,)), STORAGE_USED, id="init container: ephemeral storage"),
        pytest.param(pod(init=(PAGES,)), PAGES_USED, id="init container: hugepages"),
        pytest.param(pod(init=(DONGLE,)), DONGLE_USED, id="init container: extended resource"),
        pytest.param(pod(init=(IMPLICIT,)), IMPLICIT_USED, id="init container: device class"),
        pytest.param(pod(CPU), CPU_USED, id="cpu"),
        pytest.param(pod(MEMORY), MEMORY_USED, id="memory"),
        pytest.param(pod(STORAGE), STORAGE_USED, id="ephemeral storage"),
        pytest.param(pod(PAGES), PAGES_USED, id="hugepages"),
        pytest.param(pod(DONGLE), DONGLE_USED, id="extended resource"),
        pytest.param(pod(IMPLICIT), IMPLICIT_USED, id="device class"),
        pytest.param(
            pod(
                container(mixed("1", "50M", "1"), mixed("2", "100M", "1")),
                container(mixed("2", "25M", "2"), mixed("5", "50M", "2")),
                init=(
                    container(mixed("4", "100M", "4"), mixed("8", "200M", "4")),
                    container(mixed("1", "50M", "2"), mixed("2", "100M", "2")),
                ),
            ),
            {
                "cpu": "4",
                "requests.cpu": "4",
                "limits.cpu": "8",
                "memory": "100M",
                "requests.memory": "100M",
                "limits.memory": "200M",
                "requests.example.com/dongle": "4",
            },
            id="the largest init container above the sum of the containers",
        ),
        pytest.param(
            pod(container({"cpu": "1"}, {"cpu": "2"}), overhead={"cpu": "1"}),
            {"cpu": "2", "requests.cpu": "2", "limits.cpu": "3"},
            id="overhead",
        ),
        pytest.param(
            pod(resources={"requests": {"cpu": "1m"}, "limits": {"cpu": "2m"}}), CPU_USED, id="pod-level cpu"
        ),
        pytest.param(
            pod(resources={"requests": {"memory": "1Mi"}, "limits": {"memory": "2Mi"}}),
            {"memory": "1Mi", "requests.memory": "1Mi", "limits.memory": "2Mi"},
            id="pod-level memory",
        ),
        pytest.param(
            pod(STORAGE, resources={"requests": {"memory": "1Mi"}, "limits": {"memory": "2Mi"}}),
            {**STORAGE_USED, "memory": "1Mi", "requests.memory": "1Mi", "limits.memory": "2Mi"},
            id="pod-level memory, ephemeral storage of a container",
        ),
    ],
)
def test_a_pod_counts_for_what_its_containers_ask_for(given: Document, used: dict[str, str]) -> None:
    for each in read(PODS, given):
        assert evaluator("pods").usage(each) == amounts({**COUNTED, **used})


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_counts_as_an_object_only(phase: str) -> None:
    for each in read(PODS, pod(DONGLE, status={"phase": phase})):
        assert evaluator("pods").usage(each) == amounts({"count/pods": "1"})


@pytest.mark.parametrize(
    ("given", "required", "error"),
    [
        (pod(init=({**CPU, "name": "dummy"},)), ["memory"], "must specify memory for: dummy"),
        (
            pod(init=({**CPU, "name": "foo"}, {**CPU, "name": "bar"})),
            ["memory"],
            "must specify memory for: bar,foo",
        ),
        (pod({**CPU, "name": "dummy"}), ["memory"], "must specify memory for: dummy"),
        (pod({**CPU, "name": "foo"}, {**CPU, "name": "bar"}), ["memory"], "must specify memory for: bar,foo"),
        (
            pod({"name": "foo"}, {"name": "bar"}),
            ["memory", "cpu"],
            "must specify cpu for: bar,foo; memory for: bar,foo",
        ),
        (
            pod({"name": "foo"}, {"name": "bar"}, resources={"requests": {"cpu": "1m"}}),
            ["memory", "cpu"],
            "",
        ),
    ],
    ids=["init container", "two init containers", "container", "two containers", "two names", "pod-level"],
)
def test_a_container_must_say_what_a_quota_limits(given: Document, required: list[str], error: str) -> None:
    for each in read(PODS, given):
        assert evaluator("pods").missing(each, required) == error


DEADLINE = pod(activeDeadlineSeconds=1)
LATER = pod(activeDeadlineSeconds=2)
NONE = pod()


@pytest.mark.parametrize(
    ("new", "old", "subresource", "handled"),
    [
        (NONE, DEADLINE, "", True),
        (DEADLINE, NONE, "", True),
        (DEADLINE, LATER, "", False),
        (NONE, NONE, "", False),
        (NONE, NONE, "status", False),
        (NONE, NONE, "resize", True),
    ],
    ids=["deadline removed", "deadline set", "deadline moved", "update", "subresource", "resize"],
)
def test_an_update_of_a_pod_matters_where_its_scope_or_its_resources_change(
    new: Document, old: Document, subresource: str, handled: bool
) -> None:
    for one, other in zip(read(PODS, new), read(PODS, old), strict=True):
        assert evaluator("pods").updates(one, other, subresource) is handled


# -- services -------------------------------------------------------------------------------------


def service(type_: str, *ports: int, **spec: Any) -> Document:
    return {"spec": {"type": type_, "ports": [{"port": 27443, "nodePort": each} for each in ports], **spec}}


@pytest.mark.parametrize(
    ("given", "node_ports", "balancers"),
    [
        (service("LoadBalancer"), "0", "1"),
        (service("LoadBalancer", 0), "1", "1"),
        (service("LoadBalancer", 0, 0), "2", "1"),
        (service("ClusterIP"), "0", "0"),
        (service("NodePort", 0), "1", "0"),
        (service("NodePort", 0, 0), "2", "0"),
        (service("LoadBalancer", 0, 0, allocateLoadBalancerNodePorts=False), "0", "1"),
        (service("LoadBalancer", 32001, 32002), "2", "1"),
        (service("LoadBalancer", 0, 0, allocateLoadBalancerNodePorts=True), "2", "1"),
        (service("LoadBalancer", 32001, 32002, allocateLoadBalancerNodePorts=False), "2", "1"),
        (service("ExternalName"), "0", "0"),
    ],
    ids=[
        "load balancer",
        "load balancer with a port",
        "load balancer with two ports",
        "cluster IP",
        "node port",
        "two node ports",
        "load balancer without node ports",
        "load balancer with node ports by default",
        "load balancer with node ports",
        "load balancer with node ports of its own only",
        "external name",
    ],
)
def test_a_service_counts_for_its_node_ports_and_its_load_balancer(
    given: Document, node_ports: str, balancers: str
) -> None:
    wanted = {"services": "1", "count/services": "1"}
    wanted |= {"services.nodeports": node_ports, "services.loadbalancers": balancers}
    for each in read(SERVICES, given):
        assert evaluator("services").usage(each) == amounts(wanted)
        assert evaluator("services").missing(each, wanted) == "", "a quota asks nothing of a service"


# -- claims ---------------------------------------------------------------------------------------


def claim(storage: str, allocated: str = "", name: str = "", annotation: str = "") -> Document:
    return {
        "metadata": {
            "annotations": {"volume.beta.kubernetes.io/storage-class": annotation} if annotation else {}
        },
        "spec": {
            "resources": {"requests": {"storage": storage}},
            **({"storageClassName": name} if name else {}),
        },
        "status": {"allocatedResources": {"storage": allocated} if allocated else {}},
    }


GOLD = "gold.storageclass.storage.k8s.io"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (claim("10Gi"), {"requests.storage": "10Gi"}),
        (
            claim("10Gi", name="gold"),
            {
                "requests.storage": "10Gi",
                f"{GOLD}/requests.storage": "10Gi",
                f"{GOLD}/persistentvolumeclaims": "1",
            },
        ),
        (claim("1001m"), {"requests.storage": "2"}),
        (
            claim("1001m", name="gold"),
            {"requests.storage": "2", f"{GOLD}/requests.storage": "2", f"{GOLD}/persistentvolumeclaims": "1"},
        ),
        (claim("5G", "10G"), {"requests.storage": "10G"}),
        (claim("10G", "5G"), {"requests.storage": "10G"}),
        (
            claim("1Gi", name="other", annotation="gold"),
            {
                "requests.storage": "1Gi",
                f"{GOLD}/requests.storage": "1Gi",
                f"{GOLD}/persistentvolumeclaims": "1",
            },
        ),
    ],
    ids=[
        "size",
        "class",
        "rounded up",
        "class, rounded up",
        "more allocated",
        "less allocated",
        "class by annotation",
    ],
)
def test_a_claim_counts_for_its_storage_in_all_and_by_class(given: Document, used: dict[str, str]) -> None:
    wanted = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1", **used}
    for each in read(CLAIMS, given):
        assert evaluator("persistentvolumeclaims").usage(each) == amounts(wanted)


@pytest.mark.parametrize("resource", ["services", "persistentvolumeclaims", "resourceclaims.resource.k8s.io"])
@pytest.mark.parametrize(("subresource", "handled"), [("", True), ("scale", False)])
def test_an_update_of_other_objects_matters_but_not_one_of_a_subresource(
    resource: str, subresource: str, handled: bool
) -> None:
    (one,) = read((PersistentVolumeClaim,), {})
    assert evaluator(resource).updates(one, one, subresource) is handled


# -- devices --------------------------------------------------------------------------------------

COUNT = "count/resourceclaims.resource.k8s.io"
GPU, TPU = ("gpu.deviceclass.resource.k8s.io/devices", "tpu.deviceclass.resource.k8s.io/devices")


def device(count: int = 1, mode: str = "ExactCount", name: str = "gpu", **more: Any) -> Document:
    return {"deviceClassName": name, "allocationMode": mode, "count": count, **more}


def devices(*requests: Document) -> Document:
    return {"spec": {"devices": {"requests": requests}}}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (devices({"exactly": device()}), {GPU: "1"}),
        (devices(*[{"exactly": device()}] * 5), {GPU: "5"}),
        (devices({"exactly": device(5)}), {GPU: "5"}),
        (devices({"exactly": device(mode="All")}), {GPU: "32"}),
        (devices({"exactly": device(mode="future-mode")}), {GPU: "0"}),
        (devices({"exactly": device(adminAccess=True)}), {GPU: "1"}),
        (devices({"firstAvailable": [device()]}), {GPU: "1"}),
        (devices({"firstAvailable": [device(2), device(1)]}), {GPU: "2"}),
        (devices({"firstAvailable": [device(), device(mode="All")]}), {GPU: "32"}),
        (devices({"firstAvailable": [device(), device(mode="All", name="tpu")]}), {GPU: "1", TPU: "32"}),
    ],
    ids=[
        "one",
        "five requests",
        "a count",
        "all",
        "an unknown mode",
        "admin access",
        "first available",
        "the most of two",
        "all of two",
        "two classes",
    ],
)
def test_a_device_claim_counts_for_the_most_devices_it_may_get(given: Document, used: dict[str, str]) -> None:
    for each in read(DEVICE_CLAIMS, given):
        assert evaluator("resourceclaims.resource.k8s.io").usage(each) == amounts({COUNT: "1", **used})


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "name", "applies"),
    [
        ("services", "configmaps", False),
        ("services", "cpu", False),
        ("services", "services", True),
        ("services", "services.nodeports", True),
        ("services", "services.loadbalancers", True),
        ("persistentvolumeclaims", "count/persistentvolumeclaims", True),
        ("persistentvolumeclaims", "requests.storage", True),
        ("persistentvolumeclaims", "persistentvolumeclaims", True),
        ("persistentvolumeclaims", f"{GOLD}/requests.storage", True),
        ("persistentvolumeclaims", f"{GOLD}/persistentvolumeclaims", True),
        ("persistentvolumeclaims", "storage", False),
        ("persistentvolumeclaims", "ephemeral-storage", False),
        ("persistentvolumeclaims", "bronze.storageclass.storage.k8s.io/storage", False),
        ("persistentvolumeclaims", "gold.storage.k8s.io/requests.storage", False),
        ("resourceclaims.resource.k8s.io", COUNT, True),
        ("resourceclaims.resource.k8s.io", GPU, True),
        ("resourceclaims.resource.k8s.io", "resourceclaims", False),
        ("resourceclaims.resource.k8s.io", "storage", False),
        ("resourceclaims.resource.k8s.io", "ephemeral-storage", False),
        ("resourceclaims.resource.k8s.io", "bronze.deviceclass.resource.k8s.io/storage", False),
        ("resourceclaims.resource.k8s.io", "gpu.storage.k8s.io/requests.storage", False),
        ("pods", "requests.example.com/dongle", True),
        ("pods", "requests.deviceclass.resource.kubernetes.io/dongle", True),
        ("pods", "requests.kubernetes.io/dongle", False),
        ("pods", "example.com/dongle", False),
        ("pods", "limits.example.com/dongle", False),
        ("pods", "hugepages-2Mi", True),
        ("pods", "requests.hugepages-2Mi", True),
        ("pods", "limits.hugepages-2Mi", False),
        ("pods", "requests.storage", False),
    ],
)
def test_a_name_applies_to_a_resource_or_does_not(resource: str, name: str, applies: bool) -> None:
    assert evaluator(resource).matching(name) is applies
