"""Many Deployments on a real API server, each controller with just its bootstrap rights."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, REPLICASETS, Deployment
from steersman.client.api import Api
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets
from tests.harness.convergence import deployment_settled
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

COUNT = 50
REPLICAS = 20
NAMES = tuple(f"web-{n}" for n in range(COUNT))


def workload(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


async def settled(api: Api, namespace: str, generation: int) -> None:
    """Wait until all Deployments are as they should be in this generation."""
    open_ = dict.fromkeys(NAMES)
    async with contextlib.aclosing(follow(api, DEPLOYMENTS, namespace)) as changes:
        async for _, deployment in changes:
            if await _is_settled(api, deployment, generation):
                open_.pop(deployment.metadata.name, None)
            if not open_:
                return


async def _is_settled(api: Api, deployment: Deployment, generation: int) -> bool:
    if deployment.status.observedGeneration < generation:
        return False
    selector = f"app={deployment.metadata.name}"
    sets: Any = (await api.list(REPLICASETS, deployment.metadata.namespace, label_selector=selector)).items
    return deployment_settled(deployment, sets, generation)


async def each(api: HttpApi, namespace: str, change: dict[str, Any]) -> None:
    for name in NAMES:
        await api.patch(DEPLOYMENTS, namespace, name, change)


async def test_fifty_deployments_converge_roll_and_scale_without_one_refusal_by_rbac(
    plane: RealPlane, namespace: str
) -> None:
    mark = plane.mark()
    manager = plane.manager(
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        "--kube-api-qps=2000",
        "--kube-api-burst=3000",
    )
    async with (
        plane.connect() as api,
        beside(Kubelets(api, RealClock(), ("node-1",)).run()),
        asyncio.timeout(300),
    ):
        for name in NAMES:
            await api.create(DEPLOYMENTS.untyped, namespace, workload(name))
        await settled(api, namespace, 1)
        await each(api, namespace, {"spec": {"template": {"metadata": {"annotations": {"roll": "2"}}}}})
        await settled(api, namespace, 2)
        await each(api, namespace, {"spec": {"replicas": 0}})
        await settled(api, namespace, 3)
        await each(api, namespace, {"spec": {"replicas": REPLICAS}})
        await settled(api, namespace, 4)
    manager.stop()
    ours = [
        entry for entry in plane.audit(mark) if entry.user.startswith("system:serviceaccount:kube-system:")
    ]
    assert len(ours) > COUNT * REPLICAS * 3
    assert [entry for entry in ours if entry.code == 403] == []
    said = manager.log()
    assert "forbidden" not in said
    assert "Traceback" not in said
