"""Which nodes a pod may be on, by labels and by taints."""

import msgspec
import pytest

from steersman.api.kinds import Pod, Toleration
from steersman.api.kinds.nodes import NodeSelectorRequirement, NodeSelectorTerm, Taint
from steersman.api.scheduling import matches_node_selector_term, tolerates

LABELS = {"zone": "a", "cores": "8"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="yes"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(value="yes"), True),
        (Toleration(key="gpu", value="no"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(key="gpu", operator="Near", value="yes"), False),
    ],
)
def test_a_toleration_is_for_a_taint_of_its_key_value_and_effect(
    toleration: Toleration, tolerated: bool
) -> None:
    assert tolerates((toleration,), Taint(key="gpu", value="yes", effect="NoSchedule")) is tolerated


@pytest.mark.parametrize(
    ("operator", "value", "taint", "tolerated"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "-1", True),
        ("Gt", "five", "6", False),
        ("Gt", "5", "six", False),
    ],
)
def test_numbers_are_compared_only_where_the_gate_is_on(
    operator: str, value: str, taint: str, tolerated: bool
) -> None:
    toleration = Toleration(key="level", operator=operator, value=value)
    tainted = Taint(key="level", value=taint, effect="NoSchedule")
    assert tolerates((toleration,), tainted, numeric=True) is tolerated
    assert not tolerates((toleration,), tainted)


@pytest.mark.parametrize(
    ("operator", "key", "values", "holds"),
    [
        ("In", "zone", ("a", "b"), True),
        ("In", "zone", ("b",), False),
        ("In", "rack", ("",), False),
        ("NotIn", "zone", ("b",), True),
        ("NotIn", "zone", ("a",), False),
        ("NotIn", "rack", ("a",), True),
        ("Exists", "zone", (), True),
        ("Exists", "rack", (), False),
        ("DoesNotExist", "rack", (), True),
        ("DoesNotExist", "zone", (), False),
        ("Gt", "cores", ("4",), True),
        ("Gt", "cores", ("8",), False),
        ("Lt", "cores", ("16",), True),
        ("Lt", "zone", ("16",), False),
        ("Lt", "cores", ("4", "16"), False),
        ("Gt", "rack", ("4",), False),
        ("Like", "zone", ("a",), False),
    ],
)
def test_a_requirement_is_about_one_label(
    operator: str, key: str, values: tuple[str, ...], holds: bool
) -> None:
    need = NodeSelectorRequirement(key=key, operator=operator, values=values)
    assert matches_node_selector_term(NodeSelectorTerm(matchExpressions=(need,)), "n1", LABELS) is holds


def test_all_of_a_term_must_hold_and_an_empty_one_never_does() -> None:
    here = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",))
    zone = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    other = NodeSelectorRequirement(key="zone", operator="In", values=("b",))
    assert matches_node_selector_term(
        NodeSelectorTerm(matchExpressions=(zone,), matchFields=(here,)), "n1", LABELS
    )
    assert not matches_node_selector_term(
        NodeSelectorTerm(matchExpressions=(zone,), matchFields=(here,)), "n2", LABELS
    )
    assert not matches_node_selector_term(NodeSelectorTerm(matchExpressions=(zone, other)), "n1", LABELS)
    assert not matches_node_selector_term(NodeSelectorTerm(), "n1", LABELS)


@pytest.mark.parametrize("affinity", [b'{"nodeAffinity":{}}', b"null"])
def test_a_pod_with_an_affinity_can_be_read_from_a_wire(affinity: bytes) -> None:
    document = b'{"spec":{"nodeName":"n1","affinity":' + affinity + b"}}"
    pod = msgspec.json.decode(document, type=Pod)
    assert (pod.spec.nodeName, bytes(pod.spec.affinity)) == ("n1", affinity)
