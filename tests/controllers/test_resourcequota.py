"""resourcequota: counting, row by row, and in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.kinds import Container, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements
from steersman.api.kinds.devices import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from steersman.api.kinds.quota import (
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
)
from steersman.api.kinds.services import Service, ServicePort, ServiceSpec
from steersman.api.kinds.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from steersman.controllers.resourcequota import Observation, controller, new_status, resource_of, usage
from steersman.intent.actions import List, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def quota(
    *names: str, scopes: tuple[str, ...] = (), selector: Any = None, used: Mapping[str, str] | None = None
) -> ResourceQuota:
    hard = dict.fromkeys(names, "10")
    return ResourceQuota(
        metadata=ObjectMeta(name="q", namespace="d", uid="u"),
        spec=ResourceQuotaSpec(hard=hard, scopes=scopes, scopeSelector=selector),
        status=ResourceQuotaStatus(hard=hard if used is not None else {}, used=used or {}),
    )


def pod(cpu: str = "", phase: str = "Running", **spec: Any) -> Pod:
    asked = ResourceRequirements(requests={"cpu": cpu} if cpu else {})
    return Pod(
        metadata=ObjectMeta(name="p", namespace="d"),
        spec=PodSpec(containers=(Container(name="c", resources=asked),), **spec),
        status=PodStatus(phase=phase),
    )


def counted(
    of: ResourceQuota, *objects: Any, counts: Mapping[str, int | None] | None = None
) -> dict[str, str]:
    kinds = {"pods": Pod, "services": Service, "persistentvolumeclaims": PersistentVolumeClaim}
    about = {resource_of(name) for name in of.spec.hard}
    caches = {
        name: tuple(one for one in objects if isinstance(one, kind))
        for name, kind in kinds.items()
        if name in about
    }
    claims = [one for one in objects if isinstance(one, ResourceClaim)]
    seen = Observation(of, caches, counts or {}, ())
    return {name: str(amount) for name, amount in usage(seen, claims, NOW).items()}


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("pods", "pods"),
        ("requests.cpu", "pods"),
        ("limits.memory", "pods"),
        ("requests.example.com/gpu", "pods"),
        ("hugepages-2Mi", "pods"),
        ("services.nodeports", "services"),
        ("requests.storage", "persistentvolumeclaims"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
        ("count/deployments.apps", "deployments.apps"),
        ("count/widgets.example.com", "widgets.example.com"),
        ("secrets", "secrets"),
        ("gpu.deviceclass.resource.k8s.io/devices", "resourceclaims.resource.k8s.io"),
        ("nonsense", ""),
    ],
)
def test_every_name_is_about_one_resource(name: str, resource: str) -> None:
    assert resource_of(name) == resource


def test_pods_count_by_number_and_by_what_they_ask_for() -> None:
    assert counted(quota("pods", "requests.cpu", "limits.cpu"), pod("500m"), pod("1"), pod()) == {
        "pods": "3",
        "requests.cpu": "1500m",
        "limits.cpu": "0",
    }


def test_a_pod_that_has_ended_counts_as_an_object_only() -> None:
    assert counted(
        quota("pods", "cpu", "count/pods"), pod("1", "Succeeded"), pod("1", "Failed"), pod("1")
    ) == {
        "pods": "1",
        "cpu": "1",
        "count/pods": "3",
    }


@pytest.mark.parametrize(("late", "pods"), [(timedelta(seconds=-1), "1"), (timedelta(seconds=1), "0")])
def test_a_pod_that_should_be_gone_is_nobodys_to_pay_for(late: timedelta, pods: str) -> None:
    meta = ObjectMeta(
        name="p", deletionTimestamp=NOW - timedelta(seconds=30) - late, deletionGracePeriodSeconds=30
    )
    assert counted(quota("pods"), Pod(metadata=meta, status=PodStatus(phase="Running"))) == {"pods": pods}


def _chosen(scope: str, operator: str, *values: str) -> ScopeSelector:
    return ScopeSelector(
        matchExpressions=(
            ScopedResourceSelectorRequirement(scopeName=scope, operator=operator, values=values),
        )
    )


@pytest.mark.parametrize(
    ("of", "pods"),
    [
        (quota("pods", scopes=("BestEffort",)), "1"),
        (quota("pods", scopes=("NotBestEffort",)), "2"),
        (quota("pods", scopes=("Terminating",)), "1"),
        (quota("pods", scopes=("NotTerminating", "NotBestEffort")), "1"),
        (quota("pods", selector=_chosen("PriorityClass", "In", "high", "low")), "1"),
        (quota("pods", selector=_chosen("PriorityClass", "Exists")), "1"),
        (quota("pods", selector=_chosen("PriorityClass", "DoesNotExist")), "2"),
    ],
)
def test_a_scope_leaves_out_what_is_not_within(of: ResourceQuota, pods: str) -> None:
    some = (pod(), pod("1", activeDeadlineSeconds=5), pod("1", priorityClassName="high"))
    assert counted(of, *some) == {"pods": pods}


def test_services_count_their_ports_and_balancers() -> None:
    names = ("services", "services.nodeports", "services.loadbalancers", "count/services")
    two = (ServicePort(nodePort=1), ServicePort())
    found = counted(
        quota(*names),
        Service(spec=ServiceSpec(type="ClusterIP", ports=two)),
        Service(spec=ServiceSpec(type="NodePort", ports=two)),
        Service(spec=ServiceSpec(type="LoadBalancer", ports=two, allocateLoadBalancerNodePorts=False)),
    )
    assert found == dict(zip(names, ("3", "3", "1", "3"), strict=True))


def test_claims_count_their_storage_in_all_and_by_class() -> None:
    def claim(size: str, name: str) -> PersistentVolumeClaim:
        return PersistentVolumeClaim(
            spec=PersistentVolumeClaimSpec(
                resources=VolumeResourceRequirements(requests={"storage": size}), storageClassName=name
            )
        )

    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    found = counted(
        quota("persistentvolumeclaims", "requests.storage", gold), claim("1Gi", "gold"), claim("2Gi", "x")
    )
    assert found == {"persistentvolumeclaims": "2", "requests.storage": "3Gi", gold: "1Gi"}


def test_device_claims_count_by_class_at_worst() -> None:
    gpu = ExactDeviceRequest(deviceClassName="gpu", allocationMode="ExactCount", count=2)
    two = DeviceSubRequest(deviceClassName="gpu", allocationMode="ExactCount", count=2)
    every = DeviceSubRequest(deviceClassName="gpu", allocationMode="All")
    claim = ResourceClaim(
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=(DeviceRequest(exactly=gpu), DeviceRequest(firstAvailable=(two, every)))
            )
        )
    )
    assert counted(quota("gpu.deviceclass.resource.k8s.io/devices"), claim) == {
        "gpu.deviceclass.resource.k8s.io/devices": "34"
    }


def test_other_objects_count_by_number_where_they_are_served_and_never_within_a_scope() -> None:
    counts = {"widgets.example.com": 3, "secrets": 2, "unknown.example.com": None}
    names = ("count/widgets.example.com", "secrets", "count/unknown.example.com")
    assert counted(quota(*names), counts=counts) == {"count/widgets.example.com": "3", "secrets": "2"}
    scoped = counted(quota("secrets", scopes=("BestEffort",)), counts=counts)
    assert scoped == {"secrets": "0"}


def test_the_status_keeps_what_nobody_can_count_and_drops_what_is_not_limited_any_more() -> None:
    of = quota(
        "pods", "count/unknown.example.com", used={"pods": "9", "count/unknown.example.com": "4", "cpu": "1"}
    )
    made = new_status(
        of, usage(Observation(of, {"pods": (pod(),)}, {"unknown.example.com": None}, ()), (), NOW)
    )
    assert made.used == {"pods": "1", "count/unknown.example.com": "4"}


def test_what_is_right_is_not_written_again_whatever_way_it_is_spelt() -> None:
    of = quota("requests.cpu", used={"requests.cpu": "1000m"})
    seen = Observation(of, {"pods": (pod("1"),)}, {}, ())
    assert walk(controller.decide(seen, NOW)) == ([], Rest("usage up to date"))
    assert isinstance(
        walk(controller.decide(Observation(of, {"pods": ()}, {}, ()), NOW))[0][0],
        UpdateStatus,
    )


def test_nothing_is_counted_before_everything_has_been_read() -> None:
    actions, verdict = walk(
        controller.decide(Observation(quota("secrets"), {}, {"secrets": 0}, ("secrets",)), NOW)
    )
    assert actions == []
    assert isinstance(verdict, Wake)


def test_devices_are_read_only_where_a_quota_is_about_them() -> None:
    of = quota("gpu.deviceclass.resource.k8s.io/devices")
    actions, _ = walk(controller.decide(Observation(of, {}, {}, ()), NOW), {List: []})
    assert isinstance(actions[0], List)


def test_an_amount_that_is_none_fails_alone() -> None:
    of = quota("requests.cpu", used={"requests.cpu": "much"})
    with pytest.raises(InvalidSpec):
        walk(controller.decide(Observation(of, {"pods": ()}, {}, ()), NOW))


LIMITS = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: limits}
spec: {hard: {pods: "3", requests.cpu: "1", count/configmaps: "5", count/deployments.apps: "2"}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: app:1, resources: {requests: {cpu: 100m}}}]}
"""


