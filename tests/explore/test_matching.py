"""What a scenario says of an object, compared with the object."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.explore.matching import matches, mismatches

FOUND = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"replicas": 3, "paused": False},
    "status": {"readyReplicas": 2, "conditions": [{"type": "Available", "status": "True"}]},
}


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": ">= 3"}},
        {"spec": {"replicas": "!=4"}},
        {"status": {"readyReplicas": "<3", "unavailableReplicas": 0}},
        {"status": {"unavailableReplicas": "<= 0"}},
        {"status": {"conditions": [{"type": "Available"}]}},
        {"status": {"conditions": []}},
        {"metadata": {"annotations": None, "labels": {"app": "web", "other": None}}},
        {"metadata": {"labels": "*"}},
    ],
)
def test_what_is_said_of_an_object_is_so(wanted: Any) -> None:
    assert matches(wanted, FOUND)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"spec": {"replicas": 4}}, "spec.replicas is 3, not 4"),
        ({"spec": {"replicas": "> 3"}}, "spec.replicas is 3, not > 3"),
        ({"status": {"updatedReplicas": ">= 1"}}, "status.updatedReplicas is None, not >= 1"),
        ({"metadata": {"labels": None}}, "not absent"),
        ({"metadata": {"annotations": "*"}}, "metadata.annotations is absent"),
        ({"status": {"conditions": [{"type": "Progressing"}]}}, "status.conditions has no"),
        ({"spec": {"replicas": {"deep": 1}}}, "spec.replicas.deep is None, not 1"),
    ],
)
def test_what_is_not_so_is_said_with_its_place(wanted: Any, why: str) -> None:
    assert why in "; ".join(mismatches(wanted, FOUND))
