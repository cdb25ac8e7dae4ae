"""One world, told write by write and round by round: the same text from every Python, on every machine.

What it tells is kept in ``trace.txt``, without the bodies of what was written, and a digest of all of it with
them. Whoever changes on purpose what happens in a world renews both, and sees in the diff what that is::

    python tests/sim/trace.py --renew
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.controllers import deployment, replicaset, serviceaccount
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Trace
from steersman.sim.kubelet.node import STATE
from steersman.sim.nodes import Nodes
from steersman.sim.world import World

GOLDEN = Path(__file__).with_name("trace.txt")
NODES = load("", "v1", "Node")
SERVICES = load("", "v1", "Service")
CONTROLLERS = (
    serviceaccount.controller,
    deployment.controller,
    replicaset.replicaset,
    replicaset.replicationcontroller,
)
"""Those that have been there from the beginning, so that a new one changes nothing here."""
STRATEGIC = "application/strategic-merge-patch+json"


def workload(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": name, "tier": "web"}
    main = {"name": "main", "image": image, "resources": {"requests": {"cpu": "0.1", "memory": "1.5Gi"}}}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"metadata": {"name": name}, "spec": spec}


def told(seed: int = 11, *, shuffle: bool = True) -> tuple[list[str], list[str]]:
    """What is written, and the rounds that led to it: a line each."""
    trace = Trace(capacity=100_000)
    with World(seed=seed, shuffle=shuffle, journal=True) as world:
        world.spawn(
            ControllerGroup(CONTROLLERS, world.api("manager"), world, trace=trace).run(), name="manager"
        )
        nodes = Nodes(world.api("nodes"), world, ("a", "b", "c"), start_delay=0.3, shutdown=0.7)
        world.spawn(nodes.run(), name="nodes")
        play(world)
        return world.journal, trace.json().decode().splitlines()


def play(world: World) -> None:
    """Some of everything: a roll, a scale, an image that never comes, a crash loop, a node that reboots, an idle day."""
    api = world.api()
    for name, replicas, image in (("one", 4, "app:1"), ("two", 3, "app:1"), ("stuck", 1, "bad:1")):
        world.run(api.create(DEPLOYMENTS, "default", workload(name, replicas, image)))
    world.run(
        api.create(SERVICES, "default", {"metadata": {"name": "one"}, "spec": {"ports": [{"port": 80}]}})
    )
    world.run(world.settle())
    containers = [{"name": "main", "image": "app:2"}]
    roll = {"spec": {"template": {"spec": {"containers": containers}}}}
    world.run(api.patch(DEPLOYMENTS, "default", "one", roll, content_type=STRATEGIC))
    world.run(world.advance(1))
    world.run(api.delete_collection(PODS, "default", label_selector="app=two"))
    world.run(world.settle())
    world.run(api.patch(DEPLOYMENTS, "default", "two", {"spec": {"replicas": 1}}))
    crash = {"containers": [{"name": "main", "image": "app:1", "command": ["sh", "-c", "sleep 2; exit 3"]}]}
    world.run(api.create(PODS, "default", {"metadata": {"name": "crash"}, "spec": crash}))
    world.run(world.advance(90.125))
    world.run(api.patch(NODES, "", "b", {"metadata": {"annotations": {STATE: "rebooting"}}}))
    world.run(world.advance(700))
    world.run(api.delete(PODS, "default", "crash"))
    world.run(world.advance(86_400))


def outline(journal: list[str], rounds: list[str]) -> str:
    """All of it for people to read: a line for each write without its body, then the rounds."""
    writes = [" ".join(line.split(" ", 5)[:5]) for line in journal]
    return "\n".join(["# writes", *writes, "# rounds", *rounds, ""])


def digest(journal: list[str], rounds: list[str]) -> str:
    """All of it to the byte."""
    return hashlib.sha256("\n".join((*journal, *rounds)).encode()).hexdigest()


def main(arguments: list[str]) -> None:
    found = told()
    if arguments == ["--renew"]:
        GOLDEN.write_text(f"# sha256 {digest(*found)}\n{outline(*found)}")
    else:
        sys.stdout.write("\n".join((*found[0], *found[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
