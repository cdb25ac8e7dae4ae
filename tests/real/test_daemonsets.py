"""DaemonSets on a real API server: steersman and kube-controller-manager leave the same objects and events.

Each controller has just its bootstrap rights, and each manager a plane of its own. Nodes and scheduler are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.kinds import NAMESPACES, PODS, SERVICEACCOUNTS, Pod
from steersman.api.kinds.daemonsets import DAEMONSETS, DaemonSet
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.revisions import CONTROLLERREVISIONS
from steersman.api.scheme import Kind
from steersman.controllers.daemonset.template import target_node
from steersman.explore.normalize import Document
from steersman.sim.kubelet import Kubelets
from steersman.sim.scheduler import Scheduler
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import beside, follow

REFERENCE: Binary = "kube-controller-manager"
KINDS: tuple[Kind[Any], ...] = (DAEMONSETS, CONTROLLERREVISIONS, PODS)
NAMES = ("n1", "n2", "n3", "n4")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CLOSED = {"key": "example.com/closed", "effect": "NoSchedule"}
CLEARED = {"key": "example.com/cleared", "effect": "NoExecute"}


def daemonset(name: str, pod: Document | None = None, **spec: Any) -> Document:
    container = {"name": "main", "image": "example/app:1", "args": ["a<b>&c"]}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **(pod or {})},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "annotations": {"example/note": f"about <{name}> & its kin"}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def rolling(unavailable: Any, surge: Any = 0) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}


def term(key: str, *values: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


HARDY = {
    "hostNetwork": True,
    "tolerations": [
        {"operator": "Exists"},
        {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        },
    ],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term("disk", "ssd"), term("disk", "nvme")]},
            PREFERRED: [{"weight": 1, "preference": term("zone", "a")}],
        }
    },
}
STORY = (
    daemonset("plain"),
    daemonset("rolled", updateStrategy=rolling(1), revisionHistoryLimit=1),
    daemonset("shared", updateStrategy=rolling("50%"), minReadySeconds=1),
    # Without minReadySeconds: upstream wakes up for a surging pod that has been ready for long enough only where no
    # earlier wake-up of its set is due, and forgets it otherwise.
    daemonset("surging", updateStrategy=rolling(0, "50%")),
    daemonset("manual", updateStrategy={"type": "OnDelete"}, revisionHistoryLimit=0),
    daemonset("picky", {"nodeSelector": {"disk": "ssd"}}),
    daemonset("hardy", HARDY),
    daemonset("named", {"nodeName": "n2"}),
    daemonset("nowhere", {"nodeSelector": {"disk": "tape"}}),
    daemonset("parted"),
)


def settled(desired: int, **more: int) -> Callable[[DaemonSet], bool]:
    """Whether so many nodes have a pod of the newest template that serves, or what ``more`` says."""

    def met(found: DaemonSet) -> bool:
        status = found.status
        numbers = {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": desired,
            "updatedNumberScheduled": desired,
            "numberAvailable": desired,
            "numberMisscheduled": 0,
            **more,
        }
        seen = status.observedGeneration == found.metadata.generation
        return seen and all(getattr(status, name) == number for name, number in numbers.items())

    return met


class Story:
    """What is done to the DaemonSets and to their nodes, each step after the one before has come to its end."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    async def until(self, name: str, ready: Callable[[DaemonSet], bool]) -> None:
        await self.stage.until(DAEMONSETS, name, ready)

    async def roll(self, name: str, image: str) -> None:
        container = {"name": "main", "image": image}
        await self.stage.patch(
            DAEMONSETS, name, {"spec": {"template": {"spec": {"containers": [container]}}}}
        )

    async def taint(self, node: str, *taints: Document) -> None:
        await self.stage.patch(NODES, node, {"spec": {"taints": list(taints) or None}})

    async def pods(self, name: str) -> list[Pod]:
        """The pods of a DaemonSet that stay, by the nodes they are for."""
        page = await self.stage.api.list(PODS, self.stage.namespace, label_selector=f"app={name}")
        staying = (pod for pod in page.items if pod.metadata.deletionTimestamp is None)
        return sorted(staying, key=target_node)

    async def begin(self) -> None:
        """Four nodes: one has a fast disk, on one nothing new is to start, one is not there yet."""
        await self._add("n1", disk="ssd", zone="a")
        await self._add("n2", zone="b")
        await self._add("n3", CLOSED, disk="nvme", zone="b")

    async def _add(self, name: str, *taints: Document, **labels: str) -> None:
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        await self.stage.create(NODES, {**document, "status": {"allocatable": room}})
        await self.taint(name, *taints)  # admission has put one on it, until somebody finds it ready

    async def tell(self) -> None:
        async with beside(Scheduler(self.stage.api, RealClock()).run()):
            await self.stage.create(DAEMONSETS, *STORY)
            await self._all(2, picky=1, named=1)
            await self._each()
            await self._move_nodes()
            await self.stage.quiet()

    async def _all(self, desired: int, old: int = 0, **others: int) -> None:
        """Wait until every DaemonSet is settled on as many nodes; ``old`` of the pods by hand are to be old."""
        for document in STORY:
            name = document["metadata"]["name"]
            wanted = {"nowhere": 0, **others}.get(name, desired)
            more = {"updatedNumberScheduled": wanted - old} if name == "manual" else {}
            await self.until(name, settled(wanted, **more))

    async def _each(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for part in (
                self._roll,
                self._share,
                self._surge,
                self._by_hand,
                self._fail,
                self._part,
                self._let_go,
            ):
                tasks.create_task(part())

    async def _roll(self) -> None:
        """To a second template and a third, and back to the second."""
        for image in ("example/app:2", "example/app:3", "example/app:2"):
            await self.roll("rolled", image)
            await self.until("rolled", settled(2))

    async def _share(self) -> None:
        await self.roll("shared", "example/app:2")
        await self.until("shared", settled(2))

    async def _surge(self) -> None:
        await self.roll("surging", "example/app:2")
        await self.until("surging", settled(2))

    async def _by_hand(self) -> None:
        """Pods of the old template stay until somebody deletes one."""
        await self.roll("manual", "example/app:2")
        await self.until("manual", settled(2, updatedNumberScheduled=0))
        first = (await self.pods("manual"))[0]
        await self.stage.api.delete(PODS, self.stage.namespace, first.metadata.name)
        await self.until("manual", settled(2, updatedNumberScheduled=1))

    async def _fail(self) -> None:
        """Of pods that nobody schedules one fails and one succeeds; each is replaced at once. Then all of it goes."""
        await self.stage.create(DAEMONSETS, daemonset("waiting", {"schedulerName": "nobody"}))
        await self.until("waiting", settled(2, numberAvailable=0))
        before = await self.pods("waiting")
        for pod, phase in zip(before, ("Failed", "Succeeded"), strict=True):
            await self.stage.patch(PODS, pod.metadata.name, {"status": {"phase": phase}}, "status")
        await self.replaced("waiting", before, 2)
        last = await self.pods("waiting")
        await self.stage.api.delete(DAEMONSETS, self.stage.namespace, "waiting")
        for pod in last:
            await self.stage.gone(PODS, pod.metadata.name)

    async def replaced(self, name: str, before: list[Pod], count: int) -> None:
        """Wait until so many pods have come that were not there before."""
        known = {pod.metadata.name for pod in before}
        fresh: set[str] = set()
        async for _, pod in follow(self.stage.api, PODS, self.stage.namespace):
            if pod.metadata.labels.get("app") == name and pod.metadata.name not in known:
                fresh.add(pod.metadata.name)
                if len(fresh) == count:
                    return

    async def _part(self) -> None:
        """One that is deleted leaves pods and history behind; the next of its name takes both."""
        await self.stage.api.delete(DAEMONSETS, self.stage.namespace, "parted", propagation="Orphan")
        await self.stage.gone(DAEMONSETS, "parted")
        await self.stage.create(DAEMONSETS, daemonset("parted"))
        await self.until("parted", settled(2))

    async def _let_go(self) -> None:
        """A pod whose label is changed is let go, and another takes its place."""
        first = (await self.pods("plain"))[0]
        change = {"metadata": {"labels": {"app": "free"}}}
        await self.stage.patch(PODS, first.metadata.name, change)
        await self.stage.until(PODS, first.metadata.name, lambda pod: not pod.metadata.ownerReferences)
        await self.until("plain", settled(2))

    async def _move_nodes(self) -> None:
        """One opens, one is cleared, one comes, and one gets another disk."""
        await self.taint("n3")
        await self._all(3, old=1, hardy=2, picky=1, named=1)
        await self.taint("n2", CLEARED)
        await self._all(2, hardy=2, picky=1, named=0)
        await self._add("n4", disk="nvme")
        await self._all(3, hardy=3, picky=1, named=0)
        await self.stage.patch(NODES, "n4", {"metadata": {"labels": {"disk": "ssd"}}})
        await self._all(3, hardy=3, picky=2, named=0)


@pytest.fixture(scope="module")
def ends(both: Callable[..., dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    return both(
        lambda stage: Story(stage).tell(),
        "daemons",
        controllers=("daemonset-controller", "garbage-collector-controller"),
        kinds=KINDS,
        nodes=NAMES,
        before=lambda stage: Story(stage).begin(),
    )


def numbers(revisions: dict[str, Any], of: str) -> Iterable[int]:
    return sorted(one["revision"] for name, one in revisions.items() if name.startswith(f"{of}@"))


def test_every_daemonset_comes_to_its_end_with_just_the_rights_it_has(
    ends: dict[str, dict[str, Any]],
) -> None:
    ours = ends["steersman"]
    assert sorted(pod["spec"]["nodeName"] for pod in ours["pods"]["plain-*"]) == ["n1", "n1", "n3", "n4"]
    assert sorted(pod["spec"]["nodeName"] for pod in ours["pods"]["picky-*"]) == ["n1", "n4"]
    assert "nowhere-*" not in ours["pods"]
    assert numbers(ours["controllerrevisions"], "rolled") == [3, 4]
    assert numbers(ours["controllerrevisions"], "manual") == [2], "no pod is of the first any more"
    assert numbers(ours["controllerrevisions"], "parted") == [1]
    reasons = {event["reason"] for event in ours["events"] if event["about"].startswith("DaemonSet/")}
    assert reasons == {
        "SuccessfulCreate",
        "SuccessfulDelete",
        "FailedDaemonPod",
        "SucceededDaemonPod",
    }


@pytest.mark.parametrize("plural", [*(kind.plural for kind in KINDS), "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], plural: str, alike: Callable[..., None]
) -> None:
    alike(ends, plural)


# -- from one manager to the other ----------------------------------------------------------------


TURNS: tuple[Binary, ...] = ("steersman", REFERENCE, "steersman")
FLAGS = (
    "--controllers=daemonset-controller",
    "--use-service-account-credentials=true",
    "--leader-elect=false",
)


async def handed_over(plane: RealPlane, stage: type[Any]) -> None:
    """Each manager in turn has the same DaemonSet; the next one changes nothing of what it finds."""
    async with plane.connect() as api:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "daemons"}}
        await api.create(NAMESPACES, "", space)
        here = stage(plane, api, "steersman", "daemons")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await here.create(SERVICEACCOUNTS, account)
        story = Story(here)
        await story.begin()
        kubelets = Kubelets(api, RealClock(), NAMES, register=False)
        async with beside(kubelets.run(), Scheduler(api, RealClock()).run()):
            await here.create(DAEMONSETS, daemonset("hardy", HARDY))
            for turn, binary in enumerate(TURNS):
                manager = plane.manager(*FLAGS, binary=binary)
                await story.until("hardy", settled(2))
                if turn:
                    await _nothing_rolls(story, revisions=turn + 1)
                await story.roll("hardy", f"example/next:{turn}")
                await story.until("hardy", settled(2))
                manager.stop()


async def _nothing_rolls(story: Story, revisions: int) -> None:
    """Delete a pod: the new manager makes another of the revision it has found, and leaves the rest alone."""
    first, second = await story.pods("hardy")
    await story.stage.api.delete(PODS, "daemons", first.metadata.name)
    await story.replaced("hardy", [first, second], 1)
    await story.until("hardy", settled(2))
    third = next(pod for pod in await story.pods("hardy") if pod.metadata.uid != second.metadata.uid)
    page = await story.stage.api.list(CONTROLLERREVISIONS, "daemons")
    assert sorted(one.revision for one in page.items) == list(range(1, revisions + 1))
    assert third.metadata.labels == second.metadata.labels


@pytest.mark.reference
def test_a_daemonset_goes_from_one_manager_to_the_other_and_back(stage: type[Any]) -> None:
    with RealPlane.start() as plane:
        asyncio.run(handed_over(plane, stage))
