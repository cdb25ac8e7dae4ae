"""Simulated kubelets in a world: pods from their arrival to their end, and nodes that fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from steersman.api.generated import load
from steersman.api.kinds import LEASES, PODS
from steersman.api.scheme import Kind
from steersman.client.capabilities import REMOTE
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.kubelet import Kubelets, KubeletSettings, Shape
from steersman.sim.kubelet.node import STATE
from steersman.sim.world import World

NODES = load("", "v1", "Node")
NOTE = "sim.steersman.dev/"


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


def start(world: World, *names: str, shape: Shape = Shape(), **settings: Any) -> Kubelets:
    kubelets = Kubelets(
        world.api("kubelets"), world, names or ("n1", "n2"), settings=KubeletSettings(**settings), shape=shape
    )
    world.spawn(kubelets.run(), name="kubelets")
    world.run(world.settle())
    return kubelets


def pod(name: str = "a", *command: str, notes: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    main: dict[str, Any] = {"name": "main", "image": "app:1", "command": list(command)}
    return {
        "metadata": {
            "name": name,
            "annotations": {NOTE + key: value for key, value in (notes or {}).items()},
        },
        "spec": {"nodeName": "n1", "containers": [main], **spec},
    }


def make(world: World, body: dict[str, Any]) -> None:
    world.run(world.api().create(PODS, "default", body))
    world.run(world.loop.idle())


def get(world: World, name: str = "a") -> Any:
    return world.run(world.api().get(PODS, "default", name))


def pods(world: World) -> list[Any]:
    return list(world.run(world.api().list(PODS, "default")).items)


def conditions(world: World, name: str = "a") -> dict[str, str]:
    return {each.type: each.status for each in get(world, name).status.conditions}


def pass_(world: World, seconds: float) -> None:
    world.run(world.advance(seconds))


# -- pods -------------------------------------------------------------------------------------


def test_a_pod_starts_gets_ready_and_has_an_address(world: World) -> None:
    start(world, start_delay=2.0, ready_delay=3.0)
    make(world, pod())
    status = get(world).status
    assert (status.phase, status.containerStatuses[0].state.waiting.reason) == (
        "Pending",
        "ContainerCreating",
    )
    assert status.podIP == ""
    pass_(world, 2.0)
    status = get(world).status
    assert (status.phase, status.containerStatuses[0].ready) == ("Running", False)
    assert status.podIP.startswith("10.244.")
    assert status.hostIP == "172.16.0.1"
    assert conditions(world) == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    pass_(world, 3.0)
    assert set(conditions(world).values()) == {"True"}
    ready = next(each for each in get(world).status.conditions if each.type == "Ready")
    assert (ready.lastTransitionTime - get(world).status.startTime).total_seconds() == 5.0


def test_without_delays_a_pod_is_ready_with_one_write(world: World) -> None:
    start(world)
    before = world.server.store.revision
    make(world, pod())
    assert get(world).status.phase == "Running"
    events = 4  # Pulling, Pulled, Created, Started
    assert world.server.store.revision == before + 2 + events


def test_init_containers_run_in_order_and_sidecars_stay(world: World) -> None:
    start(world)
    inits = [
        {"name": "first", "image": "i", "command": ["sleep", "5"]},
        {"name": "side", "image": "i", "restartPolicy": "Always"},
        {"name": "second", "image": "i", "command": ["sleep", "5"]},
    ]
    make(world, pod(initContainers=inits))

    def states() -> list[str]:
        status = get(world).status
        found = []
        for each in (*status.initContainerStatuses, *status.containerStatuses):
            state = each.state
            found.append("runs" if state.running else "ended" if state.terminated else state.waiting.reason)
        return found

    assert states() == ["runs", "PodInitializing", "PodInitializing", "PodInitializing"]
    assert conditions(world)["Initialized"] == "False"
    pass_(world, 5)
    assert states() == ["ended", "runs", "runs", "PodInitializing"]
    pass_(world, 5)
    assert states() == ["ended", "runs", "ended", "runs"]
    assert get(world).status.phase == "Running"
    assert set(conditions(world).values()) == {"True"}


def test_an_init_container_that_fails_fails_a_pod_that_is_never_restarted(world: World) -> None:
    start(world)
    inits = [{"name": "first", "image": "i", "command": ["false"]}]
    make(world, pod(initContainers=inits, restartPolicy="Never"))
    status = get(world).status
    assert status.phase == "Failed"
    assert status.initContainerStatuses[0].state.terminated.exitCode == 1
    assert conditions(world)["Initialized"] == "False"


def test_a_crash_loop_backs_off_from_ten_seconds_to_five_minutes(world: World) -> None:
    start(world)
    make(world, pod("a", "sh", "-c", "sleep 1; exit 3"))
    starts: list[Any] = []
    for _ in range(1200):
        count = get(world).status.containerStatuses[0].restartCount
        while len(starts) <= count:
            starts.append(world.monotonic())
        pass_(world, 1)
    pauses = [round(later - sooner - 1) for sooner, later in pairwise(starts)]
    assert pauses[:8] == [0, 10, 20, 40, 80, 160, 300, 300]
    container = get(world).status.containerStatuses[0]
    assert container.lastState.terminated.exitCode == 3
    assert get(world).status.phase == "Running"
    assert container.state.waiting.reason == "CrashLoopBackOff"
    assert container.state.waiting.message.startswith(
        "back-off 5m0s restarting failed container=main pod=a_default("
    )


@pytest.mark.parametrize(
    ("policy", "command", "phase", "restarts"),
    [
        ("Never", "true", "Succeeded", 0),
        ("Never", "false", "Failed", 0),
        ("OnFailure", "true", "Succeeded", 0),
        ("OnFailure", "false", "Running", 1),
        ("Always", "true", "Running", 1),
    ],
)
def test_what_ends_is_restarted_as_its_policy_says(
    world: World, policy: str, command: str, phase: str, restarts: int
) -> None:
    start(world)
    make(world, pod("a", command, restartPolicy=policy))
    status = get(world).status
    assert (status.phase, status.containerStatuses[0].restartCount) == (phase, restarts)
    if phase == "Succeeded":
        reasons = {each.type: each.reason for each in status.conditions}
        assert reasons["Ready"] == reasons["Initialized"] == "PodCompleted"


def test_the_containers_of_a_job_are_done_after_a_while(world: World) -> None:
    start(world, work=4.0)
    body = pod(restartPolicy="Never")
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    ]
    make(world, body)
    assert get(world).status.phase == "Running"
    pass_(world, 4)
    assert get(world).status.phase == "Succeeded"


def test_the_containers_of_a_helm_hook_are_done_after_a_while(world: World) -> None:
    start(world, work=4.0)
    body = pod("test", "wget", "web:80", restartPolicy="Never")
    body["metadata"]["annotations"]["helm.sh/hook"] = "test"
    make(world, body)
    make(world, pod("other", "wget", "web:80", restartPolicy="Never"))
    pass_(world, 4)
    assert [get(world, name).status.phase for name in ("test", "other")] == ["Succeeded", "Running"]


def test_an_image_that_never_comes(world: World) -> None:
    start(world, pull_error=10.0)
    make(world, pod(containers=[{"name": "main", "image": "bad:1"}, {"name": "fine", "image": "app:1"}]))

    def reason() -> str:
        return str(get(world).status.containerStatuses[0].state.waiting.reason)

    assert (get(world).status.phase, reason()) == ("Pending", "ErrImagePull")
    pass_(world, 10)
    assert reason() == "ImagePullBackOff"
    assert get(world).status.containerStatuses[1].state.running is not None
    pass_(world, 86400)
    assert get(world).status.phase == "Pending"
    change = [{"op": "replace", "path": "/spec/containers/0/image", "value": "good:1"}]
    api = world.api()
    world.run(api.patch(PODS, "default", "a", change, content_type="application/json-patch+json"))
    world.run(world.loop.idle())
    assert get(world).status.phase == "Running"
    assert get(world).status.containerStatuses[0].restartCount == 0


def test_a_pod_past_its_deadline_fails(world: World) -> None:
    start(world)
    make(world, pod(activeDeadlineSeconds=20))
    pass_(world, 19)
    assert get(world).status.phase == "Running"
    pass_(world, 1)
    status = get(world).status
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")
    assert status.containerStatuses[0].state.terminated.exitCode == 137


def test_readiness_follows_an_annotation_and_readiness_gates(world: World) -> None:
    start(world)
    make(world, pod(readinessGates=[{"conditionType": "example.com/open"}]))
    found = {each.type: each for each in get(world).status.conditions}
    assert (found["ContainersReady"].status, found["Ready"].reason) == ("True", "ReadinessGatesNotReady")
    opened = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}
    strategic = "application/strategic-merge-patch+json"
    api = world.api()
    world.run(api.patch(PODS, "default", "a", opened, content_type=strategic, subresource="status"))
    world.run(world.loop.idle())
    assert conditions(world)["Ready"] == "True"
    world.run(api.patch(PODS, "default", "a", {"metadata": {"annotations": {NOTE + "ready": "false"}}}))
    world.run(world.loop.idle())
    assert conditions(world)["Ready"] == "False"
    assert conditions(world)["example.com/open"] == "True"


# -- deletion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("shutdown", "grace", "gone_after"), [(3, 30, 3), (60, 5, 5), (0, 30, 0)])
def test_a_pod_stops_within_its_grace_period(
    world: World, shutdown: float, grace: int, gone_after: float
) -> None:
    start(world, shutdown=shutdown)
    make(world, pod(terminationGracePeriodSeconds=grace))
    world.run(world.api().delete(PODS, "default", "a"))
    world.run(world.loop.idle())
    if gone_after:
        assert conditions(world)["Ready"] == "True"
        pass_(world, gone_after - 0.5)
        assert len(pods(world)) == 1
        pass_(world, 0.5)
    assert pods(world) == []


def test_a_finalizer_keeps_the_last_words_of_a_pod(world: World) -> None:
    start(world, shutdown=60)
    body = pod(terminationGracePeriodSeconds=5)
    body["metadata"]["finalizers"] = ["example.com/keep"]
    make(world, body)
    world.run(world.api().delete(PODS, "default", "a"))
    pass_(world, 10)
    status = get(world).status
    assert (status.phase, status.containerStatuses[0].state.terminated.exitCode) == ("Failed", 137)
    before = world.server.store.revision
    pass_(world, 5)
    assert world.server.store.revision - before <= 2  # leases


def test_a_pod_of_the_same_name_is_another_pod(world: World) -> None:
    start(world, start_delay=1.0)
    addresses = set()
    for _ in range(3):
        make(world, pod())
        pass_(world, 1)
        assert get(world).status.phase == "Running"
        addresses.add(get(world).status.podIP)
        world.run(world.api().delete(PODS, "default", "a"))
        world.run(world.loop.idle())
        assert pods(world) == []
    assert len(addresses) == 3


# -- nodes ------------------------------------------------------------------------------------


def test_nodes_register_with_all_a_scheduler_wants_to_know(world: World) -> None:
    start(world, "n1", "n2", "n3", shape=Shape(zones=("a", "b"), labels={"tier": "sim"}))
    found: list[Any] = list(world.run(world.api().list(NODES)).items)
    zones = [node.metadata.labels["topology.kubernetes.io/zone"] for node in found]
    assert zones == ["a", "b", "a"]
    node = found[0]
    assert node.metadata.labels["kubernetes.io/hostname"] == "n1"
    assert node.metadata.labels["tier"] == "sim"
    assert {each.type: each.status for each in node.status.conditions} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert node.status.allocatable["pods"] == "500"
    assert node.status.addresses[0].address == "172.16.0.1"


def renewed(world: World, name: str) -> Any:
    return world.run(world.api().get(LEASES, "kube-node-lease", name)).spec.renewTime


def test_leases_are_renewed_and_a_node_that_failed_is_silent_until_it_recovers(world: World) -> None:
    kubelets = start(world)
    make(world, pod("a", "sleep", "60", restartPolicy="Never"))
    pass_(world, 30)
    last = renewed(world, "n1")
    assert abs((world.now() - last).total_seconds()) <= 10
    kubelets.fail("n1")
    pass_(world, 100)
    assert renewed(world, "n1") == last
    assert (world.now() - renewed(world, "n2")).total_seconds() <= 10
    assert get(world).status.phase == "Running"
    kubelets.recover("n1")
    pass_(world, 10)
    assert renewed(world, "n1") > last
    assert get(world).status.phase == "Succeeded"


def test_somebody_else_can_ask_a_node_to_fail_and_to_recover(world: World) -> None:
    start(world)

    def ask(state: str | None) -> None:
        patch = {"metadata": {"annotations": {STATE: state}}}
        world.run(world.api().patch(NODES, "", "n1", patch))
        world.run(world.loop.idle())

    ask("failed")
    make(world, pod())
    pass_(world, 60)
    assert get(world).status.phase == "Pending"
    ask(None)
    assert get(world).status.phase == "Running"


def test_what_another_says_of_a_node_that_is_well_is_put_right(world: World) -> None:
    start(world)
    node: Any = world.run(world.api().get(NODES, "", "n1"))
    unknown = {
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
    }
    strategic = "application/strategic-merge-patch+json"
    patch = world.api().patch(NODES, "", "n1", unknown, content_type=strategic, subresource="status")
    world.run(patch)
    world.run(world.loop.idle())
    after: Any = world.run(world.api().get(NODES, "", "n1"))
    assert after.metadata.resourceVersion != node.metadata.resourceVersion
    ready = next(each for each in after.status.conditions if each.type == "Ready")
    assert (ready.status, ready.reason) == ("True", "KubeletReady")


def test_a_reboot_restarts_what_may_be_and_fails_the_rest(world: World) -> None:
    start(world, reboot=30.0)
    make(world, pod("always"))
    make(world, pod("never", restartPolicy="Never"))
    boot = world.run(world.api().get(NODES, "", "n1")).status.nodeInfo.bootID
    world.run(world.api().patch(NODES, "", "n1", {"metadata": {"annotations": {STATE: "rebooting"}}}))
    pass_(world, 29)
    assert get(world, "never").status.phase == "Running"
    pass_(world, 2)
    assert get(world, "never").status.phase == "Failed"
    status = get(world, "always").status
    assert (status.phase, status.containerStatuses[0].restartCount) == ("Running", 1)
    assert status.containerStatuses[0].lastState.terminated.exitCode == 255
    node: Any = world.run(world.api().get(NODES, "", "n1"))
    assert node.status.nodeInfo.bootID != boot
    assert STATE not in node.metadata.annotations


def test_kubelets_that_come_later_take_over_what_runs(world: World) -> None:
    kubelets = Kubelets(world.api("kubelets"), world, ("n1",))
    task = world.spawn(kubelets.run())
    make(world, pod("job", "sleep", "100", restartPolicy="Never"))
    make(world, pod("web"))
    pass_(world, 50)
    task.cancel()
    pass_(world, 1)
    before = get(world, "web")
    start(world, "n1")
    make(world, pod("more"))
    assert get(world, "web") == before
    assert len({each.status.podIP for each in pods(world)}) == 3
    pass_(world, 48.5)
    assert get(world, "job").status.phase == "Running"
    pass_(world, 1)
    assert get(world, "job").status.phase == "Succeeded"


class Counted(LocalApi):
    """Counts the writes."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server, User("kubelets"))
        self.asked: Counter[str] = Counter()

    async def update(self, kind: Kind[Any], namespace: str, name: str, body: object) -> Any:
        self.asked[kind.plural] += 1
        return await super().update(kind, namespace, name, body)

    async def update_status(self, kind: Kind[Any], namespace: str, name: str, body: object) -> Any:
        self.asked[f"{kind.plural}/status"] += 1
        return await super().update_status(kind, namespace, name, body)


def test_an_idle_day_costs_a_lease_and_a_status_for_each_node(world: World) -> None:
    api = Counted(world)
    kubelets = Kubelets(api, world, ("n1", "n2"))
    world.spawn(kubelets.run())
    make(world, pod())
    pass_(world, 86400)
    assert api.asked == {"leases": 2, "nodes/status": 2, "pods/status": 1}


def test_where_requests_may_fail_every_beat_is_tried(world: World) -> None:
    api = Counted(world)
    api.capabilities = REMOTE
    world.spawn(Kubelets(api, world, ("n1", "n2"), settings=KubeletSettings(lease_interval=60.0)).run())
    pass_(world, 86400)
    assert api.asked == {"leases": 2 * 1440, "nodes/status": 2 * 288}
