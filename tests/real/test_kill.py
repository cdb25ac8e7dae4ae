"""A manager killed at random moments of a roll leaves nothing behind that its successor cannot mend."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, PODS, REPLICASETS, Deployment
from steersman.api.pods import is_active
from steersman.client import kubeconfig
from steersman.client.api import Api, UndecodableObject
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets
from tests.harness.convergence import deployment_settled
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

KILLS = 10
NAMES = ("one", "two", "three", "four")
REPLICAS = 8
FLAGS = (
    "--leader-elect=false",
    "--use-service-account-credentials=true",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)


def workload(name: str, version: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": f"app:{version}"}]},
            },
        },
    }


async def all_of(api: Api, kind: Any, namespace: str) -> list[Any]:
    items = (await api.list(kind, namespace)).items
    assert not [item for item in items if isinstance(item, UndecodableObject)]
    return items


async def converged(api: Api, namespace: str, generation: int) -> None:
    """Wait until every Deployment is rolled out in this generation and says so."""

    async def settled() -> bool:
        sets = await all_of(api, REPLICASETS, namespace)
        found: dict[str, Deployment] = {d.key.name: d for d in await all_of(api, DEPLOYMENTS, namespace)}
        return all(
            deployment_settled(
                found[name], [rs for rs in sets if rs.metadata.labels["app"] == name], generation
            )
            for name in NAMES
        )

    async with contextlib.aclosing(follow(api, DEPLOYMENTS, namespace)) as changes:
        async for _ in changes:
            if await settled():
                return


async def pod_changes(api: Api, namespace: str, count: int) -> None:
    """Wait for so many changes of pods."""
    already = len(await all_of(api, PODS, namespace))
    async with contextlib.aclosing(follow(api, PODS, namespace)) as changes:
        async for _ in changes:
            already -= 1
            count -= already < 0
            if not count:
                return


@pytest.mark.parametrize("seed", [20261115])
async def test_ten_kills_during_a_roll_end_in_the_same_state_as_none(
    plane: RealPlane, namespace: str, seed: int
) -> None:
    chance = random.Random(seed)
    async with HttpApi(kubeconfig.load(str(plane.admin)), qps=-1) as api:
        kubelets = Kubelets(api, RealClock(), ("node-1",))
        async with beside(kubelets.run()), asyncio.timeout(240):
            manager = plane.manager(*FLAGS)
            for name in NAMES:
                await api.create(DEPLOYMENTS.untyped, namespace, workload(name, "v1"))
            await converged(api, namespace, 1)

            kills, version, generation = 0, 1, 1
            while kills < KILLS:
                version, generation = version + 1, generation + 1
                for name in NAMES:
                    change = {"spec": workload(name, f"v{version}")["spec"]}
                    await api.patch(DEPLOYMENTS, namespace, name, change)
                # A roll has about 64 changes of pods that count; a few kills fit into each.
                for _ in range(min(3, KILLS - kills)):
                    await pod_changes(api, namespace, chance.randint(1, 20))
                    manager.kill(signal.SIGKILL)
                    assert await manager.exited() == -signal.SIGKILL
                    kills += 1
                    manager = plane.manager(*FLAGS)
                await converged(api, namespace, generation)

        pods = [pod for pod in await all_of(api, PODS, namespace) if is_active(pod)]
        sets = {rs.metadata.uid: rs for rs in await all_of(api, REPLICASETS, namespace)}
        per_app: dict[str, int] = {}
        for pod in pods:
            owner = sets[pod.metadata.ownerReferences[0].uid]
            assert owner.spec.replicas == REPLICAS, "every pod belongs to the set that is wanted"
            app = pod.metadata.labels["app"]
            per_app[app] = per_app.get(app, 0) + 1
        assert per_app == dict.fromkeys(NAMES, REPLICAS)
        assert len(sets) == len(NAMES) * version, "one ReplicaSet for each version, none twice"
        for deployment in await all_of(api, DEPLOYMENTS, namespace):
            assert deployment.metadata.annotations["deployment.kubernetes.io/revision"] == str(version)
    assert manager.code is None
    manager.stop()
