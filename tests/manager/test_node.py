"""``steersman node`` and the node operations, in a world and from the command line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import NotFound
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.controllers import CONTROLLERS
from steersman.manager import cli, node
from steersman.manager.verb import find, parse
from steersman.manager.verbs import NODE
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.bootstrap import Bootstrap
from steersman.sim import nodes
from steersman.sim.dynamicresources import Devices
from steersman.sim.dynamicresources.driver import SLICES, resource_slice
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.kubelet.node import STATE
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import START, World

NODES = load("", "v1", "Node")
BUDGETS = load("policy", "v1", "PodDisruptionBudget")
NEEDED = ("deployment-controller", "replicaset-controller", "serviceaccount-controller")
NAMES = ("node-1", "node-2", "node-3")


class Cluster:
    """A small cluster under virtual time, and what was said of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = world.api()
        self.said: list[str] = []
        chosen = [each for each in CONTROLLERS if each.name in NEEDED]
        world.spawn(ControllerGroup(chosen, world.api("manager"), world).run())
        world.spawn(Scheduler(world.api("scheduler"), world).run())
        world.spawn(
            Kubelets(world.api("kubelets"), world, NAMES, settings=KubeletSettings(reboot=30.0)).run()
        )
        world.run(world.settle())

    def do(self, coroutine: Any) -> Any:
        return self.world.run(coroutine)

    def deploy(self, replicas: int) -> None:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        self.do(self.api.create(DEPLOYMENTS.untyped, "default", {"metadata": {"name": "web"}, "spec": spec}))
        self.do(self.world.settle())

    def pods(self, where: str) -> list[str]:
        found = self.do(self.api.list(load("", "v1", "Pod"), field_selector=f"spec.nodeName={where}"))
        return [pod.metadata.name for pod in found.items]

    def lone(self, name: str, where: str, **meta: Any) -> None:
        containers = [{"name": "c", "image": "i:1"}]
        body = {"metadata": {"name": name, **meta}, "spec": {"nodeName": where, "containers": containers}}
        self.do(self.api.create(PODS.untyped, "default", body))
        self.do(self.world.settle())

    def budget(self, allowed: int) -> None:
        """A budget as the disruption controller keeps it."""
        selector = {"matchLabels": {"app": "web"}}
        body = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
        try:
            made = self.do(self.api.get(BUDGETS.untyped, "default", "b"))
        except NotFound:
            made = self.do(self.api.create(BUDGETS.untyped, "default", body))
        made["status"] = {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": 2,
            "desiredHealthy": 1,
            "expectedPods": 2,
        }
        self.do(self.api.update_status(BUDGETS.untyped, "default", "b", made))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with World(seed=11) as world:
        yield Cluster(world)


def test_a_list_says_how_each_node_is(cluster: Cluster) -> None:
    cluster.deploy(3)
    cluster.do(nodes.fail(cluster.api, "node-2", cluster.said.append))
    cluster.do(cluster.api.patch(NODES, "", "node-3", {"spec": {"unschedulable": True}}))
    real = {"metadata": {"name": "real"}, "spec": {"providerID": "aws://i-1"}}
    cluster.do(cluster.api.create(NODES.untyped, "", real))
    cluster.said.clear()
    assert cluster.world.run(nodes.list_nodes(cluster.api)) == (
        nodes.NodeRow("node-1", "Ready", "up", 1),
        nodes.NodeRow("node-2", "Ready", "failed", 1),
        nodes.NodeRow("node-3", "Ready,SchedulingDisabled", "up", 1),
        nodes.NodeRow("real", "NotReady", "no", 0),
    )


def test_a_node_that_failed_sends_no_heartbeats_until_it_recovers(cluster: Cluster) -> None:
    leases = load("coordination.k8s.io", "v1", "Lease")

    def renewed() -> Any:
        cluster.do(cluster.world.advance(30.0))
        return cluster.do(cluster.api.get(leases, "kube-node-lease", "node-1")).spec.renewTime

    cluster.do(nodes.fail(cluster.api, "node-1", cluster.said.append))
    silent = renewed()
    assert renewed() == silent
    cluster.do(cluster.api.patch(NODES, "", "node-1", {"spec": {"unschedulable": True}}))
    cluster.do(nodes.recover(cluster.api, "node-1", cluster.said.append))
    assert renewed() > silent
    found = cluster.do(cluster.api.get(NODES, "", "node-1"))
    assert (found.spec.unschedulable, STATE in found.metadata.annotations) == (False, False)
    assert cluster.said == [
        "node-1 failed: its kubelet is stopped; `steersman node recover node-1` starts it again",
        "node-1 recovered and is schedulable",
    ]


