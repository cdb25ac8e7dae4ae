"""What the command line asks for is checked before anything starts."""

import pytest

from steersman.controllers import CONTROLLERS
from steersman.intent.settings import Settings
from steersman.manager.controller_selection import select
from steersman.manager.flags import UsageError
from steersman.manager.options import read

ALL = tuple(controller.name for controller in CONTROLLERS if not controller.disabled_by_default)


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
        (
            ["--controllers=*,-replicset"],
            '"replicset" is not in the list of known controllers; did you mean "replicaset"?',
        ),
        (["--controllers=zzzz"], '"zzzz" is not in the list of known controllers'),
        (["--leader-elect-resource-lock=endpoints"], 'resourceLock value must be "leases"'),
        (["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format'),
        (
            ["--secure-port=70000"],
            "--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        ),
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


def settings(*gates: str) -> Settings:
    return read([f"--feature-gates={','.join(gates)}"]).settings


def test_feature_gates_are_read_as_upstream_writes_them() -> None:
    assert settings("HPAScaleToZero=true", "WatchList=false").gates == {
        "HPAScaleToZero": True,
        "WatchList": False,
    }


def test_all_of_a_stage_can_be_set_and_one_of_them_otherwise() -> None:
    found = settings("AllAlpha=true", "HPAScaleToZero=false")
    assert not found.enabled("HPAScaleToZero")
    assert found.enabled("StorageVersionAPI")