def test_a_quota_in_a_cluster_says_what_is_used_and_gives_back_what_goes() -> None:
    with Cluster(seed=1) as cluster:
        cluster.apply(LIMITS)
        cluster.settle()
        used = cluster.get("ResourceQuota", "limits").status.used
        assert (used["pods"], used["requests.cpu"], used["count/deployments.apps"]) == ("0", "0", "0")
        cluster.apply(WEB)
        cluster.settle()
        used = cluster.get("ResourceQuota", "limits").status.used
        assert (used["pods"], used["requests.cpu"], used["count/deployments.apps"]) == ("3", "300m", "1")
        assert cluster.get("Deployment", "web").status.readyReplicas == 3
        cluster.scale("Deployment", "web", replicas=1)
        cluster.settle()
        assert cluster.get("ResourceQuota", "limits").status.used["pods"] == "1"
        cluster.delete("Deployment", "web")
        cluster.settle()
        used = cluster.get("ResourceQuota", "limits").status.used
        assert (used["pods"], used["requests.cpu"], used["count/deployments.apps"]) == ("0", "0", "0")


# -- upstream's rows ------------------------------------------------------------------------------


def sized(cpu: str = "", memory: str = "", phase: str = "Running", priority: str = "") -> Pod:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    containers = (Container(name="ctr", resources=ResourceRequirements(requests=requests)),)
    return Pod(
        metadata=ObjectMeta(name="p", namespace="d"),
        spec=PodSpec(containers=containers, priorityClassName=priority),
        status=PodStatus(phase=phase),
    )