def test_a_reboot_ends_when_the_node_is_back_and_can_be_had_again(cluster: Cluster) -> None:
    cluster.deploy(3)
    for _ in range(2):
        began = cluster.world.monotonic()
        cluster.do(nodes.reboot(cluster.api, "node-1", cluster.said.append))
        assert cluster.world.monotonic() - began == pytest.approx(30.0, abs=1.0)
    found = cluster.do(cluster.api.get(NODES, "", "node-1"))
    assert found.status.nodeInfo.bootID == "node-1-2"
    assert STATE not in found.metadata.annotations
    assert cluster.said[-2:] == ["node-1 is rebooting", "node-1 is back"]
    cluster.do(cluster.world.settle())
    (name,) = cluster.pods("node-1")
    status = cluster.do(cluster.api.get(load("", "v1", "Pod"), "default", name)).status
    assert status.containerStatuses[0].restartCount == 2


def test_a_drain_moves_the_pods_elsewhere_and_says_so(cluster: Cluster) -> None:
    cluster.deploy(3)
    (name,) = cluster.pods("node-1")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    cluster.lone("daemon", "node-1", ownerReferences=[owner])
    cluster.do(nodes.drain(cluster.api, "node-1", output=cluster.said.append))
    cluster.do(cluster.world.settle())
    assert cluster.pods("node-1") == ["daemon"]
    assert len(cluster.pods("node-2") + cluster.pods("node-3")) == 3
    assert cluster.said == [
        "node-1 cordoned",
        f"evicting default/{name}",
        f"  default/{name} evicted",
        "node-1 drained: 1 pod evicted, 1 of DaemonSets or static pods kept; "
        "`steersman node recover node-1` uncordons it",
    ]


def test_a_drain_waits_for_budgets_and_gives_up_in_time(cluster: Cluster) -> None:
    cluster.deploy(3)
    (name,) = cluster.pods("node-1")
    cluster.budget(0)
    with pytest.raises(nodes.NodeError, match=f"node-1: pods left after 60 s: default/{name}"):
        cluster.do(nodes.drain(cluster.api, "node-1", timeout=60.0, output=cluster.said.append))
    waits = (
        f"  default/{name} not evicted yet: Cannot evict pod as it would violate the pod's disruption budget."
    )
    assert cluster.said.count(waits) == 1, "the same is told once"
    assert cluster.pods("node-1") == [name]

    async def allowed_later() -> None:
        draining = asyncio.create_task(nodes.drain(cluster.api, "node-1", output=cluster.said.append))
        await asyncio.sleep(10.0)
        assert not draining.done()
        document = await cluster.api.get(BUDGETS.untyped, "default", "b")
        document["status"]["disruptionsAllowed"] = 1
        await cluster.api.update_status(BUDGETS.untyped, "default", "b", document)
        await draining

    cluster.do(allowed_later())
    assert cluster.pods("node-1") == []


def test_a_drain_does_not_take_what_nobody_would_bring_back_unless_forced(cluster: Cluster) -> None:
    cluster.lone("alone", "node-1")
    with pytest.raises(
        nodes.NodeError, match=r"no controller would recreate these pods: default/alone; --force"
    ):
        cluster.do(nodes.drain(cluster.api, "node-1", output=cluster.said.append))
    assert cluster.pods("node-1") == ["alone"]
    cluster.do(nodes.drain(cluster.api, "node-1", force=True, output=cluster.said.append))
    assert cluster.pods("node-1") == []


