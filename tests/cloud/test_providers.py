"""Cloud providers by name: what is installed, and what is said of a name that is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.cloud import InvalidProvider, UnknownProvider, installed, is_installed, make_provider

MODULE = """
from steersman.cloud.local import LocalProvider

def provider(config):
    if config is None:
        raise ValueError("it needs a configuration")
    made = LocalProvider()
    made.name = "acme"
    return made

def broken(config):
    return 7

def crash(config):
    raise RuntimeError("out of order")
"""
POINTS = """[steersman.cloud_providers]
acme = acme_cloud:provider
broken = acme_cloud:broken
crash = acme_cloud:crash
missing = acme_cloud:nothing
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution with providers."""
    (tmp_path / "acme_cloud.py").write_text(MODULE)
    info = tmp_path / "acme_cloud-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-cloud\nVersion: 1\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("acme_cloud", None)


@pytest.mark.parametrize("name", ["", "external"])
def test_no_provider_and_an_external_one_are_none(name: str) -> None:
    assert make_provider(name, b"whatever") is None


def test_the_local_provider_is_always_there() -> None:
    assert "local" in installed()
    made = make_provider("local", b"pools: [192.0.2.0/24]")
    assert made is not None
    assert made.name == "local"


def test_a_distribution_adds_providers(distribution: None) -> None:
    assert installed() == ("acme", "broken", "crash", "local", "missing")
    assert is_installed("acme")
    made = make_provider("acme", b"x")
    assert made is not None
    assert made.name == "acme"


def test_an_unknown_name_is_answered_with_those_that_are_installed() -> None:
    assert not is_installed("aws")
    with pytest.raises(UnknownProvider, match=r"accepts the installed ones: .*local"):
        make_provider("aws")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme", 'cloud provider "acme": it needs a configuration'),
        ("broken", 'cloud provider "broken": its factory returned a int'),
        ("crash", 'cloud provider "crash": RuntimeError: out of order'),
        ("missing", 'cloud provider "missing" cannot be loaded: AttributeError'),
        ("local", 'cloud provider "local": it needs a file with'),
    ],
)
def test_a_provider_that_cannot_be_made_says_why_in_one_line(
    distribution: None, name: str, message: str
) -> None:
    with pytest.raises(InvalidProvider) as caught:
        make_provider(name)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
