"""Told the same story, steersman and kube-controller-manager leave the same objects and events.

Each runs on a plane of its own; see `same` for the story and `steersman.explore.normalize` for what
is left out of the comparison.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.harness.envtest import Binary, RealPlane

REFERENCE: Binary = "kube-controller-manager"

pytestmark = [
    pytest.mark.reference,
    pytest.mark.compares(
        "deployment-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "serviceaccount-controller",
        "ttl-after-finished-controller",
    ),
]


def load(name: str) -> ModuleType:
    """A module beside this one: test directories are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tell(binary: Binary) -> dict[str, Any]:
    same = load("same")
    with RealPlane.start() as plane:
        outcome: dict[str, Any] = asyncio.run(same.outcome(plane, binary))
        return outcome


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return tell(REFERENCE)


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return tell("steersman")


@pytest.mark.parametrize(
    "plural",
    ["deployments", "replicasets", "replicationcontrollers", "pods", "jobs", "serviceaccounts", "events"],
)
def test_both_managers_leave_the_same(reference: dict[str, Any], ours: dict[str, Any], plural: str) -> None:
    assert reference[plural], "the story must leave something to compare"
    assert ours[plural] == reference[plural]
