"""Which scopes of a quota an object is in, row by row: the answers are upstream's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api import kinds
from steersman.api.generated import core_v1
from steersman.api.kinds import storage as views
from steersman.api.kinds.quota import ScopedResourceSelectorRequirement as Scope
from steersman.api.quota.scopes import claim_matches_scope, pod_matches_scope

Document = dict[str, Any]

CLASS1 = Scope(scopeName="PriorityClass", operator="In", values=("class1",))
SCOPES = (
    *(Scope(scopeName=name) for name in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort")),
    CLASS1,
    Scope(scopeName="CrossNamespacePodAffinity"),
)


def affinity(side: str, **terms: Any) -> Document:
    return {"activeDeadlineSeconds": 30, "affinity": {side: terms}}


def required(**term: Any) -> Document:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "z", **term}]
    }


def preferred(**term: Any) -> Document:
    weighted = {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": "z", **term}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


ACROSS = ["Terminating", "BestEffort", "CrossNamespacePodAffinity"]


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ["NotTerminating", "BestEffort"]),
        ({"priorityClassName": "class1"}, ["NotTerminating", "BestEffort", "PriorityClass"]),
        ({"priorityClassName": "class2"}, ["NotTerminating", "BestEffort"]),
        (
            {
                "containers": [
                    {
                        "name": "c",
                        "resources": {
                            "requests": {"cpu": "1", "memory": "50M", "example.com/dongle": "1"},
                            "limits": {"cpu": "2", "memory": "100M", "example.com/dongle": "1"},
                        },
                    }
                ]
            },
            ["NotTerminating", "NotBestEffort"],
        ),
        ({"activeDeadlineSeconds": 30}, ["Terminating", "BestEffort"]),
        (affinity("podAffinity", **required(namespaces=["ns1"], namespaceSelector={})), ACROSS),
        (affinity("podAffinity", **required(namespaces=["ns1"])), ACROSS),
        (affinity("podAffinity", **required()), ACROSS[:2]),
        (affinity("podAffinity", **preferred(namespaces=["ns2"], namespaceSelector={})), ACROSS),
        (affinity("podAffinity", **preferred(namespaceSelector={})), ACROSS),
        (affinity("podAntiAffinity", **preferred(namespaceSelector={})), ACROSS),
        (affinity("podAntiAffinity", **required(namespaces=["ns3"])), ACROSS),
    ],
    ids=[
        "empty",
        "priority class",
        "another priority class",
        "resources",
        "deadline",
        "required affinity by names and selector",
        "required affinity by names",
        "required affinity in its own namespace",
        "preferred affinity by names and selector",
        "preferred affinity by selector",
        "preferred anti-affinity by selector",
        "required anti-affinity by names",
    ],
)
def test_a_pod_is_in_some_scopes_and_not_in_others(spec: Document, names: list[str]) -> None:
    raw = msgspec.json.encode({"spec": spec})
    for type_ in (core_v1.Pod, kinds.Pod):
        pod = msgspec.json.decode(raw, type=type_)
        assert [scope.scopeName for scope in SCOPES if pod_matches_scope(pod, scope)] == names


@pytest.mark.parametrize(
    ("operator", "values", "name", "matches"),
    [
        ("Exists", (), "", False),
        ("Exists", (), "high", True),
        ("DoesNotExist", (), "", True),
        ("DoesNotExist", (), "high", False),
        ("In", ("high", "low"), "high", True),
        ("In", ("high", "low"), "other", False),
        ("In", ("high", "low"), "", False),
        ("NotIn", ("high",), "high", False),
        ("NotIn", ("high",), "other", True),
        ("NotIn", ("high",), "", True),
    ],
)
def test_a_priority_class_is_selected_by_an_operator(
    operator: str, values: tuple[str, ...], name: str, matches: bool
) -> None:
    scope = Scope(scopeName="PriorityClass", operator=operator, values=values)
    pod = kinds.Pod(spec=kinds.PodSpec(priorityClassName=name))
    assert pod_matches_scope(pod, scope) is matches


EMPTY: Document = {}
ONE: Document = {"spec": {"volumeAttributesClassName": "class1"}}
TWO: Document = {**ONE, "status": {"currentVolumeAttributesClassName": "class2"}}
THREE: Document = {
    **ONE,
    "status": {
        "currentVolumeAttributesClassName": "class2",
        "modifyVolumeStatus": {"targetVolumeAttributesClassName": "class3", "status": "InProgress"},
    },
}


@pytest.mark.parametrize(
    ("claim", "operator", "classes", "matches"),
    [
        (EMPTY, "DoesNotExist", "", True),
        (EMPTY, "Exists", "", False),
        (EMPTY, "In", "1", False),
        (EMPTY, "NotIn", "4", True),
        (ONE, "DoesNotExist", "", False),
        (ONE, "Exists", "", True),
        (ONE, "In", "1", True),
        (ONE, "In", "4", False),
        (ONE, "NotIn", "4", True),
        (TWO, "DoesNotExist", "", False),
        (TWO, "Exists", "", True),
        (TWO, "In", "1", True),
        (TWO, "In", "2", True),
        (TWO, "In", "12", True),
        (TWO, "In", "124", True),
        (TWO, "In", "4", False),
        (TWO, "NotIn", "4", True),
        (THREE, "DoesNotExist", "", False),
        (THREE, "Exists", "", True),
        (THREE, "In", "1", True),
        (THREE, "In", "2", True),
        (THREE, "In", "3", True),
        (THREE, "In", "123", True),
        (THREE, "In", "1234", True),
        (THREE, "In", "4", False),
        (THREE, "NotIn", "4", True),
    ],
)
def test_a_claim_is_in_the_scope_of_its_attributes_class_now_and_wanted(
    claim: Document, operator: str, classes: str, matches: bool
) -> None:
    scope = Scope(
        scopeName="VolumeAttributesClass", operator=operator, values=tuple(f"class{each}" for each in classes)
    )
    raw = msgspec.json.encode(claim)
    for type_ in (core_v1.PersistentVolumeClaim, views.PersistentVolumeClaim):
        assert claim_matches_scope(msgspec.json.decode(raw, type=type_), scope) is matches
