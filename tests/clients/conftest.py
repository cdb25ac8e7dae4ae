"""Clients other people wrote, unmodified, against a control plane at a socket.

Each test is run against ``steersman up`` and, where ``KUBEBUILDER_ASSETS`` names the binaries, against a real
kube-apiserver: what a client sees must be the same on both. A plane serves all tests of a worker, which keep
to themselves by namespace and by the group of their custom resources.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubernetes import client, config, watch

from steersman.api.clock import RealClock
from steersman.client.http import HttpApi
from steersman.client.kubeconfig import load
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.scheduler import Scheduler
from tests.harness.child_process import Child, until
from tests.harness.envtest import ASSETS, RealPlane

HERE = Path(__file__).parent
NODES = ("node-1", "node-2", "node-3")

_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker: few planes are started, and few clients imported twice."""
    for item in items:
        if HERE in item.path.parents:
            real = item.get_closest_marker("real") is not None
            group = "clients" if real else f"clients-{item.path.stem}"
            item.add_marker(pytest.mark.xdist_group(group))


@dataclass(frozen=True)
class Plane:
    """A control plane that is up, with controllers, a scheduler and simulated nodes."""

    real: bool
    kubeconfig: Path
    url: str
    ca: Path
    """A file with the certificate of the authority behind it."""


@pytest.fixture(
    scope="session",
    params=[
        "embedded",
        pytest.param(
            "real",
            marks=[
                pytest.mark.real,
                pytest.mark.skipif(
                    not os.environ.get(ASSETS), reason=f"needs a real kube-apiserver: set {ASSETS}"
                ),
            ],
        ),
    ],
)
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    directory = tmp_path_factory.mktemp("plane")
    with _real() if request.param == "real" else _embedded(directory) as kubeconfig:
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        ca = directory / "ca.crt"
        ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        yield Plane(request.param == "real", kubeconfig, cluster["server"], ca)


@contextmanager
def _embedded(directory: Path) -> Iterator[Path]:
    path = directory / "kubeconfig"
    command = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", f"--kubeconfig={path}"]
    up = Child(command, directory / "up.log")
    try:
        until(lambda: "steersman is up" in up.log(), up, 60.0, "steersman is up")
        yield path
        # A client may get over an answer of 500; we do not.
        assert not re.search(r"app\.py:\d+\] .* failed", up.log()), up.log()
    finally:
        up.stop()


@contextmanager
def _real() -> Iterator[Path]:
    # As `up` has it: nodes begin without a taint that nobody takes away.
    without = "--disable-admission-plugins=TaintNodesByCondition"
    with RealPlane.start(apiserver=[without]) as plane, _nodes(plane.admin):
        # envtest has no manager; who has one sees how clients fare with it.
        there = os.access(Path(os.environ[ASSETS], "kube-controller-manager"), os.X_OK)
        manager = plane.manager(
            "--leader-elect=false",
            "--use-service-account-credentials",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            binary="kube-controller-manager" if there else "steersman",
        )
        with config.new_client_from_config(str(plane.admin)) as made:
            core = client.CoreV1Api(made)
            until(
                lambda: bool(core.list_namespaced_service_account("default").items), manager, 60, "accounts"
            )
        yield plane.admin


@contextmanager
def _nodes(kubeconfig: Path) -> Iterator[None]:
    """Simulated nodes and a scheduler beside a real API server, on a thread of their own."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def live() -> None:
        clock = RealClock()
        async with HttpApi(load(str(kubeconfig)), qps=0) as api:
            kubelets = Kubelets(api, clock, NODES, settings=KubeletSettings(start_delay=0.1, shutdown=0.1))
            work = [asyncio.ensure_future(each.run()) for each in (kubelets, Scheduler(api, clock))]
            await stop.wait()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),), name="nodes")
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="session")
def admin(plane: Plane) -> Iterator[client.ApiClient]:
    """The official client, as the administrator."""
    with config.new_client_from_config(str(plane.kubeconfig)) as made:
        yield made


@pytest.fixture
def namespace(admin: client.ApiClient) -> str:
    """A namespace no other test uses, in which pods can be created. It goes with the plane."""
    name = f"test-{next(_numbers)}"
    core = client.CoreV1Api(admin)
    core.create_namespace({"metadata": {"name": name}})
    accounts = watch.Watch()
    for event in accounts.stream(core.list_namespaced_service_account, name, timeout_seconds=30):
        if event["object"].metadata.name == "default":
            return name
    raise AssertionError(f"{name} has no default ServiceAccount")


@pytest.fixture
def mounted(
    plane: Plane, admin: client.ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """What a container of a pod finds of its ServiceAccount: a directory, and two variables."""
    request = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    made = client.CoreV1Api(admin).create_namespaced_service_account_token("default", namespace, request)
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text(made.status.token)
    (directory / "ca.crt").write_bytes(plane.ca.read_bytes())
    (directory / "namespace").write_text(namespace)
    where = urlsplit(plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(where.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(where.port))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return directory


@pytest.fixture
def group() -> str:
    """An API group no other test uses."""
    return f"g{next(_numbers)}.example.com"


@pytest.fixture
def definition(group: str) -> dict[str, Any]:
    """A definition of custom resources: Widgets, with a status and a scale."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "colour": {"type": "string", "default": "blue"},
                    "replicas": {"type": "integer"},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
                "shortNames": ["wd"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": scale},
                }
            ],
        },
    }


@pytest.fixture
def widgets(admin: client.ApiClient, definition: dict[str, Any]) -> str:
    """Widgets that are defined and served; their group."""
    extensions = client.ApiextensionsV1Api(admin)
    extensions.create_custom_resource_definition(definition)
    name = definition["metadata"]["name"]
    seen = watch.Watch().stream(
        extensions.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=30
    )
    for event in seen:
        conditions = event["object"].status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in conditions):
            break
    else:
        raise AssertionError(f"{name} was not established")
    group = str(definition["spec"]["group"])
    assert any(_watched(admin, group) for _ in range(1000)), f"{name} cannot be watched"
    return group


def _watched(admin: client.ApiClient, group: str) -> bool:
    """Whether widgets can be watched: a real server says 429 until it has set up its cache."""
    custom = client.CustomObjectsApi(admin)
    try:
        # From so long ago that it is refused at once.
        next(
            watch.Watch().stream(
                custom.list_cluster_custom_object,
                group,
                "v1",
                "widgets",
                resource_version="1",
                timeout_seconds=30,
            )
        )
    except client.ApiException as error:
        return bool(error.status == 410)
    return True
