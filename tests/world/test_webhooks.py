"""Controllers whose writes webhooks see: one that is down, and crashes between any two writes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.testing import Cluster
from tests.harness.webhook_server import allow, configuration, patching

PODS = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
CLIENT = {"service": {"namespace": "default", "name": "hook"}}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "main:1"}]},
}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def test_controllers_converge_once_a_webhook_that_was_down_is_back() -> None:
    down = True

    def hook(review: dict[str, Any]) -> Any:
        if down:
            raise ConnectionError("down")
        return allow(review)

    with Cluster(nodes=2, webhooks={"default/hook": hook}) as cluster:
        cluster.apply(configuration("Validating", "v", CLIENT, rules=PODS))
        cluster.apply(WEB)
        cluster.advance(minutes=5)
        assert cluster.list("pods") == []
        told = [each.message for each in cluster.events() if each.reason == "FailedCreate"]
        assert any('failed calling webhook "v.example.com"' in each for each in told)
        down = False
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_trace_with_webhooks(seed: int) -> None:
    label = patching({"op": "add", "path": "/metadata/labels/hooked", "value": "yes"})

    def played() -> list[str]:
        with Cluster(seed, nodes=2, webhooks={"default/hook": label}, journal=True) as cluster:
            cluster.apply(configuration("Mutating", "m", CLIENT, rules=PODS))
            cluster.apply(WEB)
            cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
            return list(cluster.world.journal)

    assert played() == played()


def test_a_manager_that_crashes_after_any_write_converges_with_webhooks() -> None:
    label = patching({"op": "add", "path": "/metadata/labels/hooked", "value": "yes"})
    hooks = {"default/hook": label}
    with Cluster(nodes=2, webhooks=hooks) as cluster:
        cluster.apply(configuration("Mutating", "m", CLIENT, rules=PODS))
        base = int(cluster.apply(WEB).metadata.resourceVersion)
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
        writes = cluster.world.server.store.revision - base
    for crash in range(1, min(writes, 25)):
        with Cluster(nodes=2, webhooks=hooks) as cluster:
            cluster.apply(configuration("Mutating", "m", CLIENT, rules=PODS))
            cluster.apply(WEB)
            store = cluster.world.server.store
            until = store.revision + crash
            cluster.wait_until(lambda store=store, until=until: store.revision >= until)  # type: ignore[misc]
            cluster.restart_manager()
            cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
            pods = cluster.list("pods")
            assert [each.metadata.labels.get("hooked") for each in pods] == ["yes"] * 3, (
                f"crash after {crash}"
            )
