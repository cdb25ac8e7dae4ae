"""A real control plane for the tests below this directory, one a session.

It takes seconds to start, so tests share it and keep to themselves by namespace; a test that must
be alone starts its own `RealPlane`. With pytest-xdist, ``--dist loadgroup`` keeps them on one
worker, so that one plane is started and not one a core.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.testing.plane import ASSETS, RealPlane

HERE = Path(__file__).parent
REASON = f"needs a real kube-apiserver: set {ASSETS}"

_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("real"))
            if not os.environ.get(ASSETS):
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def plane() -> Iterator[RealPlane]:
    """etcd and kube-apiserver with RBAC, shared by the session; no manager runs beside it."""
    with RealPlane.start() as running:
        yield running


@pytest.fixture
def namespace(plane: RealPlane) -> str:
    """A namespace no other test uses. It goes with the plane."""
    name = f"test-{next(_numbers)}"
    plane.kubectl("create", "namespace", name)
    return name