FAILED = sized("100m", "1Gi", "Failed")
PLAIN = (sized("100m", "1Gi"), sized("100m", "1Gi"), FAILED)
BEST_EFFORT = (sized(), sized(), FAILED)
PRIORITIES = (sized("500m", "50Gi", priority="high"), sized("100m", "1Gi", priority="low"), FAILED)
EFFORT = ("BestEffort",)
HARD = {"cpu": "3", "memory": "100Gi", "pods": "5"}


def priority(operator: str, *values: str) -> ScopeSelector:
    return _chosen("PriorityClass", operator, *values)


@pytest.mark.parametrize(
    ("scopes", "selector", "pods", "used"),
    [
        (EFFORT, None, PLAIN, ("0", "0", "0")),
        (EFFORT, None, BEST_EFFORT, ("0", "0", "2")),
        ((), priority("Exists"), PLAIN, ("0", "0", "0")),
        ((), priority("Exists"), PRIORITIES, ("600m", "51Gi", "2")),
        ((), priority("In", "high", "low"), PRIORITIES, ("600m", "51Gi", "2")),
        ((), priority("In", "high"), PRIORITIES, ("500m", "50Gi", "1")),
        ((), priority("In", "low"), PRIORITIES, ("100m", "1Gi", "1")),
        ((), priority("NotIn", "high"), PRIORITIES, ("100m", "1Gi", "1")),
        ((), priority("In", "random"), PRIORITIES, ("0", "0", "0")),
        ((), priority("NotIn", "random"), PLAIN, ("200m", "2Gi", "2")),
        ((), priority("DoesNotExist"), PLAIN, ("200m", "2Gi", "2")),
        ((), None, PLAIN, ("200m", "2Gi", "2")),
    ],
)
def test_the_status_has_the_usage_of_the_pods_in_scope(
    scopes: tuple[str, ...], selector: ScopeSelector | None, pods: tuple[Pod, ...], used: tuple[str, ...]
) -> None:
    of = ResourceQuota(
        metadata=ObjectMeta(name="quota", namespace="d"),
        spec=ResourceQuotaSpec(hard=HARD, scopes=scopes, scopeSelector=selector),
    )
    actions, _ = walk(controller.decide(Observation(of, {"pods": pods}, {}, ()), NOW))
    wanted = ResourceQuotaStatus(hard=HARD, used=dict(zip(HARD, used, strict=True)))
    assert actions == [UpdateStatus(of, wanted)]


