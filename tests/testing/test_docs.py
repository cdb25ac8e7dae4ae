"""The page about testing says what holds: each of its listings is a test file, and passes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from steersman.testing import Cluster

pytest_plugins = "pytester"

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
LISTINGS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """What a run inside of this one loads is forgotten after it, and must not be loaded twice."""
    with Cluster() as cluster:
        cluster.serve()


def name(listing: str) -> str:
    name: str = re.findall(r"def (test_\w+)", listing)[0]
    return name


@pytest.mark.parametrize("listing", LISTINGS, ids=name)
def test_the_listings_of_the_page_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, listing: str
) -> None:
    path = os.pathsep.join((os.environ.get("PATH", ""), os.environ.get("KUBEBUILDER_ASSETS", "")))
    if "kubectl" in listing and shutil.which("kubectl", path=path) is None:
        pytest.skip("there is no kubectl on PATH or in KUBEBUILDER_ASSETS")
    monkeypatch.setenv("PATH", path)
    pytester.makepyfile(listing)
    pytester.runpytest("-p", "no:asyncio", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_every_part_of_a_cluster_that_is_for_others_is_on_the_page() -> None:
    page = PAGE.read_text()
    public = [name for name in dir(Cluster) if not name.startswith("_")]
    aside = {"close", "manager", "run", "seed", "world", "plan", "aio", "follow", "of"}
    assert [name for name in public if f"{name}" not in page and name not in aside] == []
