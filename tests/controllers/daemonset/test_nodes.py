"""Which nodes should run a daemon pod, and the pod made from the template."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.generated import core_v1
from steersman.api.kinds import ObjectMeta, Pod, PodSpec, PodTemplateSpec
from steersman.api.kinds.daemonsets import DaemonSet, DaemonSetSpec
from steersman.api.kinds.nodes import Node, NodeSpec, Taint
from steersman.controllers.daemonset.nodes import (
    SHOULD_CONTINUE,
    SHOULD_NOT_RUN,
    SHOULD_RUN,
    NodeFit,
    requirements_of,
)
from steersman.controllers.daemonset.template import PodFactory, generation_of, is_updated, target_node

NODE = "node.kubernetes.io/"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINERS = [{"name": "main", "image": "app:1"}]


def raw(**spec: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"containers": CONTAINERS, **spec}))


def node(*taints: Taint, name: str = "n1", unschedulable: bool = False) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={"type": "production", "disk": "ssd"}),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
    )


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def label(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def name_in(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


TOLERATE_GPU = {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]}
ROWS: list[tuple[str, dict[str, Any], Node, NodeFit]] = [
    ("asks for nothing", {}, node(), SHOULD_RUN),
    (
        "resources are the scheduler's business",
        {"resources": {"requests": {"cpu": "99"}}},
        node(),
        SHOULD_RUN,
    ),
    ("names the node", {"nodeName": "n1"}, node(), SHOULD_RUN),
    ("names another", {"nodeName": "n2"}, node(), SHOULD_NOT_RUN),
    ("selects it", {"nodeSelector": {"disk": "ssd"}}, node(), SHOULD_RUN),
    ("selects others", {"nodeSelector": {"disk": "hdd"}}, node(), SHOULD_NOT_RUN),
    ("selects it by one of two", {"nodeSelector": {"disk": "ssd", "type": "test"}}, node(), SHOULD_NOT_RUN),
    (
        "names it and selects others",
        {"nodeName": "n1", "nodeSelector": {"disk": "hdd"}},
        node(),
        SHOULD_NOT_RUN,
    ),
    ("has affinity to it", {"affinity": affinity(label("type", "production"))}, node(), SHOULD_RUN),
    ("has affinity to others", {"affinity": affinity(label("type", "test"))}, node(), SHOULD_NOT_RUN),
    (
        "has affinity by one of two terms",
        {"affinity": affinity(label("type", "test"), label("disk", "ssd"))},
        node(),
        SHOULD_RUN,
    ),
    ("has affinity by name", {"affinity": affinity(name_in("n1"))}, node(), SHOULD_RUN),
    ("has affinity by another name", {"affinity": affinity(name_in("n2"))}, node(), SHOULD_NOT_RUN),
    (
        "has affinity to all but it",
        {"affinity": affinity(name_in("n1", operator="NotIn"))},
        node(),
        SHOULD_NOT_RUN,
    ),
    ("has an empty term", {"affinity": affinity({})}, node(), SHOULD_NOT_RUN),
    ("has affinity of no terms", {"affinity": affinity()}, node(), SHOULD_NOT_RUN),
    (
        "only prefers others",
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": label("type", "test")}]}}},
        node(),
        SHOULD_RUN,
    ),
    ("does not tolerate a taint", {}, node(taint("gpu", value="yes")), SHOULD_CONTINUE),
    ("does not tolerate one that evicts", {}, node(taint("gpu", "NoExecute")), SHOULD_NOT_RUN),
    ("tolerates neither", {}, node(taint("a"), taint("gpu", "NoExecute")), SHOULD_NOT_RUN),
    ("need not tolerate a preference", {}, node(taint("gpu", "PreferNoSchedule")), SHOULD_RUN),
    ("tolerates the taint", TOLERATE_GPU, node(taint("gpu", value="yes")), SHOULD_RUN),
    ("tolerates another value", TOLERATE_GPU, node(taint("gpu", value="no")), SHOULD_CONTINUE),
    ("tolerates one of two", TOLERATE_GPU, node(taint("gpu", value="yes"), taint("b")), SHOULD_CONTINUE),
    ("a node that is cordoned", {}, node(unschedulable=True), SHOULD_RUN),
    ("a node tainted for being cordoned", {}, node(taint(NODE + "unschedulable")), SHOULD_RUN),
    ("a node that is not ready", {}, node(taint(NODE + "not-ready", "NoExecute")), SHOULD_RUN),
    ("a node that has never been ready", {}, node(taint(NODE + "not-ready")), SHOULD_CONTINUE),
    ("a node that is silent", {}, node(taint(NODE + "unreachable", "NoExecute")), SHOULD_RUN),
    ("a node with a full disk", {}, node(taint(NODE + "disk-pressure")), SHOULD_RUN),
    ("a node short of memory", {}, node(taint(NODE + "memory-pressure")), SHOULD_RUN),
    ("a node short of processes", {}, node(taint(NODE + "pid-pressure")), SHOULD_RUN),
    ("a node without network", {}, node(taint(NODE + "network-unavailable")), SHOULD_CONTINUE),
    (
        "a pod without need of one",
        {"hostNetwork": True},
        node(taint(NODE + "network-unavailable")),
        SHOULD_RUN,
    ),
]


@pytest.mark.parametrize(("spec", "place", "fit"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_node_is_wanted_endured_or_unfit(spec: dict[str, Any], place: Node, fit: NodeFit) -> None:
    assert requirements_of(raw(**spec)).fit(place) == fit


@pytest.mark.parametrize(("spec", "place", "fit"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_it_is_the_same_for_a_template_that_came_without_a_wire(
    spec: dict[str, Any], place: Node, fit: NodeFit
) -> None:
    full: Any = msgspec.convert({"containers": CONTAINERS, **spec}, core_v1.PodSpec)
    assert requirements_of(full).fit(place) == fit


def test_numbers_are_compared_where_the_gate_is_on() -> None:
    spec = raw(tolerations=[{"key": "level", "operator": "Gt", "value": "5"}])
    place = node(taint("level", value="6"))
    assert (requirements_of(spec).fit(place), requirements_of(spec).fit(place, numeric=True)) == (
        SHOULD_CONTINUE,
        SHOULD_RUN,
    )


# -- pods -------------------------------------------------------------------------------------


def daemonset(spec: Any, *, generation: str | None = "3", name: str = "agent") -> DaemonSet:
    annotations = {} if generation is None else {"deprecated.daemonset.template.generation": generation}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "agent"}, annotations={"a": "b"}), spec=spec
    )
    return DaemonSet(
        metadata=ObjectMeta(name=name, namespace="default", uid="ds", annotations=annotations),
        spec=DaemonSetSpec(template=template),
    )


def made(spec: Any, where: str = "n1") -> dict[str, Any]:
    pod = PodFactory.of(daemonset(spec), "abc").pod_for(where)
    return msgspec.json.decode(msgspec.json.encode(pod.spec))  # type: ignore[no-any-return]


def test_a_pod_is_for_one_node_and_carries_both_marks_of_its_template() -> None:
    pod = PodFactory.of(daemonset(raw(fieldOfTomorrow=1)), "abc").pod_for("n1")
    assert pod.metadata.generateName == "agent-"
    assert pod.metadata.labels == {
        "app": "agent",
        "controller-revision-hash": "abc",
        "pod-template-generation": "3",
    }
    assert pod.metadata.annotations == {"a": "b"}
    assert [(one.kind, one.uid, one.controller) for one in pod.metadata.ownerReferences] == [
        ("DaemonSet", "ds", True)
    ]
    spec = msgspec.json.decode(pod.spec)
    assert spec["fieldOfTomorrow"] == 1
    assert spec["containers"] == CONTAINERS
    assert spec["affinity"] == affinity(name_in("n1"))


def test_what_is_required_of_nodes_gives_way_to_the_name_and_all_else_of_an_affinity_stays() -> None:
    preferred = [{"weight": 1, "preference": label("type", "test")}]
    apart = {PREFERRED: [], REQUIRED: [{"topologyKey": "zone"}]}
    said = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [label("disk", "ssd")]}, PREFERRED: preferred},
        "podAntiAffinity": apart,
    }
    assert made(raw(affinity=said))["affinity"] == {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [name_in("n1")]}, PREFERRED: preferred},
        "podAntiAffinity": apart,
    }


def test_a_toleration_that_only_lasts_a_while_gives_way_in_its_place() -> None:
    brief = {"key": NODE + "not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    other = {"key": "gpu", "operator": "Exists"}
    found = made(raw(tolerations=[brief, other]))["tolerations"]
    assert found[:2] == [{key: brief[key] for key in ("key", "operator", "effect")}, other]
    assert [one["key"].removeprefix(NODE) for one in found[2:]] == [
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    ]
    assert made(raw(hostNetwork=True))["tolerations"][-1]["key"] == NODE + "network-unavailable"


def test_a_template_that_came_without_a_wire_makes_the_same_pod() -> None:
    spec = {"containers": CONTAINERS, "affinity": affinity(label("disk", "ssd")), **TOLERATE_GPU}
    full = msgspec.convert(spec, core_v1.PodSpec)
    there = msgspec.convert(made(full), core_v1.PodSpec)
    assert there == msgspec.convert(made(raw(**spec)), core_v1.PodSpec)


@pytest.mark.parametrize(
    "stated",
    [
        None,
        {},
        affinity(label("kubernetes.io/hostname", "n1")),
        affinity(name_in("n1", "n2")),
        affinity(label("hostname", "n1"), name_in("n2")),
        affinity(name_in("n2", operator="NotIn")),
        affinity({"matchFields": [{"key": "metadata.foo", "operator": "In", "values": ["bar"]}]}),
    ],
    ids=["none", "empty", "host name", "two names", "two terms", "not a name", "another field"],
)
def test_what_a_template_requires_of_nodes_gives_way_to_one_name(stated: dict[str, Any] | None) -> None:
    spec = raw() if stated is None else raw(affinity=stated)
    assert made(spec)["affinity"] == affinity(name_in("n1"))


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ({"nodeName": "n1"}, "n1"),
        ({"nodeName": "n1", "affinity": affinity(name_in("n2"))}, "n1"),
        ({"affinity": affinity(name_in("n2"))}, "n2"),
        ({"affinity": affinity(label("disk", "ssd"), name_in("n2"))}, "n2"),
        ({"affinity": affinity(name_in("n2", "n3"))}, ""),
        ({"affinity": affinity(name_in("n2", operator="NotIn"))}, ""),
        ({"affinity": affinity(label("disk", "ssd"))}, ""),
        ({"affinity": {}}, ""),
        ({}, ""),
    ],
)
def test_a_pod_is_on_a_node_or_for_one(spec: dict[str, Any], target: str) -> None:
    pod = Pod(spec=msgspec.json.decode(msgspec.json.encode(spec), type=PodSpec))
    assert target_node(pod) == target


@pytest.mark.parametrize(("said", "number"), [("3", "3"), ("+03", "3"), ("", None), ("three", None)])
def test_a_generation_that_is_no_number_is_none(said: str, number: str | None) -> None:
    assert generation_of(daemonset(raw(), generation=said)) == number


@pytest.mark.parametrize(
    ("labels", "updated"),
    [
        ({"controller-revision-hash": "abc"}, True),
        ({"controller-revision-hash": "xyz"}, False),
        ({"controller-revision-hash": "xyz", "pod-template-generation": "3"}, True),
        ({"pod-template-generation": "2"}, False),
        ({}, False),
    ],
)
def test_a_pod_is_of_the_template_by_its_revision_or_by_its_number(
    labels: dict[str, str], updated: bool
) -> None:
    assert is_updated(Pod(metadata=ObjectMeta(labels=labels)), "abc", "3") is updated
    assert not is_updated(Pod(metadata=ObjectMeta(labels={})), "abc", None)


@pytest.mark.parametrize(
    ("labels", "hash_", "generation", "updated"),
    [
        ({"controller-revision-hash": "abc", "pod-template-generation": "3"}, "abc", "3", True),
        ({"pod-template-generation": "3"}, "abc", "3", True),
        ({"pod-template-generation": "3"}, "", "3", True),
        ({"controller-revision-hash": "abc", "pod-template-generation": "3"}, "", "3", True),
        ({"controller-revision-hash": "abc", "pod-template-generation": "3"}, "abc", "4", True),
        ({"controller-revision-hash": "abc", "pod-template-generation": "3"}, "xyz", "4", False),
        ({}, "", "3", False),
    ],
)
def test_either_mark_of_the_template_will_do(
    labels: dict[str, str], hash_: str, generation: str, updated: bool
) -> None:
    assert is_updated(Pod(metadata=ObjectMeta(labels=labels)), hash_, generation) is updated


@pytest.mark.parametrize("generation", ["1", "2"])
def test_a_pod_is_labelled_with_the_generation_and_the_hash(generation: str) -> None:
    pod = PodFactory.of(daemonset(raw(), generation=generation), "3242341807").pod_for("n1")
    assert pod.metadata.labels["pod-template-generation"] == generation
    assert pod.metadata.labels["controller-revision-hash"] == "3242341807"
