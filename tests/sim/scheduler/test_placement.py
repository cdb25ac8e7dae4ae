"""Where a pod goes: rows of clusters and pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.core_v1 import Node, Pod
from steersman.sim.scheduler import Scheduled, Unschedulable, schedule
from steersman.sim.scheduler.node_info import NodeInfos, pod_info
from steersman.sim.scheduler.placement import Ranking, victims

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    zone: str = "",
    allocatable: dict[str, str] | None = None,
    **spec: Any,
) -> Node:
    labels = {HOST: name, "disk": "ssd" if name in ("a", "b") else "hdd"}
    if zone:
        labels[ZONE] = zone
    allocatable = {"cpu": cpu, "memory": memory, "pods": "10", **(allocatable or {})}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": allocatable},
        },
        Node,
    )


def pod(name: str = "p", app: str = "web", cpu: str = "", limits: Any = None, **spec: Any) -> Pod:
    requests = {"cpu": cpu} if cpu else {}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {**requests, **(limits or {})}}}]
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}},
        "spec": {"containers": containers, **spec},
    }
    return msgspec.convert(document, Pod)


def need(*values: str, operator: str = "In", key: str = "disk") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def beside(kind: str, app: str = "web", key: str = HOST) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(skew: int = 1, key: str = ZONE, when: str = "DoNotSchedule") -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "web"}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}]


TAINT = {"key": "only", "value": "db", "effect": "NoSchedule"}
ROWS: list[Any] = [
    ("the emptiest node", pod(), [node("a"), node("b")], {"a": [pod("x", cpu="1")]}, "b"),
    ("the first of equals", pod(), [node("b"), node("a")], {}, "b"),
    ("where there is room", pod(cpu="3"), [node("a", cpu="2"), node("b")], {}, "b"),
    ("a selected node", pod(nodeSelector={"disk": "hdd"}), [node("a"), node("c")], {}, "c"),
    ("affinity In", pod(affinity=need("hdd")), [node("a"), node("c")], {}, "c"),
    ("affinity NotIn", pod(affinity=need("ssd", operator="NotIn")), [node("a"), node("c")], {}, "c"),
    (
        "affinity Exists",
        pod(affinity=need(operator="Exists", key=ZONE)),
        [node("a"), node("c", zone="z")],
        {},
        "c",
    ),
    ("not a tainted node", pod(), [node("a", taints=[TAINT]), node("b")], {}, "b"),
    (
        "a tainted node that is tolerated",
        pod(tolerations=[{"key": "only", "operator": "Exists"}], nodeSelector={HOST: "a"}),
        [node("a", taints=[TAINT]), node("b")],
        {},
        "a",
    ),
    (
        "rather not a node that would rather not",
        pod(),
        [node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("b", cpu="2")],
        {},
        "b",
    ),
    ("not a cordoned node", pod(), [node("a", unschedulable=True), node("b")], {}, "b"),
    (
        "beside its friends",
        pod(affinity=beside("podAffinity", "db")),
        [node("a"), node("b")],
        {"b": [pod("x", "db", cpu="1")]},
        "b",
    ),
    (
        "the first of a group that keeps together",
        pod(affinity=beside("podAffinity", "web")),
        [node("a"), node("b")],
        {},
        "a",
    ),
    (
        "apart from its like",
        pod(affinity=beside("podAntiAffinity")),
        [node("a"), node("b")],
        {"a": [pod("x")]},
        "b",
    ),
    (
        "apart from one that wants to be",
        pod(),
        [node("a"), node("b")],
        {"a": [pod("x", affinity=beside("podAntiAffinity"))], "b": [pod("y", "db", cpu="3")]},
        "b",
    ),
    (
        "the emptier zone",
        pod(topologySpreadConstraints=spread()),
        [node("a", zone="x"), node("b", zone="x"), node("c", zone="y", cpu="1")],
        {"a": [pod("x")]},
        "c",
    ),
    (
        "rather the emptier zone",
        pod(topologySpreadConstraints=spread(when="ScheduleAnyway")),
        [node("a", zone="x"), node("b", zone="x"), node("c", zone="y", cpu="1")],
        {"a": [pod("x")]},
        "c",
    ),
    (
        "where the extended resource is",
        pod(limits={"example.com/gpu": "1"}),
        [node("a"), node("b", allocatable={"example.com/gpu": "1"})],
        {},
        "b",
    ),
]


@pytest.mark.parametrize(("why", "new", "nodes", "there", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_pod_goes_to(
    why: str, new: Pod, nodes: list[Node], there: dict[str, list[Pod]], expected: str
) -> None:
    assert schedule(new, nodes, there) == Scheduled(expected), why


NOWHERE: list[Any] = [
    ("no nodes", pod(), [], {}, "no nodes available to schedule pods"),
    (
        "all sorts of reasons",
        pod(cpu="3"),
        [node("a", taints=[TAINT]), node("b", cpu="2"), node("c", cpu="1", memory="1")],
        {},
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
    ),
    (
        "two things are short on one node",
        pod(cpu="3", limits={"memory": "16Gi"}),
        [node("a", cpu="1")],
        {},
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
    ),
    (
        "too many pods",
        pod(),
        [node("a")],
        {"a": [pod(f"x{i}") for i in range(10)]},
        "0/1 nodes are available: 1 Too many pods.",
    ),
    (
        "nothing is selected",
        pod(nodeSelector={"disk": "tape"}),
        [node("a"), node("b")],
        {},
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
    ),
    (
        "cordoned",
        pod(),
        [node("a", unschedulable=True)],
        {},
        "0/1 nodes are available: 1 node(s) were unschedulable.",
    ),
    (
        "apart",
        pod(affinity=beside("podAntiAffinity")),
        [node("a")],
        {"a": [pod("x")]},
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
    ),
    (
        "friendless",
        pod(affinity=beside("podAffinity", "db")),
        [node("a")],
        {},
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
    ),
    (
        "no zone",
        pod(topologySpreadConstraints=spread()),
        [node("a")],
        {},
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).",
    ),
]


@pytest.mark.parametrize(
    ("why", "new", "nodes", "there", "message"), NOWHERE, ids=[row[0] for row in NOWHERE]
)
def test_a_pod_goes_nowhere_and_is_told_why(
    why: str, new: Pod, nodes: list[Node], there: dict[str, list[Pod]], message: str
) -> None:
    decision = schedule(new, nodes, there)
    assert isinstance(decision, Unschedulable), why
    assert decision.message == message


def test_preemption_that_finds_nobody_says_so() -> None:
    decision = schedule(pod(cpu="3"), [node("a", taints=[TAINT]), node("b", cpu="2")], {})
    assert isinstance(decision, Unschedulable)
    assert decision.preemption_message == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_host_ports_are_not_shared() -> None:
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    one, other = pod("x", containers=containers), pod("y", containers=containers)
    assert schedule(one, [node("a"), node("b")], {"a": [other]}) == Scheduled("b")


def test_an_init_container_counts_at_its_hungriest_and_a_sidecar_always() -> None:
    def resources(cpu: str) -> dict[str, Any]:
        return {"image": "i", "resources": {"requests": {"cpu": cpu}}}

    inits = [
        {"name": "side", "restartPolicy": "Always", **resources("1")},
        {"name": "init", **resources("3")},
    ]
    new = pod(cpu="2", initContainers=inits)
    assert schedule(new, [node("a", cpu="3500m"), node("b", cpu="4")], {}) == Scheduled("b")


def test_the_least_important_and_the_fewest_make_room() -> None:
    node_infos = NodeInfos()
    for each in (node("a"), node("b")):
        node_infos.put_node(each)
    for i, (where, priority) in enumerate([("a", 5), ("a", 1), ("b", 7), ("b", 1)]):
        node_infos.put(pod_info(pod(f"x{i}", cpu="2", priority=priority)), where)
    found = victims(pod_info(pod(cpu="2", priority=10)), node_infos)
    assert found is not None
    assert (found[0], [each.uid for each in found[1]]) == ("a", ["x1"])
    assert victims(pod_info(pod(cpu="2", priority=1)), node_infos) is None
    both = victims(pod_info(pod(cpu="4", priority=6)), node_infos)
    assert both is not None
    assert (both[0], [each.uid for each in both[1]]) == ("a", ["x0", "x1"])


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["100m", "700m", "1500m"]), st.booleans()), max_size=60
    )
)
def test_remembered_ranks_decide_as_if_everything_were_looked_at_anew(
    story: list[tuple[int, str, bool]],
) -> None:
    nodes = [node(name, cpu=cpu) for name, cpu in (("a", "2"), ("b", "4"), ("c", "3"))]
    node_infos = NodeInfos()
    for each in nodes:
        node_infos.put_node(each)
    ranks = Ranking(node_infos)
    there: dict[str, dict[str, Pod]] = {}
    for number, cpu, leaves in story:
        name = f"p{number}"
        node_of = next((where for where, pods in there.items() if name in pods), None)
        if leaves or node_of is not None:
            node_infos.remove(pod_info(pod(name)).key)
            if node_of is not None:
                del there[node_of][name]
            continue
        new = pod(name, cpu=cpu)
        decision = ranks.schedule(pod_info(new))
        assert decision == schedule(new, nodes, {where: pods.values() for where, pods in there.items()})
        if isinstance(decision, Scheduled):
            node_infos.put(pod_info(new), decision.node)
            there.setdefault(decision.node, {})[name] = new
            node_info = node_infos.get(decision.node)
            assert node_info is not None
            assert node_info.requested["cpu"] <= node_info.allocatable["cpu"]


# -- pods that name their node ----------------------------------------------------------------


def named(*names: str, **more: Any) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}], **more}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


def test_a_pod_that_names_its_node_goes_there_and_nowhere_else() -> None:
    nodes = [node("a", cpu="64"), node("b"), node("c", unschedulable=True)]
    assert schedule(pod(affinity=named("b")), nodes, {}) == Scheduled("b")
    refused = schedule(pod(affinity=named("b"), cpu="5"), nodes, {})
    assert isinstance(refused, Unschedulable)
    assert refused.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert isinstance(schedule(pod(affinity=named("gone")), nodes, {}), Unschedulable)


def test_of_several_nodes_that_a_pod_names_it_goes_to_the_best() -> None:
    nodes = [node("a"), node("b", cpu="8", memory="16Gi"), node("c", cpu="64", memory="128Gi")]
    assert schedule(pod(affinity=named("a", "b")), nodes, {}) == Scheduled("b")


def test_what_else_a_term_requires_holds_for_named_nodes_too() -> None:
    expressions = [{"key": "disk", "operator": "In", "values": ["hdd"]}]
    nodes = [node("a"), node("c")]
    assert isinstance(
        schedule(pod(affinity=named("a", matchExpressions=expressions)), nodes, {}), Unschedulable
    )
    assert schedule(pod(affinity=named("c", matchExpressions=expressions)), nodes, {}) == Scheduled("c")
