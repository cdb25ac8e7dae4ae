"""Quotas: never overdrawn, charged for what is created and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, Forbidden
from steersman.api.generated.core_v1 import ResourceQuotaStatus
from steersman.api.quantity import Quantity
from steersman.api.quota.usage import claim_usage, difference, service_usage


def pod(name: str, cpu: str = "", **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def limited(ask: Any, name: str = "q", scopes: tuple[str, ...] = (), **hard: str) -> None:
    """A quota whose controller has just counted nothing."""
    hard = {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}
    ask.create("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, "scopes": list(scopes)}})
    status = ResourceQuotaStatus(hard=hard, used=dict.fromkeys(hard, "0"))
    server = ask.server
    server.rewrite(ask.resource("resourcequotas"), "default", name, lambda old: replace(old, status=status))


def used(ask: Any, name: str = "q") -> dict[str, str]:
    return dict(ask.get("resourcequotas", name).status.used)


def test_a_quota_is_charged_until_it_is_full_and_then_refuses(ask: Any) -> None:
    limited(ask, pods="2", requests_cpu="1")
    ask.create("pods", pod("a", "400m"))
    assert used(ask) == {"pods": "1", "requests.cpu": "400m"}
    ask.create("pods", pod("b", "600m"))
    assert used(ask) == {"pods": "2", "requests.cpu": "1"}
    assert ask.forbidden_error("pods", pod("c", "1m")) == (
        'pods "c" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1m, '
        "used: pods=2,requests.cpu=1, limited: pods=2,requests.cpu=1"
    )
    assert used(ask) == {"pods": "2", "requests.cpu": "1"}


def test_nothing_is_charged_for_what_is_not_created(ask: Any) -> None:
    limited(ask, pods="5")
    ask.create("pods", pod("a"))
    with pytest.raises(AlreadyExists):
        ask.create("pods", pod("a"))
    assert used(ask) == {"pods": "1"}


def test_where_one_of_two_quotas_is_full_neither_is_charged(ask: Any) -> None:
    limited(ask, "a", pods="5")
    limited(ask, "b", pods="0")
    with pytest.raises(Forbidden):
        ask.create("pods", pod("a"))
    assert used(ask, "a") == {"pods": "0"}


def test_a_generated_name_is_in_the_refusal(ask: Any) -> None:
    limited(ask, pods="0")
    said = ask.forbidden_error("pods", {**pod(""), "metadata": {"generateName": "web-"}})
    assert said.startswith('pods "web-')
    assert '"web-"' not in said


def test_a_quota_without_status_limits_nothing_yet(ask: Any) -> None:
    ask.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    ask.create("pods", pod("a"))


def test_a_service_that_becomes_a_node_port_is_charged_for_the_difference(ask: Any) -> None:
    limited(ask, services="1", services_nodeports="1")
    ask.create("services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}})
    assert used(ask) == {"services": "1", "services.nodeports": "0"}
    ask.patch("services", "s", lambda old: replace(old, spec=replace(old.spec, type="NodePort")))
    assert used(ask) == {"services": "1", "services.nodeports": "1"}


def test_events_are_never_counted(ask: Any) -> None:
    limited(ask, count__events="0")
    ask.create("events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})


AWAY = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k", "namespaces": ["other"]}]
    }
}


@pytest.mark.parametrize(
    ("scope", "within", "without"),
    [
        ("BestEffort", pod("a"), pod("b", "1")),
        ("NotBestEffort", pod("a", "1"), pod("b")),
        ("Terminating", pod("a", activeDeadlineSeconds=5), pod("b")),
        ("NotTerminating", pod("a"), pod("b", activeDeadlineSeconds=5)),
        ("PriorityClass", pod("a", priorityClassName="system-node-critical"), pod("b")),
        ("CrossNamespacePodAffinity", pod("a", affinity=AWAY), pod("b")),
    ],
)
def test_a_scope_covers_some_pods_only(ask: Any, scope: str, within: Any, without: Any) -> None:
    limited(ask, scopes=(scope,), pods="0")
    ask.create("pods", without)
    assert "exceeded quota: q" in ask.forbidden_error("pods", within)


@given(st.lists(st.integers(1, 700), max_size=12), st.integers(0, 2000))
def test_a_quota_is_never_overdrawn(sizes: list[int], room: int) -> None:
    from steersman.api.generated.core_v1 import ResourceQuota
    from steersman.server.admission.plugin import AdmissionDenied
    from steersman.server.admission.resource_quota import _charge

    quota = ResourceQuota(status=ResourceQuotaStatus(hard={"cpu": f"{room}m"}, used={"cpu": "0"}))
    taken = 0
    for size in sizes:
        try:
            charged = _charge(quota, {"cpu": Quantity.of_milli(size)}, check=True)
        except AdmissionDenied:
            assert taken + size > room
            continue
        assert charged is not None
        quota, taken = charged, taken + size
    assert Quantity.parse(quota.status.used["cpu"]).milli() == taken <= room


def test_a_balancer_without_node_ports_uses_those_it_names(ask: Any) -> None:
    spec = {
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False,
        "ports": [{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2}],
    }
    usage = service_usage(ask.create("services", {"metadata": {"name": "s"}, "spec": spec}))
    assert str(usage["services.nodeports"]) == "1"
    assert str(usage["services.loadbalancers"]) == "1"


def test_claims_are_counted_by_class_and_in_whole_bytes(ask: Any) -> None:
    spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1500m"}},
    }
    usage = claim_usage(ask.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec}))
    assert {name: str(amount) for name, amount in sorted(usage.items())} == {
        "count/persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/requests.storage": "2",
        "persistentvolumeclaims": "1",
        "requests.storage": "2",
    }


def test_an_update_that_uses_less_is_not_credited() -> None:
    assert difference({"a": Quantity.of(1)}, {"a": Quantity.of(3)}) == {"a": Quantity.of(0)}
