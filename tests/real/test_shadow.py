"""A shadow beside kube-controller-manager on a real API server: it agrees, writes nothing, and finds a wrong manager.

Short versions of what ``python -m tests.harness.shadow_run`` does for ten minutes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.kubelet import HollowKubelet
from benchmarks.workload import deployment
from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, SERVICEACCOUNTS, Deployment
from steersman.client.http import HttpApi
from tests.harness.child_process import until as wait_until
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import beside, until
from tests.harness.shadow_run import FLAGS, NO_NODES, RealShadow, summary

pytestmark = pytest.mark.reference

REFERENCE: Binary = "kube-controller-manager"
GRACE = "--grace=10s"
SPACE = "shadowed"
COLLECTOR = "pod-garbage-collector-controller"
MINUTE = 60.0


async def namespace(api: HttpApi) -> None:
    await api.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    await until(api, SERVICEACCOUNTS, SPACE, "default", bool)


def ready(replicas: int) -> Any:
    def check(found: Deployment) -> bool:
        status = found.status
        observed = status.observedGeneration >= found.metadata.generation
        return observed and status.updatedReplicas == status.readyReplicas == status.replicas == replicas

    return check


async def roll(api: HttpApi) -> None:
    """A Deployment comes, is scaled and rolled, and another goes."""
    await namespace(api)
    async with beside(HollowKubelet(api, RealClock(), SPACE).run()):
        for name in ("stays", "goes"):
            await api.create(DEPLOYMENTS, SPACE, deployment(name, 3))
        for name in ("stays", "goes"):
            await until(api, DEPLOYMENTS, SPACE, name, ready(3))
        await api.patch(DEPLOYMENTS.untyped, SPACE, "stays", {"spec": {"replicas": 6}})
        await until(api, DEPLOYMENTS, SPACE, "stays", ready(6))
        rolled = {"spec": {"template": {"metadata": {"annotations": {"rolled": "once"}}}}}
        await api.patch(DEPLOYMENTS.untyped, SPACE, "stays", rolled)
        await until(api, DEPLOYMENTS, SPACE, "stays", ready(6))
        await api.delete(DEPLOYMENTS, SPACE, "goes")


def test_a_shadow_agrees_with_kube_controller_manager_and_writes_nothing() -> None:
    with RealPlane.start() as plane:
        plane.manager(f"--controllers={NO_NODES}", *FLAGS, binary=REFERENCE)
        shadow = RealShadow(plane, f"--controllers={NO_NODES}", GRACE, "--for=45s")

        async def load() -> None:
            async with plane.connect() as api:
                await roll(api)
                await shadow.child.exited()

        asyncio.run(load())
        report = shadow.end()
        assert shadow.child.code == 0, summary(report)
        assert shadow.writes() == []
        assert shadow.requests(), "it must have read something"
        refused = [entry for entry in shadow.requests() if entry.code == 403]
        assert refused == [], "deploy/rbac-read-only.yaml must be enough"
        fulfilled = {each["name"]: each["fulfilled"] for each in report["controllers"]}
        assert fulfilled["deployment-controller"] > 0
        assert fulfilled["replicaset-controller"] > 0
        left = {each["name"] for each in report["excluded"]}
        assert {
            "serviceaccount-token-controller",
            "certificatesigningrequest-approving-controller",
        } <= left


def named(shadow: RealShadow, controller: str) -> bool:
    return any(line.startswith(f"{controller}: ") for line in shadow.found())


def test_a_controller_that_does_not_run_is_found_within_a_minute_and_named() -> None:
    with RealPlane.start() as plane:
        plane.manager(f"--controllers={NO_NODES},-deployment-controller", *FLAGS, binary=REFERENCE)
        shadow = RealShadow(plane, f"--controllers={NO_NODES}", GRACE)

        async def load() -> None:
            async with plane.connect() as api:
                await namespace(api)
                await api.create(DEPLOYMENTS, SPACE, deployment("web", 3))

        asyncio.run(load())
        wait_until(lambda: named(shadow, "deployment-controller"), shadow.child, MINUTE, "it is found")
        report = shadow.end()
        assert shadow.child.code == 2
        assert {each["controller"] for each in report["differences"]} == {"deployment-controller"}, summary(
            report
        )
        assert shadow.writes() == []


def finished_pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "example/app:1"}], "restartPolicy": "Never"},
    }


@pytest.mark.parametrize(("theirs", "ours", "side"), [(5, 12500, "extra"), (12500, 5, "missing")])
def test_another_threshold_of_the_pod_garbage_collector_is_found_within_a_minute_and_named(
    theirs: int, ours: int, side: str
) -> None:
    controllers = f"--controllers={COLLECTOR},serviceaccount-controller,namespace-controller"
    threshold = "--terminated-pod-gc-threshold"
    with RealPlane.start() as plane:
        plane.manager(controllers, *FLAGS, f"{threshold}={theirs}", binary=REFERENCE)
        shadow = RealShadow(plane, controllers, GRACE, f"{threshold}={ours}")

        async def load() -> None:
            async with plane.connect() as api:
                await namespace(api)
                for number in range(12):
                    await api.create(PODS.untyped, SPACE, finished_pod(f"done-{number}"))
                    over = {"status": {"phase": "Succeeded"}}
                    await api.patch(PODS.untyped, SPACE, f"done-{number}", over, subresource="status")

        asyncio.run(load())
        wait_until(lambda: named(shadow, COLLECTOR), shadow.child, MINUTE, "it is found")
        report = shadow.end()
        assert shadow.child.code == 2
        found = {(each["controller"], each["side"]) for each in report["differences"]}
        assert found == {(COLLECTOR, side)}, summary(report)
        assert shadow.writes() == []