@pytest.mark.parametrize(
    ("before", "written"),
    [
        (ResourceQuotaStatus(hard={"cpu": "3"}, used={"cpu": "0"}), True),
        (ResourceQuotaStatus(hard={"cpu": "0"}), True),
        (ResourceQuotaStatus(hard={"cpu": "4"}), True),
        (ResourceQuotaStatus(hard={"cpu": "4"}, used={"cpu": "0"}), False),
        (ResourceQuotaStatus(hard={"cpu": "4", "memory": "1"}, used={"cpu": "0"}), True),
        (ResourceQuotaStatus(hard={"cpu": "4000m"}, used={"cpu": "0"}), False),
    ],
    ids=[
        "limit raised",
        "limit and usage missing",
        "usage missing",
        "same",
        "limit removed",
        "spelt otherwise",
    ],
)
def test_the_status_is_written_where_limits_or_usage_differ(
    before: ResourceQuotaStatus, written: bool
) -> None:
    of = ResourceQuota(
        metadata=ObjectMeta(name="rq", namespace="d"),
        spec=ResourceQuotaSpec(hard={"cpu": "4"}),
        status=before,
    )
    actions, _ = walk(controller.decide(Observation(of, {"pods": ()}, {}, ()), NOW))
    wanted = ResourceQuotaStatus(hard={"cpu": "4"}, used={"cpu": "0"})
    assert actions == ([UpdateStatus(of, wanted)] if written else [])


CPU = {"cpu": "1", "requests.cpu": "1", "limits.cpu": "1", "pods": "1"}
P1 = ("high-priority", "1", "Running")
P2 = ("high-priority", "1", "Succeeded")
P3 = ("low-priority", "1", "Running")
P4 = ("high-priority", "", "Failed")
HIGH = priority("In", "high-priority")


@pytest.mark.parametrize(
    ("scopes", "selector", "pods", "used"),
    [
        ((), None, (), {}),
        (
            (),
            None,
            (("", "1", "Running"), ("", "1", "Running")),
            {**dict.fromkeys(CPU, "2"), "count/pods": "2"},
        ),
        ((), None, (("", "1", "Running"), ("", "1", "Succeeded")), {**CPU, "count/pods": "2"}),
        ((), HIGH, (P1, P2, P3), {**CPU, "count/pods": "2"}),
        (("PriorityClass",), HIGH, (P1, P2, P3), {**CPU, "count/pods": "2"}),
        (("PriorityClass", "BestEffort"), HIGH, (P1, P2, P3, P4), {"count/pods": "1"}),
    ],
    ids=["none", "running", "one has ended", "selected", "scope and selector", "two scopes and a selector"],
)
def test_usage_is_summed_over_the_pods_in_every_scope(
    scopes: tuple[str, ...],
    selector: ScopeSelector | None,
    pods: tuple[tuple[str, str, str], ...],
    used: dict[str, str],
) -> None:
    names = (*CPU, "count/pods")
    made = []
    for class_, cpu, phase in pods:
        amounts = {"cpu": cpu} if cpu else {}
        resources = ResourceRequirements(requests=amounts, limits=amounts)
        spec = PodSpec(containers=(Container(name="c", resources=resources),), priorityClassName=class_)
        made.append(Pod(metadata=ObjectMeta(name="p"), spec=spec, status=PodStatus(phase=phase)))
    found = counted(quota(*names, scopes=scopes, selector=selector), *made)
    assert found == {**dict.fromkeys(names, "0"), **used}


NODE_PORT = Service(spec=ServiceSpec(type="NodePort", ports=(ServicePort(),)))


@pytest.mark.parametrize(
    ("old", "new", "looked"),
    [
        (pod("2"), pod("2"), False),
        (pod("2"), pod("2", "Succeeded"), True),
        (pod("2", "Succeeded"), pod("2", "Failed"), False),
        (pod("2"), pod("2", activeDeadlineSeconds=5), True),
        (pod("2", activeDeadlineSeconds=5), pod("2"), True),
        (pod("2", activeDeadlineSeconds=5), pod("2", activeDeadlineSeconds=9), False),
        (pod("2"), pod("3"), True),
        (pod("2"), None, True),
        (None, pod("2"), False),
        (NODE_PORT, Service(spec=ServiceSpec(type="ClusterIP")), True),
        (NODE_PORT, NODE_PORT, False),
        (NODE_PORT, None, True),
    ],
)
def test_a_change_that_gives_something_back_is_a_reason_to_count(old: Any, new: Any, looked: bool) -> None:
    of = quota("pods", "services", "requests.cpu")
    caches = StaticCaches(controller, of)
    number = 1 if isinstance(old or new, Pod) else 2
    # Each is in the namespace of the quota.
    old, new = (msgspec.structs.replace(each, metadata=of.metadata) if each else None for each in (old, new))
    keys = list(controller.watches[number].to(caches, Change(old, new)))
    assert bool(keys) is looked
