"""A shadow beside our own manager, under virtual time: it agrees with a right one, and finds and names a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, cast

import pytest
from msgspec.structs import replace

from steersman.api.kinds import PODS
from steersman.client.read_only import WriteAttempted
from steersman.controllers import CONTROLLERS
from steersman.explore.scenario import Scenario, catalogue, find
from steersman.intent.actions import Action, Delete, Emit, UpdateStatus
from steersman.intent.controller import Controller
from steersman.intent.verdict import Rest, Verdict
from steersman.manager import output
from steersman.testing.cluster import Cluster
from tests.harness.shadows import play, shadow_beside

SCENARIOS = tuple(each.name for each in catalogue())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shadow_agrees_with_a_manager_of_the_same_controllers(name: str) -> None:
    report = play(find(name))
    assert (
        output.document((report.differences, report.late, report.errors), "json")
        == "[\n  [],\n  [],\n  []\n]"
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["rolling-update", "job-indexed", "daemonset-surge", "statefulset-scale"])
def test_it_agrees_in_whatever_order_the_two_run(name: str, seed: int) -> None:
    report = play(find(name), seed)
    assert (report.differences, report.late, report.errors) == ((), (), ()), f"seed {seed}"


# -- wrong managers ---------------------------------------------------------------------------

Decide = Callable[[Any, datetime], Any]


async def idle(seen: object, now: datetime) -> Verdict:
    return Rest("sabotaged")


class Altered:
    """A decision some of whose actions are answered instead of performed."""

    def __init__(self, decision: Any, answer: Callable[[Action[Any]], Any]) -> None:
        self._decision = decision
        self._answer = answer

    def __await__(self) -> Generator[Action[Any], Any, Verdict]:
        script = self._decision.__await__()
        try:
            action = next(script)
            while True:
                answer = self._answer(action)
                action = script.send(answer if answer is not None else (yield action))
        except StopIteration as stop:
            return cast("Verdict", stop.value)


def without_status(decide: Decide) -> Decide:
    """A controller that never writes a status."""
    return lambda seen, now: Altered(
        decide(seen, now), lambda action: action.target if isinstance(action, UpdateStatus) else None
    )


def without_work(decide: Decide) -> Decide:
    """A controller that does nothing."""
    return idle


def with_deletions(decide: Decide) -> Decide:
    """A ReplicaSet controller that deletes a ready pod once more than it should, and says so."""
    done: set[str] = set()

    async def wrong(seen: Any, now: datetime) -> Verdict:
        verdict: Verdict = await decide(seen, now)
        owner = seen.owner
        pods = [pod for pod in seen.owned if pod.status.phase == "Running"]
        if len(pods) == owner.spec.replicas and owner.metadata.uid not in done:
            done.add(owner.metadata.uid)
            await Delete(pods[0])
            await Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pods[0].metadata.name}")
        return verdict

    return wrong


def sabotaged(scenario: Scenario, name: str, how: Callable[[Decide], Decide]) -> tuple[Controller[Any], ...]:
    """The controllers of a scenario with a wrong one among them."""

    def wrong(controller: Controller[Any]) -> Controller[Any]:
        built = controller.configure
        return replace(
            controller,
            decide=how(controller.decide),
            configure=None if built is None else lambda settings: wrong(built(settings)),
        )

    return tuple(wrong(each) if each.name == name else each for each in scenario.selected_controllers)


@pytest.mark.parametrize(
    ("name", "scenario", "how"),
    [
        ("replicaset-controller", "scale-up", without_work),
        ("replicaset-controller", "scale-up", without_status),
        ("deployment-controller", "rolling-update", without_work),
        ("deployment-controller", "rolling-update", without_status),
        ("garbage-collector-controller", "cascade-background", without_work),
        ("job-controller", "job-indexed", without_work),
        ("namespace-controller", "namespace-deleted", without_work),
        ("endpointslice-controller", "endpointslice-scale", without_work),
        ("resourcequota-controller", "quota-usage", without_work),
        ("statefulset-controller", "statefulset-scale", without_work),
        ("ttl-after-finished-controller", "ttl-after-finished", without_work),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_a_wrong_controller_is_found_and_named(
    name: str, scenario: str, how: Callable[[Decide], Decide]
) -> None:
    played = find(scenario)
    report = play(played, acting=sabotaged(played, name, how))
    assert report.exit_code == 2
    assert {each.controller for each in report.differences} == {name}
    assert {each.side for each in report.differences} == {"missing"}


def test_the_same_seed_gives_the_same_report() -> None:
    scenario = find("rolling-update")
    acting = sabotaged(scenario, "deployment-controller", without_status)
    reports = [output.document(play(scenario, 5, acting=acting), "json") for _ in range(2)]
    assert reports[0] == reports[1]


def deployment(replicas: int) -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: web, resources: {{requests: {{cpu: 10m}}}}}}]}}
"""


