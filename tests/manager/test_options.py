"""What the command line asks for is checked before anything starts."""

import pytest

from steersman.controllers import CONTROLLERS
from steersman.manager.flags import UsageError
from steersman.manager.options import read, read_gates, select

ALL = tuple(controller.name for controller in CONTROLLERS if not controller.off)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["*"], ALL),
        ([], ()),
        (["replicaset-controller"], ("replicaset-controller",)),
        (["replicaset"], ("replicaset-controller",)),
        (["*", "-deployment"], tuple(name for name in ALL if name != "deployment-controller")),
        (["-deployment", "deployment"], ()),
        (["deployment", "-deployment"], ("deployment-controller",)),
        (["tokencleaner"], ("token-cleaner-controller",)),
    ],
)
def test_controllers_are_chosen_by_name_alias_and_star(words: list[str], names: tuple[str, ...]) -> None:
    assert tuple(controller.name for controller in select(words)) == names


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--controllers=*,-replicset"], "'replicset' is not in the list of known controllers; did you mean"),
        (["--controllers=zzzz"], "'zzzz' is not in the list of known controllers; there are: "),
        (["--concurrent-deployment-syncs=0"], "--concurrent-deployment-syncs must be at least 1, but got 0"),
        (
            ["--leader-elect-resource-lock=endpoints"],
            "--leader-elect-resource-lock=endpoints is not supported",
        ),
        (["--logging-format=xml"], "--logging-format=xml is not supported: use text or json"),
    ],
)
def test_a_bad_option_is_one_line_that_says_what_to_do(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(argv)
    assert str(caught.value).startswith(message)


def test_the_defaults_are_upstreams() -> None:
    options = read([])
    assert (options.qps, options.burst, options.resync) == (20.0, 30, 43200.0)
    assert options.workers["concurrent-replicaset-syncs"] == 5
    assert options.election.enabled
    election = options.election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15.0, 10.0, 2.0)
    assert (election.namespace, election.name) == ("kube-system", "kube-controller-manager")


def test_feature_gates_are_read_as_upstream_writes_them() -> None:
    assert read_gates(["HPAScaleToZero=true", "kube:WatchList=false"]) == {
        "HPAScaleToZero": True,
        "WatchList": False,
    }


def test_all_of_a_stage_can_be_set_and_one_of_them_otherwise() -> None:
    gates = read_gates(["AllAlpha=true", "HPAScaleToZero=false"])
    assert not gates["HPAScaleToZero"]
    assert gates["StorageVersionAPI"]
    assert "AllAlpha" not in gates


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("HPAScaleToZer=true", "unrecognized feature gate: HPAScaleToZer; did you mean HPAScaleToZero?"),
        ("HPAScaleToZero", "missing bool value for HPAScaleToZero"),
        ("HPAScaleToZero=maybe", "invalid value of HPAScaleToZero=maybe: not true or false"),
    ],
)
def test_a_gate_that_cannot_be_is_named(word: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_gates([word])
    assert str(caught.value) == f"--feature-gates: {message}"
