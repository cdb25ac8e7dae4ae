"""Rounds of daemonset-controller in upstream's tables, each with both update strategies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, Forbidden, ServerError
from steersman.api.kinds import NewPod, Pod
from steersman.api.kinds.daemonsets import DaemonSet, DaemonSetUpdateStrategy
from steersman.api.kinds.nodes import Node, Taint
from steersman.api.scheme import Key
from steersman.controllers.daemonset import controller, decide, enqueue_for_node
from steersman.intent.actions import Action, Create, Delete, UpdateStatus
from steersman.intent.controller import Change
from steersman.testing.decision_driver import USUAL, Answers, StaticCaches, walk
from tests.harness.daemonsets import NOW, SPEC, daemonset, node, pod, revision

KEY = Key("default", "agent")
ON_DELETE = DaemonSetUpdateStrategy(type="OnDelete")
both_strategies = pytest.mark.parametrize("on_delete", [False, True], ids=["RollingUpdate", "OnDelete"])


def made(spec: dict[str, Any], on_delete: bool, **more: Any) -> DaemonSet:
    """A DaemonSet whose pods have this spec, besides a container."""
    raw = msgspec.Raw(msgspec.json.encode({**msgspec.json.decode(SPEC), **spec}))
    one = daemonset(raw, **more)
    return replace(one, spec=replace(one.spec, updateStrategy=ON_DELETE)) if on_delete else one


def look(
    of: DaemonSet, *objects: Any, answers: Answers | None = None, recorded: list[Action[Any]] | None = None
) -> list[Action[Any]]:
    seen = controller.see(StaticCaches(controller, of, *objects), KEY)
    assert seen is not None
    actions, _ = walk(decide(seen, NOW), answers, recorded=recorded)
    return actions


def created(actions: Iterable[Action[Any]]) -> list[NewPod]:
    return [one.body for one in actions if isinstance(one, Create) and isinstance(one.body, NewPod)]


def deleted(actions: Iterable[Action[Any]]) -> list[Delete]:
    return [one for one in actions if isinstance(one, Delete)]


# -- which nodes get a pod ----------------------------------------------------------------------

COLOR = {"color": "blue"}
NODES = (*(node(f"node-{n}") for n in range(4)), *(node(f"node-{n}", **COLOR) for n in range(4, 7)))
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "color", "operator": "In", "values": ["blue"]}]}
            ]
        }
    }
}
BUSY = {"resources": {"requests": {"memory": "75M", "cpu": "75m"}}, "name": "c", "image": "i"}
PORT = {"name": "c", "image": "i", "ports": [{"hostPort": 666}]}


def tainted(*taints: tuple[str, str]) -> Node:
    return node("n1", *(Taint(key=key, effect=effect) for key, effect in taints))


TOLERATES = {"tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]}
OF_NODE = "node.kubernetes.io/"
PRESSURES = [(f"{OF_NODE}{kind}-pressure", "NoSchedule") for kind in ("disk", "memory", "pid")]
ROWS: dict[str, tuple[dict[str, Any], tuple[Any, ...], int, int]] = {
    # spec, nodes and pods: pods created and deleted
    "no nodes": ({}, (), 0, 0),
    "one node": ({}, (node(),), 1, 0),
    "five nodes": ({}, tuple(node(f"node-{n}") for n in range(5)), 5, 0),
    "resources are the scheduler's": ({"containers": [BUSY]}, (node(),), 1, 0),
    "a running pod stays however full its node": ({"containers": [BUSY]}, (node(), pod()), 0, 0),
    "a port its own pod has": ({"containers": [PORT]}, (node(), pod()), 0, 0),
    "a port another pod may have": ({"containers": [PORT]}, (node(),), 1, 0),
    "a node without network": (
        {"hostNetwork": True},
        (tainted((f"{OF_NODE}network-unavailable", "NoSchedule")),),
        1,
        0,
    ),
    "a node selector": ({"nodeSelector": COLOR}, NODES, 3, 0),
    "a node selector of no node": ({"nodeSelector": {"color": "red"}}, NODES, 0, 0),
    "a node name": ({"nodeName": "node-0"}, NODES, 1, 0),
    "a node name of no node": ({"nodeName": "node-10"}, NODES, 0, 0),
    "a node name and a selector": ({"nodeName": "node-6", "nodeSelector": COLOR}, NODES, 1, 0),
    "a node name against a selector": ({"nodeName": "node-0", "nodeSelector": COLOR}, NODES, 0, 0),
    "node affinity": ({"affinity": AFFINITY}, NODES, 3, 0),
    "a pod stays where NoSchedule came": ({}, (tainted(("dedicated", "NoSchedule")), pod()), 0, 0),
    "a pod goes where NoExecute came": ({}, (tainted(("dedicated", "NoExecute")), pod()), 0, 1),
    "a taint that is not tolerated": ({}, (tainted(("dedicated", "NoSchedule")),), 0, 0),
    "a taint that is tolerated": (TOLERATES, (tainted(("dedicated", "NoSchedule")),), 1, 0),
    "a toleration without a taint": (TOLERATES, (node(),), 1, 0),
    "a node that is not ready": ({}, (tainted((f"{OF_NODE}not-ready", "NoExecute")),), 1, 0),
    "a node that is unreachable": ({}, (tainted((f"{OF_NODE}unreachable", "NoExecute")),), 1, 0),
    "a node under pressure": ({}, (tainted(*PRESSURES),), 1, 0),
    "a pod that terminates": ({}, (node(), pod(going=True)), 0, 0),
}


@both_strategies
@pytest.mark.parametrize("row", ROWS)
def test_nodes_get_pods_as_the_template_and_their_taints_say(row: str, on_delete: bool) -> None:
    spec, objects, creates, deletes = ROWS[row]
    of = made(spec, on_delete)
    current = replace(revision(1), data=revision(1, spec=of.spec.template.spec).data)
    actions = look(of, current, *objects)
    assert (len(created(actions)), len(deleted(actions))) == (creates, deletes)


@both_strategies
def test_a_pod_is_bound_by_the_scheduler_to_the_node_of_its_affinity(on_delete: bool) -> None:
    bodies = created(look(made({}, on_delete), *(node(f"node-{n}") for n in range(5))))
    for number, body in enumerate(bodies):
        spec = msgspec.json.decode(body.spec)
        assert "nodeName" not in spec
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (field,) = terms["nodeSelectorTerms"][0]["matchFields"]
        assert field == {"key": "metadata.name", "operator": "In", "values": [f"node-{number}"]}


# -- which pods count ---------------------------------------------------------------------------


def of_another(one: Pod) -> Pod:
    owner = replace(one.metadata.ownerReferences[0], name="other", uid="other")
    return replace(one, metadata=replace(one.metadata, ownerReferences=(owner,)))


@both_strategies
@pytest.mark.parametrize(
    ("one", "counts"),
    [
        pytest.param(pod(), True, id="owned"),
        pytest.param(pod(owned=False), True, id="an orphan it selects"),
        pytest.param(pod(phase="Succeeded"), True, id="owned, succeeded"),
        pytest.param(pod(phase="Failed"), True, id="owned, failed"),
        pytest.param(pod(app="other"), False, id="owned, of other labels"),
        pytest.param(pod(app="other", owned=False), False, id="an orphan of other labels"),
        pytest.param(of_another(pod()), False, id="another's"),
        pytest.param(pod(phase="Succeeded", going=True), False, id="succeeded and terminating"),
        pytest.param(pod(phase="Failed", going=True), False, id="failed and terminating"),
    ],
)
def test_a_node_has_a_pod_or_gets_one(one: Pod, counts: bool, on_delete: bool) -> None:
    actions = look(made({}, on_delete), revision(1), node(), one)
    assert len(created(actions)) == (not counts)


# -- errors -------------------------------------------------------------------------------------

FAILED, STATUS = ServerError("sync error"), Conflict("status error")


@both_strategies
@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({Create: FAILED}, ServerError),
        ({UpdateStatus: STATUS}, Conflict),
        ({Create: FAILED, UpdateStatus: STATUS}, ServerError),
    ],
    ids=["sync", "status", "both"],
)
def test_the_failure_of_a_round_comes_before_that_of_its_status(
    answers: dict[type[Action[Any]], Any], error: type[ApiError], on_delete: bool
) -> None:
    actions: list[Action[Any]] = []
    present = () if Create in answers else (pod(),)
    with pytest.raises(error):
        look(made({}, on_delete), revision(1), node(), *present, answers=answers, recorded=actions)
    assert sum(isinstance(action, UpdateStatus) for action in actions) == 1


@both_strategies
def test_a_quota_of_ten_costs_few_requests(on_delete: bool) -> None:
    left = iter(range(10))

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Create) and isinstance(action.body, NewPod):
            return Forbidden("exceeded quota") if next(left, None) is None else USUAL
        return USUAL

    actions: list[Action[Any]] = []
    nodes = [node(f"node-{n}") for n in range(100)]
    with pytest.raises(Forbidden):
        look(made({}, on_delete), revision(1), *nodes, answers=answer, recorded=actions)
    assert len(created(actions)) == 1 + 2 + 4 + 8
    (status,) = (one.status for one in actions if isinstance(one, UpdateStatus))
    assert status.desiredNumberScheduled == 100  # type: ignore[attr-defined]


# -- which changes of nodes matter --------------------------------------------------------------

PICKY = {"nodeSelector": COLOR}


@both_strategies
@pytest.mark.parametrize(
    ("spec", "old", "new", "enqueues"),
    [
        pytest.param(PICKY, node(), node(), False, id="nothing changed"),
        pytest.param(PICKY, node(), node(**COLOR), True, id="labels"),
        pytest.param({}, tainted(("dedicated", "NoSchedule")), node(), True, id="taints"),
        pytest.param(
            {"containers": [BUSY]}, node(), replace(node()), False, id="allocatable, which is the scheduler's"
        ),
        pytest.param(PICKY, node(**COLOR), node(), True, id="labels, away"),
        pytest.param(PICKY, None, node(**COLOR), True, id="a node that is selected"),
        # differs: upstream looks at every DaemonSet when a node comes.
        pytest.param(PICKY, None, node(), False, id="a node that is not selected"),
    ],
)
def test_a_daemonset_is_looked_at_when_a_node_becomes_fit_or_unfit(
    spec: dict[str, Any], old: Node | None, new: Node, enqueues: bool, on_delete: bool
) -> None:
    caches = StaticCaches(controller, made(spec, on_delete))
    assert list(enqueue_for_node(caches, Change(old, new))) == ([KEY] if enqueues else [])
