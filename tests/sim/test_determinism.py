"""Same seed, same world, byte for byte: in one process, in another, and whatever its hash seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.controllers import CONTROLLERS
from steersman.runtime.fleet import Fleet
from steersman.sim.nodes import Nodes
from steersman.sim.world import World


def journal(seed: int, shuffle: bool) -> str:
    """Everything written in a world with a manager, nodes and a few things going on."""
    with World(seed=seed, shuffle=shuffle, journal=True) as world:
        world.spawn(Fleet(CONTROLLERS, world.api("manager"), world).run(), name="manager")
        world.spawn(Nodes(world.api("nodes"), world, ("a", "b", "c"), start_delay=0.5).run(), name="nodes")
        api = world.api()
        for name in ("one", "two"):
            labels = {"app": name, "tier": "web"}
            pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
            spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": pod}
            world.run(api.create(DEPLOYMENTS, "default", {"metadata": {"name": name}, "spec": spec}))
        world.run(world.settle())
        world.run(api.patch(DEPLOYMENTS, "default", "one", {"spec": {"replicas": 1}}))
        world.run(world.advance(1))
        world.run(api.delete_collection(PODS, "default", label_selector="app=two"))
        world.run(world.settle())
        return "\n".join(world.journal)


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_seed_gives_the_same_world(shuffle: bool) -> None:
    first = journal(11, shuffle)
    assert len(first.splitlines()) > 60
    assert journal(11, shuffle) == first


def test_another_seed_gives_another_world() -> None:
    assert journal(11, False) != journal(12, False)


def test_a_shuffled_world_takes_another_course() -> None:
    assert journal(11, True) != journal(11, False)


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_world(hash_seed: str) -> None:
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('determinism', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "sys.stdout.write(module.journal(11, True))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    here = hashlib.sha256(journal(11, True).encode()).hexdigest()
    assert hashlib.sha256(told.stdout).hexdigest() == here
