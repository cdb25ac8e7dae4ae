"""Events of simulated kubelets: what a person reads at the end of ``kubectl describe pod``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.generated import load
from steersman.api.kinds import PODS
from steersman.runtime.event_recorder import QUEUED
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.kubelet.kubelet_events import BURST, QPS
from steersman.sim.kubelet.node import STATE
from steersman.sim.world import World

CONFIG_MAPS = load("", "v1", "ConfigMap")
SECRETS = load("", "v1", "Secret")
NODES = load("", "v1", "Node")
EVENTS = load("", "v1", "Event")
NOTE = "sim.steersman.dev/"
PRESENT = 'Container image "app:1" already present on machine and can be accessed by the pod'
PULLED = 'Successfully pulled image "app:1" in 0s (0s including waiting). Image size: 0 bytes.'


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


def start(world: World, *names: str, **settings: Any) -> None:
    kubelets = Kubelets(world.api("kubelets"), world, names or ("n1",), settings=KubeletSettings(**settings))
    world.spawn(kubelets.run(), name="kubelets")
    world.run(world.settle())


def make(world: World, name: str = "a", notes: dict[str, str] | None = None, **spec: Any) -> None:
    main: dict[str, Any] = {"name": "main", "image": "app:1", **spec.pop("main", {})}
    annotations = {NOTE + key: value for key, value in (notes or {}).items()}
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [main], **spec},
    }
    world.run(world.api().create(PODS, "default", body))
    world.run(world.loop.idle())


def get(world: World, name: str = "a") -> Any:
    return world.run(world.api().get(PODS, "default", name))


def waiting(world: World, name: str = "a") -> tuple[str, str]:
    state = get(world, name).status.containerStatuses[0].state.waiting
    return state.reason, state.message


def events(world: World, name: str = "a") -> list[Any]:
    found: list[Any] = list(world.run(world.api().list(EVENTS, "default")).items)
    mine = [each for each in found if each.involvedObject.name == name]
    return sorted(mine, key=lambda each: int(each.metadata.name.rpartition(".")[2], 16))


def told(world: World, name: str = "a") -> list[tuple[str, str, str]]:
    return [(each.type, each.reason, each.message) for each in events(world, name)]


def reasons(world: World, name: str = "a") -> list[str]:
    return [each.reason for each in events(world, name)]


# -- what happens -----------------------------------------------------------------------------


def test_a_pod_that_starts_has_the_events_of_its_image_and_its_container(world: World) -> None:
    start(world)
    make(world)
    make(world, "b")
    assert told(world) == [
        ("Normal", "Pulling", 'Pulling image "app:1"'),
        ("Normal", "Pulled", PULLED),
        ("Normal", "Created", "Container created"),
        ("Normal", "Started", "Container started"),
    ]
    assert told(world, "b")[0] == ("Normal", "Pulled", PRESENT), "the node has the image by then"
    first = events(world)[0]
    assert (first.source.component, first.source.host) == ("kubelet", "n1")
    assert (first.reportingComponent, first.reportingInstance) == ("kubelet", "n1")
    about = first.involvedObject
    assert (about.kind, about.name, about.fieldPath) == ("Pod", "a", "spec.containers{main}")


def test_an_image_that_is_always_pulled_is_pulled_again(world: World) -> None:
    start(world)
    make(world)
    make(world, "b", main={"imagePullPolicy": "Always"})
    assert reasons(world, "b") == ["Pulling", "Pulled", "Created", "Started"]


def test_an_image_that_cannot_be_pulled_fails_and_backs_off(world: World) -> None:
    start(world)
    make(world, main={"image": "bad:1"})
    world.run(world.advance(600))
    error = 'failed to pull image "bad:1": not found'
    assert told(world) == [
        ("Normal", "Pulling", 'Pulling image "bad:1"'),
        ("Warning", "Failed", f'Failed to pull image "bad:1": {error}'),
        ("Warning", "Failed", "Error: ErrImagePull"),
        ("Normal", "BackOff", 'Back-off pulling image "bad:1"'),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
    ]
    message = f'Back-off pulling image "bad:1": ErrImagePull: {error}'
    assert waiting(world) == ("ImagePullBackOff", message)


def test_a_crash_loop_counts_its_starts_and_back_offs(world: World) -> None:
    start(world)
    make(world, main={"command": ["sh", "-c", "sleep 1; exit 3"]})
    world.run(world.advance(100))
    uid = get(world).metadata.uid
    found = {each.reason: each for each in events(world)}
    assert found["BackOff"].message == f"Back-off restarting failed container main in pod a_default({uid})"
    assert found["BackOff"].type == "Warning"
    restarts = get(world).status.containerStatuses[0].restartCount
    assert (found["Started"].count, found["Created"].count) == (restarts + 1, restarts + 1)
    assert found["BackOff"].count == restarts
    assert waiting(world)[1] == f"back-off 1m20s restarting failed container=main pod=a_default({uid})"


def test_a_pod_that_is_deleted_is_killed_and_so_is_a_container_of_another_image(world: World) -> None:
    start(world)
    make(world)
    change = [{"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}]
    world.run(world.api().patch(PODS, "default", "a", change, content_type="application/json-patch+json"))
    world.run(world.loop.idle())
    world.run(world.api().delete(PODS, "default", "a"))
    world.run(world.loop.idle())
    killed = [message for _, reason, message in told(world) if reason == "Killing"]
    assert killed == ["Container main definition changed, will be restarted", "Stopping container main"]


def test_a_sidecar_is_killed_once_the_work_is_done(world: World) -> None:
    start(world)
    side = {"name": "side", "image": "proxy:1", "restartPolicy": "Always"}
    make(world, main={"command": ["sleep", "5"]}, initContainers=[side], restartPolicy="Never")
    world.run(world.advance(5))
    assert get(world).status.phase == "Succeeded"
    killed = [each for each in events(world) if each.reason == "Killing"]
    assert [(each.message, each.involvedObject.fieldPath) for each in killed] == [
        ("Stopping container side", "spec.initContainers{side}")
    ]


@pytest.mark.parametrize(
    ("probe", "output"),
    [
        ({"httpGet": {"port": 80}}, "HTTP probe failed with statuscode: 503"),
        ({"tcpSocket": {"port": 80}}, "dial tcp 10.244.0.1:80: connect: connection refused"),
        ({"grpc": {"port": 80}}, 'service unhealthy (responded with "NOT_SERVING")'),
        ({"exec": {"command": ["x"]}}, ""),
    ],
)
def test_a_readiness_probe_that_fails_is_unhealthy(world: World, probe: dict[str, Any], output: str) -> None:
    start(world)
    make(world, main={"readinessProbe": {**probe, "initialDelaySeconds": 5}})
    world.run(world.advance(60))
    assert "Unhealthy" not in reasons(world)
    note = {"metadata": {"annotations": {NOTE + "ready": "false"}}}
    world.run(world.api().patch(PODS, "default", "a", note))
    world.run(world.loop.idle())
    assert told(world)[-1] == ("Warning", "Unhealthy", f"Readiness probe failed: {output}")


def test_a_readiness_probe_fails_after_its_initial_delay_until_the_pod_is_ready(world: World) -> None:
    start(world, ready_delay=30.0)
    make(world, main={"readinessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 5}})
    world.run(world.advance(4))
    assert "Unhealthy" not in reasons(world)
    world.run(world.advance(1))
    assert reasons(world).count("Unhealthy") == 1
    world.run(world.advance(300))
    assert reasons(world).count("Unhealthy") == 1


def test_a_deadline_and_a_reboot_have_events(world: World) -> None:
    start(world)
    make(world, activeDeadlineSeconds=20)
    make(world, "b")
    world.run(world.advance(20))
    deadline = "Pod was active on the node longer than the specified deadline"
    assert told(world)[-2:] == [
        ("Normal", "DeadlineExceeded", deadline),
        ("Normal", "Killing", "Stopping container main"),
    ]
    world.run(world.api().patch(NODES, "", "n1", {"metadata": {"annotations": {STATE: "rebooting"}}}))
    world.run(world.advance(60))
    assert ("Warning", "Rebooted", "Node n1 has been rebooted, boot id: n1-1") in told(world, "n1")
    sandbox = "Pod sandbox changed, it will be killed and re-created."
    assert ("Normal", "SandboxChanged", sandbox) in told(world, "b")
    assert get(world, "b").status.containerStatuses[0].restartCount == 1


def test_a_kubelet_that_takes_over_tells_nothing_of_pods_that_run(world: World) -> None:
    first = Kubelets(world.api("kubelets"), world, ("n1",))
    task = world.spawn(first.run(), name="kubelets")
    world.run(world.settle())
    make(world)
    before = events(world)
    task.cancel()
    world.run(world.settle())
    start(world)
    world.run(world.advance(60))
    assert events(world) == before


def test_a_node_writes_as_many_events_as_a_kubelet_does_and_drops_the_rest(world: World) -> None:
    start(world)
    for i in range(400):
        make(world, f"p{i}")
    written = len(world.run(world.api().list(EVENTS, "default")).items)
    assert written == BURST
    world.run(world.advance(10))
    written = len(world.run(world.api().list(EVENTS, "default")).items)
    assert abs(written - BURST - 10 * QPS) <= QPS
    world.run(world.advance(60))
    written = len(world.run(world.api().list(EVENTS, "default")).items)
    assert written <= BURST + QUEUED


def test_a_world_that_rests_writes_no_events(world: World) -> None:
    start(world)
    make(world)
    make(world, "stuck", main={"image": "bad:1"})
    make(world, "unset", main={"envFrom": [{"configMapRef": {"name": "absent"}}]})
    world.run(world.advance(60))
    before = world.server.store.revision
    world.run(world.advance(86_400))
    found = world.run(world.api().list(EVENTS, "default")).items
    assert not [each for each in found if int(each.metadata.resourceVersion) > before]


# -- missing ConfigMaps and Secrets -----------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "absent"}}]}, 'configmap "absent" not found'),
        ({"envFrom": [{"secretRef": {"name": "absent"}}]}, 'secret "absent" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "k"}}}]},
            'configmap "absent" not found',
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "here", "key": "k"}}}]},
            "couldn't find key k in ConfigMap default/here",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "here", "key": "k"}}}]},
            "couldn't find key k in Secret default/here",
        ),
    ],
)
def test_a_container_waits_for_its_configuration(
    world: World, container: dict[str, Any], message: str
) -> None:
    start(world)
    api = world.api()
    for kind in (CONFIG_MAPS, SECRETS):
        world.run(api.create(kind, "default", {"metadata": {"name": "here"}, "data": {}}))
    make(world, main=container)
    world.run(world.advance(60))
    assert waiting(world) == ("CreateContainerConfigError", message)
    assert get(world).status.phase == "Pending"
    assert told(world)[-1] == ("Warning", "Failed", f"Error: {message}")
    assert reasons(world) == ["Pulling", "Pulled", "Failed"]
    for kind in (CONFIG_MAPS, SECRETS):
        world.run(api.create(kind, "default", {"metadata": {"name": "absent"}, "data": {"k": "aGk="}}))
        world.run(api.patch(kind, "default", "here", {"data": {"k": "aGk="}}))
    world.run(world.loop.idle())
    status = get(world).status
    assert (status.phase, status.containerStatuses[0].restartCount) == ("Running", 0)
    assert reasons(world)[-2:] == ["Created", "Started"]


@pytest.mark.parametrize(
    "container",
    [
        {"envFrom": [{"configMapRef": {"name": "absent", "optional": True}}]},
        {"envFrom": [{"secretRef": {"name": "absent", "optional": True}}]},
        {
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k", "optional": True}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ]
        },
    ],
)
def test_optional_configuration_is_not_waited_for(world: World, container: dict[str, Any]) -> None:
    start(world)
    make(world, main=container, imagePullSecrets=[{"name": "absent"}])
    assert get(world).status.phase == "Running"


def test_a_container_that_restarts_waits_for_a_configuration_that_is_gone(world: World) -> None:
    start(world)
    api = world.api()
    world.run(api.create(CONFIG_MAPS, "default", {"metadata": {"name": "c"}}))
    main = {"envFrom": [{"configMapRef": {"name": "c"}}], "command": ["sleep", "30"]}
    make(world, main=main)
    world.run(api.delete(CONFIG_MAPS, "default", "c"))
    world.run(world.advance(29))
    assert get(world).status.phase == "Running"
    world.run(world.advance(2))
    container = get(world).status.containerStatuses[0]
    assert waiting(world) == ("CreateContainerConfigError", 'configmap "c" not found')
    assert (container.lastState.terminated.exitCode, container.restartCount) == (0, 0)
    world.run(api.create(CONFIG_MAPS, "default", {"metadata": {"name": "c"}}))
    world.run(world.loop.idle())
    assert get(world).status.containerStatuses[0].restartCount == 1


def test_a_pod_that_waits_for_its_configuration_can_be_deleted(world: World) -> None:
    start(world)
    make(world, main={"envFrom": [{"configMapRef": {"name": "absent"}}]})
    world.run(world.api().delete(PODS, "default", "a"))
    world.run(world.settle())
    assert not world.run(world.api().list(PODS, "default")).items


# -- ephemeral containers and pause -----------------------------------------------------------


def debug(world: World, name: str, **container: Any) -> None:
    added = {"name": name, "image": "busybox", "terminationMessagePolicy": "File", **container}
    body = {"spec": {"ephemeralContainers": [added]}}
    strategic = "application/strategic-merge-patch+json"
    world.run(
        world.api().patch(
            PODS, "default", "a", body, content_type=strategic, subresource="ephemeralcontainers"
        )
    )
    world.run(world.loop.idle())


def test_ephemeral_containers_have_a_status_and_are_not_restarted(world: World) -> None:
    start(world)
    make(world)
    debug(world, "shell", command=["sh"])
    debug(world, "once", command=["sh", "-c", "sleep 5; exit 2"])
    found = {each.name: each.state for each in get(world).status.ephemeralContainerStatuses}
    assert all(state.running is not None for state in found.values())
    world.run(world.advance(60))
    found = {each.name: each.state for each in get(world).status.ephemeralContainerStatuses}
    assert (found["shell"].running is not None, found["once"].terminated.exitCode) == (True, 2)
    assert get(world).status.phase == "Running"
    fields = {each.involvedObject.fieldPath for each in events(world)}
    assert {"spec.ephemeralContainers{shell}", "spec.ephemeralContainers{once}"} < fields


def test_ephemeral_containers_end_with_their_pod_and_outlive_a_kubelet(world: World) -> None:
    task = world.spawn(Kubelets(world.api("kubelets"), world, ("n1",)).run(), name="kubelets")
    world.run(world.settle())
    make(world, main={"command": ["sleep", "100"]}, restartPolicy="Never")
    debug(world, "shell", command=["sh"])
    task.cancel()
    world.run(world.settle())
    start(world)
    assert get(world).status.ephemeralContainerStatuses[0].state.running is not None
    world.run(world.advance(100))
    status = get(world).status
    assert (status.phase, status.ephemeralContainerStatuses[0].state.terminated is None) == (
        "Succeeded",
        False,
    )
    debug(world, "late", command=["sh"])
    assert get(world).status.phase == "Succeeded"


@pytest.mark.parametrize("image", ["pause", "registry.k8s.io/pause:3.10", "localhost:5000/pause@sha256:0"])
def test_an_image_called_pause_runs_forever_even_in_a_job(world: World, image: str) -> None:
    start(world, work=4.0)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    body = {
        "metadata": {"name": "a", "ownerReferences": [owner]},
        "spec": {
            "nodeName": "n1",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image}],
        },
    }
    world.run(world.api().create(PODS, "default", body))
    world.run(world.advance(3600))
    assert get(world).status.phase == "Running"
