"""Request lines whose targets are odd: both servers take or refuse them alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.client import kubeconfig
from tests.harness.child_process import Child, until
from tests.harness.envtest import RealPlane
from tests.harness.exhaustion import Target


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    where = tmp_path_factory.mktemp("up")
    argv = ["up", "--port=0", "--nodes=0", "--no-controllers", f"--kubeconfig={where / 'config'}"]
    child = Child([sys.executable, "-m", "steersman.manager.cli", *argv], where / "up.log")
    try:
        until(lambda: "steersman is up" in child.log(), child, 60, "the control plane")
        yield target(where / "config")
    finally:
        child.stop()


def target(path: Path) -> Target:
    return Target.of(kubeconfig.load(str(path)))


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("/healthz", 200),
        ("healthz", 400),
        ("./healthz", 400),
        ("//healthz", 404),
        ("?a=b", 400),
        ("healthz?http://x/", 400),
        ("http://x/healthz", 200),
        ("http:/healthz", 200),
        ("http:healthz", 404),
        ("*", 404),
        ("/healthz%zz", 400),
        ("/healthz%4", 400),
        ("/healt%68z", 200),
        ("/healthz?a=%zz", 200),
        ("http://x/healthz%zz", 400),
    ],
)
def test_both_servers_take_the_same_targets(plane: RealPlane, ours: Target, sent: str, code: int) -> None:
    heads = [
        each.ask("GET", sent, headers="Connection: close\r\n")[:12] for each in (target(plane.admin), ours)
    ]
    assert heads == [f"HTTP/1.1 {code}".encode()] * 2
