"""A cluster at a socket, in real time: for clients outside."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from steersman.api.scheme import Key
from steersman.intent.controller import Controller
from steersman.intent.verdict import Verdict, Wake
from steersman.testing import Cluster, WaitTimeout

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""


def fetch(cluster: Cluster, path: str, folder: Path) -> Any:
    """A document, as a client outside reads it: all it knows is the kubeconfig."""
    config = json.loads(cluster.kubeconfig.read_text())
    user, server = config["users"][0]["user"], config["clusters"][0]["cluster"]
    pair = folder / "pair.pem"
    proof = (user["client-certificate-data"], user["client-key-data"])
    pair.write_bytes(b"".join(base64.b64decode(part) for part in proof))
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(pair)
    with urlopen(server["server"] + path, context=context, timeout=20) as answer:
        return json.load(answer)


def test_clients_outside_see_what_is_there_and_what_becomes_of_it(cluster: Cluster, tmp_path: Path) -> None:
    cluster.apply(WEB)
    cluster.settle()
    assert cluster.url.startswith("https://127.0.0.1:")
    assert cluster.url == cluster.url
    found = fetch(cluster, "/apis/apps/v1/namespaces/default/deployments/web", tmp_path)
    assert found["status"]["readyReplicas"] == 2
    cluster.scale("deploy", "web", 3)
    cluster.wait_until(lambda: cluster.get("deploy", "web").status.updatedReplicas == 3)
    pods = fetch(cluster, "/api/v1/namespaces/default/pods", tmp_path)
    assert len(pods["items"]) == 3


def test_time_is_the_walls_and_can_be_made_to_pass(cluster: Cluster) -> None:
    cluster.serve()
    assert abs(cluster.now - datetime.now(UTC)) < timedelta(minutes=1)
    cluster.apply(WEB.replace("web:v1", "web:bad"))
    before = cluster.now
    cluster.advance(minutes=11)
    assert timedelta(minutes=11) <= cluster.now - before < timedelta(minutes=12)
    reasons = [each.reason for each in cluster.get("deploy", "web").status.conditions]
    assert "ProgressDeadlineExceeded" in reasons
    told = [entry.actor for entry in cluster.history("deploy", "web")]
    assert "deployment-controller" in told


@pytest.mark.cluster(serve=True, speed=200)
def test_time_may_pass_faster_than_the_walls(cluster: Cluster) -> None:
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("deploy", "web").status.readyReplicas == 2)
    assert cluster.settle(horizon=20) >= 20
    with pytest.raises(WaitTimeout, match="condition not met within 10 s"):
        cluster.wait_until(lambda: False, timeout=10)


def test_managers_may_die_while_it_is_served(cluster: Cluster) -> None:
    cluster.serve(speed=100)
    cluster.crash_manager()
    cluster.apply(WEB)
    cluster.advance(hours=1)
    assert cluster.list("ReplicaSet") == []
    cluster.start_manager()
    cluster.wait_until(lambda: cluster.get("deploy", "web").status.readyReplicas == 2)


def test_what_runs_in_it_runs_in_a_thread_of_its_own(cluster: Cluster) -> None:
    cluster.serve()

    async def where() -> str:
        return threading.current_thread().name

    assert cluster.run(where()) == "steersman"

    async def failing() -> None:
        raise ZeroDivisionError

    cluster.spawn(failing())
    with pytest.raises(ZeroDivisionError):
        cluster.run(asyncio.sleep(0))


def test_a_served_cluster_has_no_virtual_world(cluster: Cluster) -> None:
    cluster.serve()
    with pytest.raises(RuntimeError, match="in real time"):
        cluster.world  # noqa: B018


def test_nothing_is_left_behind() -> None:
    with Cluster() as cluster:
        kubeconfig = cluster.kubeconfig
        assert kubeconfig.stat().st_mode & 0o077 == 0, "it is nobody else's"
    assert not kubeconfig.parent.exists()
    assert "steersman" not in [thread.name for thread in threading.enumerate()]


def test_nothing_is_due_before_its_time_while_it_is_served(cluster: Cluster) -> None:
    """Rounds that are due in a day once came at once, again and again: two clocks that began at different times."""
    cluster.serve(speed=20)
    rounds: list[float] = []

    async def decide(seen: object, now: datetime) -> Verdict:
        rounds.append(now.timestamp())
        return Wake(timedelta(days=1), "tomorrow")

    daily = Controller(
        name="daily",
        watches=(),
        workers=1,
        initial_keys=(Key("", "daily"),),
        observe=lambda caches, key: key,
        decide=decide,
    )
    cluster.run_controller(daily)
    cluster.advance(hours=47)
    assert len(rounds) == 2
    # How late it is, is for the machine to say: a second here is a twentieth of one.
    assert 86_400 - 1 <= rounds[1] - rounds[0] < 2 * 86_400
