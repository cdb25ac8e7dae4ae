"""Which controllers run: those kube-controller-manager knows, as ``--controllers`` chooses."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.manager.controller_selection import KNOWN, OFF, enabled, unknown, unmanaged


def test_every_controller_of_kube_controller_manager_has_its_name() -> None:
    assert len(KNOWN) == 52
    names = [name for known, aliases in KNOWN.items() for name in (known, *aliases)]
    assert len(names) == len(set(names))
    assert set(OFF) < set(KNOWN)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda controller: controller.name)
def test_what_is_here_is_called_as_there(controller: Controller[Any]) -> None:
    assert KNOWN[controller.name] == controller.aliases
    assert (controller.name in OFF) == controller.disabled_by_default


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["nodeipam"], ("node-ipam-controller",)),
        (["-nodeipam", "*"], tuple(name for name in KNOWN if name not in (*OFF, "node-ipam-controller"))),
        (
            ["*", "bootstrapsigner", "tokencleaner"],
            tuple(name for name in KNOWN if name != "selinux-warning-controller"),
        ),
        (["ttl"], ("ttl-controller",)),
        ([], ()),
    ],
)
def test_the_words_choose_among_all_there_are(words: list[str], names: tuple[str, ...]) -> None:
    assert enabled(words) == names


def test_names_of_controllers_that_are_not_here_are_accepted_and_told() -> None:
    absent = [name for name in KNOWN if name not in [c.name for c in CONTROLLERS]]
    assert list(unknown(list(KNOWN))) == []
    assert set(absent) <= set(unmanaged([*KNOWN]))


def test_controllers_that_upstream_runs_by_default_and_this_selection_does_not_are_named() -> None:
    assert unmanaged(["*"]) == ()
    assert unmanaged(["*", "-ttl", "-garbagecollector"]) == ("garbage-collector-controller", "ttl-controller")
    left = unmanaged(["job", "bootstrapsigner"])
    assert "job-controller" not in left
    assert "garbage-collector-controller" in left
    # Off by default, behind a gate that is off, or for clouds.
    others = ("token-cleaner-controller", "storage-version-migrator-controller", "service-lb-controller")
    assert not set(others) & set(left)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("-replicset", '"replicset" is not in the list of known controllers; did you mean "replicaset"?'),
        ("zzzz", '"zzzz" is not in the list of known controllers'),
        ("-*", '"*" is not in the list of known controllers'),
        ("", '"" is not in the list of known controllers'),
    ],
)
def test_an_unknown_name_is_told(word: str, message: str) -> None:
    assert list(unknown(["*", word])) == [message]
