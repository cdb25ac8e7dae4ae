"""An operator written with kopf, tested as it is: it speaks HTTPS to the cluster and knows nothing of simulation.

``cluster.kubeconfig`` serves the cluster on loopback, in real time; the kubelets that start pods are still
simulated, and `advance` still skips what nobody wants to wait for.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import Cluster

kopf = pytest.importorskip("kopf")
registry = kopf.OperatorRegistry()


@kopf.on.login(registry=registry)
def login(**kwargs: Any) -> Any:
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.create("websites", registry=registry)
def welcome(spec: Any, patch: Any, **_: Any) -> None:
    patch.status["message"] = f"{spec['image']} will be up soon"


@pytest.fixture
def operator(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator, in a thread of its own, as long as the test runs."""
    cluster.apply(Path(__file__).with_name("websites.yaml"))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    settings, stop = kopf.OperatorSettings(), threading.Event()
    settings.posting.enabled = False
    work = kopf.operator(
        registry=registry, settings=settings, clusterwide=True, standalone=True, stop_flag=stop
    )
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.usefixtures("operator")
def test_a_new_website_is_welcomed(cluster: Cluster) -> None:
    site = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "blog"}}
    cluster.apply({**site, "spec": {"image": "blog:v1"}})
    cluster.wait_until(lambda: cluster.get("site", "blog")["status"]["message"] == "blog:v1 will be up soon")
