"""A real control plane for the tests below this directory, one for each worker.

It takes seconds to start, so tests share it and keep to themselves by namespace; a test that must
be alone starts its own `RealPlane`. With pytest-xdist, ``--dist loadgroup`` keeps the tests of a file
on one worker, so that what a file starts is started once, and files run side by side.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.harness.envtest import ASSETS, RealPlane

HERE = Path(__file__).parent
REASON = f"needs a real kube-apiserver: set {ASSETS}"
REFERENCE = "kube-controller-manager"
BESIDE = f"needs the reference manager: put {REFERENCE} into {ASSETS}"

_numbers = itertools.count(1)
_shared: list[RealPlane] = []
"""The plane of this worker, once a test has needed it."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(f"real-{item.path.stem}"))
            if not os.environ.get(ASSETS):
                item.add_marker(pytest.mark.skip(reason=REASON))
            elif item.get_closest_marker("reference") and not os.access(
                Path(os.environ[ASSETS], REFERENCE), os.X_OK
            ):
                item.add_marker(pytest.mark.skip(reason=BESIDE))


@pytest.fixture(scope="session")
def plane() -> Iterator[RealPlane]:
    """etcd and kube-apiserver with RBAC, shared by the tests of a worker; no manager runs beside it."""
    with RealPlane.start() as running:
        _shared.append(running)
        yield running
        _shared.remove(running)


@pytest.fixture(scope="module", autouse=True)
def _managers_and_nodes_end_with_their_file() -> Iterator[None]:
    """Neither has a namespace: the manager that a failed test leaves would act on the objects of the next file, and nodes
    would count in its schedules and messages."""
    yield
    for running in _shared:
        for manager in running.managers:
            manager.stop()
        running.kubectl("delete", "nodes", "--all", "--wait=false")


@pytest.fixture
def namespace(plane: RealPlane) -> str:
    """A namespace no other test uses. It goes with the plane."""
    name = f"test-{next(_numbers)}"
    plane.kubectl("create", "namespace", name)
    return name


def load(name: str) -> ModuleType:
    """A module beside this one: test directories are no packages."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def alike() -> Callable[..., None]:
    """Requires that both managers left the same of a story: see ``both.py``."""
    compare: Callable[..., None] = load("both").alike
    return compare


@pytest.fixture(scope="session")
def both() -> Callable[..., dict[str, dict[str, Any]]]:
    """Tells a story to steersman and to the reference manager: see ``both.py``."""
    tell: Callable[..., dict[str, dict[str, Any]]] = load("both").tell
    return tell


@pytest.fixture(scope="session")
def stage() -> type[Any]:
    """Where a story is told, for those that need more than one manager: see ``both.py``."""
    found: type[Any] = load("both").Stage
    return found
