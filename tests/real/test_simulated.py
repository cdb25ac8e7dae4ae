"""Simulated kubelets and the scheduler on a real API server, which is stricter than ours may be."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from steersman.api.clock import RealClock
from steersman.api.generated import load
from steersman.api.kinds import LEASES, PODS
from steersman.client import kubeconfig
from steersman.client.api import EventType
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.scheduler import Scheduler
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow, until

FULL = load("", "v1", "Pod")
NODES = load("", "v1", "Node")


def pod(name: str, nodes: list[str], *command: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "app:1",
        "command": list(command),
        "resources": {"requests": {"cpu": cpu}},
    }
    # Nodes begin with a taint that only the node lifecycle controller takes away.
    everything = [{"operator": "Exists"}]
    # The server may have nodes that other tests left.
    ours = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ours]}}
    body = {
        "containers": [main],
        "tolerations": everything,
        "affinity": {"nodeAffinity": affinity},
        "automountServiceAccountToken": False,
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


async def test_pods_are_placed_run_fail_and_go(plane: RealPlane, namespace: str) -> None:
    async with HttpApi(kubeconfig.load(str(plane.admin)), qps=-1) as api, asyncio.timeout(60):
        accounts = load("", "v1", "ServiceAccount")
        await api.create(accounts, namespace, {"metadata": {"name": "default"}})
        clock = RealClock()
        names = [f"{namespace}-{i}" for i in range(3)]
        kubelets = Kubelets(api, clock, names, settings=KubeletSettings(start_delay=0.05, shutdown=0.05))
        async with beside(kubelets.run(), Scheduler(api, clock, scheduled_events=True).run()):
            await api.create(
                PODS.untyped, namespace, pod("web", names, initContainers=[{"name": "i", "image": "i"}])
            )
            await api.create(
                PODS.untyped, namespace, pod("task", names, "sh", "-c", "exit 3", restartPolicy="Never")
            )
            await api.create(PODS.untyped, namespace, pod("loop", names, "false"))
            await api.create(PODS.untyped, namespace, pod("huge", names, cpu="1000"))
            web = await until(api, FULL, namespace, "web", _ready)
            assert web.spec.nodeName in names
            assert web.status.podIP
            task = await until(api, FULL, namespace, "task", lambda each: each.status.phase == "Failed")
            assert task.status.containerStatuses[0].state.terminated.exitCode == 3
            await until(api, FULL, namespace, "loop", _looping)
            await until(api, FULL, namespace, "huge", _refused)
            lease = await until(api, LEASES, "kube-node-lease", names[0], lambda each: True)
            assert lease.spec.holderIdentity == names[0]
            async with contextlib.aclosing(follow(api, PODS, namespace)) as changes:
                async for event, each in changes:
                    if (event, each.metadata.name) == (EventType.ADDED, "web"):
                        await api.delete(PODS, namespace, "web")
                    if (event, each.metadata.name) == (EventType.DELETED, "web"):
                        break
        for name in names:
            await api.delete(NODES, "", name)


def _ready(found: Any) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)


def _looping(found: Any) -> bool:
    boxes = found.status.containerStatuses
    return bool(boxes) and boxes[0].state.waiting is not None and boxes[0].restartCount == 1


def _refused(found: Any) -> bool:
    return any("3 Insufficient cpu" in each.message for each in found.status.conditions)
