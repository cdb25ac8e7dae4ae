"""The controllers that `why` asks see objects that cannot be decoded as such, and say so."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.kinds import PODS
from steersman.client.api import UndecodableObject
from steersman.controllers import CONTROLLERS
from steersman.explain.decisions import ask_controllers
from steersman.explain.model import Ref
from steersman.server.local import LocalApi
from steersman.testing import Cluster

LABELS = {"app": "agent"}
AGENT = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        },
    },
}


class OddPods(LocalApi):
    """Lists pods that cannot be decoded."""

    async def list(self, kind: Any, namespace: str = "", **options: Any) -> Any:
        page = await super().list(kind, namespace, **options)
        if kind.resource != PODS.resource:
            return page
        odd = [UndecodableObject(each.metadata, "nonsense") for each in page.items]
        return msgspec.structs.replace(page, items=odd)


def test_a_pod_that_cannot_be_decoded_is_named_as_what_stands_in_the_way() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(AGENT)
        cluster.wait_until(lambda: cluster.get("daemonset", "agent").status.numberReady == 1)
        (pod,) = cluster.list("pods")
        world = cluster.world
        subjects = [Ref("DaemonSet", "default", "agent")]
        (found,) = cluster.run(ask_controllers(OddPods(world.server), CONTROLLERS, subjects, world.now()))
        assert found.verdict == f"fails: Pod default/{pod.metadata.name} cannot be decoded: nonsense"
        assert found.would == (), "no second pod"