def test_a_pod_that_our_controller_would_not_delete_is_found_by_the_event_that_tells_of_it() -> None:
    scenario = find("scale-up")
    with Cluster(seed=1, controllers=sabotaged(scenario, "replicaset-controller", with_deletions)) as cluster:
        shadow = shadow_beside(cluster, scenario.selected_controllers)
        cluster.apply(deployment(3))
        cluster.advance(minutes=5)
        report = shadow.report()
    (found,) = report.differences
    assert (found.side, found.controller) == ("extra", "replicaset-controller")
    assert "would not delete it" in found.ours
    assert "Deleted pod: " in found.theirs


QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: "2"}}
"""


def test_a_create_that_the_server_refuses_is_no_difference() -> None:
    with Cluster(seed=1) as cluster:
        shadow = shadow_beside(cluster)
        cluster.apply(QUOTA)
        cluster.apply(deployment(4))
        cluster.advance(minutes=10)
        assert cluster.get("Deployment", "web").status.readyReplicas == 2
        report = shadow.report()
        assert (report.differences, report.late, report.errors) == ((), (), ())
        cluster.patch("ResourceQuota", "few", {"spec": {"hard": {"pods": "9"}}})
        cluster.advance(minutes=30)
        assert cluster.get("Deployment", "web").status.readyReplicas == 4
        assert shadow.report().agreed


def finished_pods(cluster: Cluster, count: int) -> None:
    for number in range(count):
        pod = f"""
apiVersion: v1
kind: Pod
metadata: {{name: done-{number}}}
spec: {{restartPolicy: Never, containers: [{{name: main, image: web}}]}}
"""
        cluster.apply(pod)
        cluster.patch("Pod", f"done-{number}", {"status": {"phase": "Succeeded"}}, subresource="status")
        cluster.advance(seconds=2)


COLLECTOR = "pod-garbage-collector-controller"


def collector(cluster_threshold: int) -> Controller[Any]:
    from steersman.intent.settings import Settings

    (found,) = [each for each in CONTROLLERS if each.name == COLLECTOR]
    built = found.configured(Settings({"terminated-pod-gc-threshold": cluster_threshold}))
    assert built is not None
    return built


@pytest.mark.parametrize(("theirs", "ours", "side"), [(5, 100, "extra"), (100, 5, "missing")])
def test_another_threshold_of_the_pod_garbage_collector_is_found_and_named(
    theirs: int, ours: int, side: str
) -> None:
    with Cluster(seed=1, nodes=0, controllers=(collector(theirs),)) as cluster:
        shadow = shadow_beside(cluster, (collector(ours),))
        finished_pods(cluster, 12)
        cluster.advance(minutes=2)
        report = shadow.report()
    assert {(each.controller, each.side) for each in report.differences} == {(COLLECTOR, side)}
    assert len(report.differences) == 7


def test_a_deleted_pod_that_a_finalizer_holds_is_no_difference() -> None:
    with Cluster(seed=1, nodes=0, controllers=(collector(2),)) as cluster:
        shadow = shadow_beside(cluster)
        finished_pods(cluster, 3)
        cluster.patch("Pod", "done-0", {"metadata": {"finalizers": ["example.com/held"]}})
        cluster.advance(minutes=5)
        assert cluster.get("Pod", "done-0").metadata.deletionTimestamp is not None
        assert shadow.report().agreed


def test_pods_that_a_user_deletes_are_counted_and_are_no_difference() -> None:
    with Cluster(seed=1, nodes=0, controllers=(collector(100),)) as cluster:
        shadow = shadow_beside(cluster)
        finished_pods(cluster, 6)
        for number in (5, 3, 2):
            cluster.delete("Pod", f"done-{number}")
        cluster.advance(minutes=2)
        report = shadow.report()
    assert report.agreed
    assert report.unattributed == {"Pod (Succeeded)": 3}


def test_a_shadow_cannot_write() -> None:
    with Cluster(seed=1) as cluster:
        shadow = shadow_beside(cluster)
        cluster.settle()

        async def write() -> None:
            await shadow.api.delete_collection(PODS, "default")

        with pytest.raises(WriteAttempted, match="deletecollection pods is a write"):
            cluster.world.run(write())
        assert [each.where for each in shadow.report().errors] == ["shadow"]