def test_devices_of_a_node_fail_and_recover_by_name(cluster: Cluster) -> None:
    def unhealthy() -> str | None:
        found = cluster.do(cluster.api.get(NODES, "", "node-1"))
        value: str | None = found.metadata.annotations.get("sim.steersman.dev/unhealthy-devices")
        return value

    node_1 = cluster.do(cluster.api.get(NODES, "", "node-1"))
    for act in (nodes.fail_devices, nodes.recover_devices):
        with pytest.raises(nodes.NodeError, match="no simulated device 'device-0'; available: none"):
            cluster.do(act(cluster.api, "node-1", ["device-0"], cluster.said.append))
    cluster.do(cluster.api.create(SLICES, "", resource_slice(node_1, Devices(count=3))))
    for act in (nodes.fail_devices, nodes.recover_devices):
        with pytest.raises(
            nodes.NodeError,
            match="node-1 has no simulated device 'device-9'; available: device-0, device-1, device-2",
        ):
            cluster.do(act(cluster.api, "node-1", ["device-0", "device-9"], cluster.said.append))
    assert unhealthy() is None
    cluster.do(nodes.fail_devices(cluster.api, "node-1", ["device-0"], cluster.said.append))
    cluster.do(nodes.fail_devices(cluster.api, "node-1", ["device-2", "device-0"], cluster.said.append))
    assert unhealthy() == "device-0,device-2"
    cluster.do(nodes.recover_devices(cluster.api, "node-1", ["device-0"], cluster.said.append))
    assert unhealthy() == "device-2"
    cluster.do(nodes.recover_devices(cluster.api, "node-1", ["device-2"], cluster.said.append))
    assert unhealthy() is None
    assert cluster.said[-1] == "node-1: device-2 healthy"


def test_only_a_simulated_node_does_what_it_is_told(cluster: Cluster) -> None:
    cluster.do(cluster.api.create(NODES.untyped, "", {"metadata": {"name": "real"}}))
    for act in (nodes.fail, nodes.reboot):
        with pytest.raises(nodes.NodeError, match="real is not a simulated node"):
            cluster.do(act(cluster.api, "real", cluster.said.append))
    with pytest.raises(
        nodes.NodeError, match="node 'nosuch' not found; available: node-1, node-2, node-3, real"
    ):
        cluster.do(nodes.fail(cluster.api, "nosuch", cluster.said.append))


# -- the command line -------------------------------------------------------------------------


def test_the_plane_of_this_directory_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = Bootstrap.generate(lambda: START)
    for name in ("here", "there", "named"):
        (tmp_path / name).write_bytes(boot.kubeconfig(f"https://{name}.dev:1"))
    monkeypatch.chdir(tmp_path)
    environ = {"KUBECONFIG": str(tmp_path / "there")}
    assert node.connect(environ=environ).server == "https://there.dev:1"
    (tmp_path / "here").rename(tmp_path / "steersman.kubeconfig")
    assert node.connect(environ=environ).server == "https://here.dev:1"
    assert node.connect(str(tmp_path / "named"), environ).server == "https://named.dev:1"


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        # Bound, and never listening: whoever knocks is turned away.
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        config = tmp_path / "config"
        config.write_bytes(Bootstrap.generate(lambda: START).kubeconfig(url))
        assert cli.main(["node", "list", f"--kubeconfig={config}"]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"Error: no answer from {url} (from {config})")
    assert line.endswith("is `steersman up` running?")


def test_a_kubeconfig_that_is_not_there_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["node", "list", "--kubeconfig=/nonexistent/config"]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("Error: /nonexistent/config: ")


def test_what_a_verb_does_ends_with_the_nodes_as_a_document_where_one_is_asked_for(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    for words, simulated in ((["fail"], "failed"), (["recover"], "up"), (["drain", "--force"], "up")):
        given = parse(find(NODE.verbs, words[0], NODE.path), [*words[1:], "node-2", "-o", "json"])
        cluster.do(node._VERBS[words[0]](cluster.api, given))
        said = capfd.readouterr()
        (row,) = json.loads(said.out)
        assert (row["name"], row["simulated"]) == ("node-2", simulated)
        assert "node-2" in said.err
    given = parse(NODE, ["fail", "node-1", "-o", "table"])
    cluster.do(node._VERBS["fail"](cluster.api, given))
    assert capfd.readouterr().out.split() == [
        "NAME",
        "STATUS",
        "SIMULATED",
        "PODS",
        "node-1",
        "Ready",
        "failed",
        "0",
    ]
    given = parse(find(NODE.verbs, "recover", NODE.path), ["node-2"])
    cluster.do(node._VERBS["recover"](cluster.api, given))
    said = capfd.readouterr()
    assert (said.out.startswith("node-2 "), said.err) == (True, "")


def test_help_teaches(capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["drain", "--help"]):
        assert cli.main(["node", *words]) == 0
    said = capfd.readouterr().out
    assert "steersman node fail node-2 " in said
    assert "--force" in said
