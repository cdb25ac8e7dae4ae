"""``steersman up`` under attacks that try to exhaust it, at a reduced size: ``benchmarks/exhaustion.py`` has the full one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from steersman.client import kubeconfig
from tests.harness.child_process import Child, until
from tests.harness.exhaustion import (
    ATTACKS,
    CONFIGMAPS,
    MIB,
    Attack,
    Target,
    ceiling,
    close,
    raise_file_limit,
    seed,
)

PATIENCE = 60.0
CREATED = 100
"""Objects that lists and watches are full of."""


class Attacked:
    """A control plane of its own for each attack, and its memory before."""

    def __init__(self, child: Child, target: Target) -> None:
        self.child, self.target = child, target
        seed(target, CREATED, 20_000)
        self.idle = child.rss()


@pytest.fixture
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    raise_file_limit()
    where = tmp_path_factory.mktemp("exhaustion")
    argv = [
        sys.executable,
        "-m",
        "steersman.manager.cli",
        "up",
        "--port=0",
        "--nodes=1",
        f"--kubeconfig={where / 'config'}",
    ]
    child = Child(argv, where / "up.log")
    try:
        until(lambda: "steersman is up" in child.log(), child, PATIENCE, "the control plane")
        yield Attacked(child, Target.of(kubeconfig.load(str(where / "config"))))
        assert "Traceback" not in child.log(), child.log()
    finally:
        child.stop()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_takes_bounded_memory_and_others_are_served(attacked: Attacked, attack: Attack) -> None:
    target = attacked.target
    held = attack.run(target, attack.reduced)
    try:
        assert b" 200 " in target.ask("GET", "/readyz")[:20]
        acknowledged = {"metadata": {"name": attack.name.replace(" ", "-")}}
        assert b" 201 " in target.ask("POST", CONFIGMAPS, json.dumps(acknowledged).encode())[:20]
        assert b" 200 " in target.ask("GET", f"{CONFIGMAPS}/{acknowledged['metadata']['name']}")[:20]
        peak, most = attacked.child.peak_rss(), ceiling(attacked.idle)
        assert peak <= most, (
            f"{peak / MIB:.0f} MiB, at most {most / MIB:.0f}; {attacked.idle / MIB:.0f} at rest"
        )
    finally:
        close(held)
