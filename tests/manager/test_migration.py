"""Which controllers run under which lock, and configurations that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.client.config import ConfigError
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.manager import cli
from steersman.manager.migration import DEFAULT, TOKENS, Leader, Migration, configuration, read

HEAD = "apiVersion: controllermanager.config.k8s.io/{version}\nkind: LeaderMigrationConfiguration\n"
V1 = HEAD.format(version="v1")
BETA = HEAD.format(version="v1beta1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "migration.yaml"


def names(controllers: tuple[Controller[Any], ...]) -> list[str]:
    return [controller.name for controller in controllers]


def table(*leaders: tuple[str, str]) -> Migration:
    return Migration(leaderName="moving", controllerLeaders=tuple(Leader(*leader) for leader in leaders))


@pytest.mark.parametrize(
    ("component", "migrated"),
    [("kube-controller-manager", True), ("*", True), ("cloud-controller-manager", False)],
)
def test_a_named_controller_runs_under_the_lock_of_the_migration_if_it_is_ours(
    component: str, migrated: bool
) -> None:
    shares = table(("job-controller", component)).split(CONTROLLERS)
    assert names(shares.migrated) == (["job-controller"] if migrated else [])
    assert names(shares.main) == [one.name for one in CONTROLLERS if one.name != "job-controller"]


def test_the_last_word_about_a_controller_counts() -> None:
    shares = table(("job-controller", "*"), ("job-controller", "cloud-controller-manager")).split(CONTROLLERS)
    assert names(shares.migrated) == []


def test_who_gives_out_tokens_stays_under_the_main_lock_whatever_is_said_of_it() -> None:
    for component in ("*", "cloud-controller-manager"):
        shares = table((TOKENS, component)).split(CONTROLLERS)
        assert TOKENS in names(shares.main)
        assert names(shares.migrated) == []


def test_without_a_file_it_is_the_default_table_and_without_the_flag_there_is_none() -> None:
    assert configuration(False, "/does/not/exist") is None
    assert configuration(True, "") is DEFAULT
    assert DEFAULT.leaderName == "cloud-provider-extraction-migration"
    assert {leader.component for leader in DEFAULT.controllerLeaders} == {"*"}


@pytest.mark.parametrize(
    "text",
    [
        V1 + "leaderName: moving\ncontrollerLeaders: [{name: job-controller, component: '*'}]",
        BETA + "leaderName: moving\nresourceLock: leases\n"
        "controllerLeaders: [{name: job-controller, component: '*'}]",
        HEAD.format(version="v1alpha1") + "leaderName: moving\nresourceLock: leases\n"
        "controllerLeaders:\n- name: job-controller\n  component: '*'\n",
    ],
)
def test_all_versions_of_the_configuration_are_read(text: str, path: Path) -> None:
    path.write_text(text)
    found = configuration(True, str(path))
    assert found is not None
    assert (found.leaderName, found.controllerLeaders) == ("moving", (Leader("job-controller", "*"),))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "its content must be a mapping"),
        ("{", "expected the node content"),
        ("apiVersion: v1\nkind: Pod\n", "but is Pod of v1"),
        (HEAD.format(version="v2") + "leaderName: x", "but is LeaderMigrationConfiguration of"),
        (V1 + "controllerLeaders: []", "leaderName must be set"),
        (V1 + "leaderName: yes", "Expected `str`, got `bool` - at `$.leaderName`"),
        (V1 + "leaderName: x\nfoo: 1", "unknown field `foo`"),
        (V1 + "leaderName: x\nresourceLock: leases", "unknown field `resourceLock`"),
        (V1 + "leaderName: x\nleaderName: z", "duplicate key leaderName"),
        (BETA + "leaderName: x", "resourceLock must be leases, but is ''"),
        (BETA + "leaderName: x\nresourceLock: endpoints", "resourceLock must be leases, but is 'endpoints'"),
        (V1 + "leaderName: x\ncontrollerLeaders: [{name: a}]", "controllerLeaders[0].component must be set"),
        (V1 + "leaderName: x\ncontrollerLeaders: [{component: '*'}]", "controllerLeaders[0].name must be"),
        (V1 + "leaderName: x\ncontrollerLeaders: {}", "Expected `array`"),
        (V1 + "leaderName: x\n? [1, 2]\n: 3\n", "unhashable key"),
    ],
)
def test_a_wrong_configuration_is_one_line_that_names_the_file(text: str, problem: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(str(path))
    assert caught.value.message.startswith(f"{path}: not a leader migration configuration: ")
    assert problem in caught.value.message
    assert "\n" not in caught.value.message


CONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: hunter2}}]
"""


@pytest.mark.parametrize("elect", ["true", "false"])
def test_a_file_that_is_not_there_ends_the_manager_before_it_begins(
    elect: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(CONFIG)
    argv = [f"--kubeconfig={config}", f"--leader-elect={elect}", "--enable-leader-migration"]
    assert cli.main(["run", *argv, "--leader-migration-config=/does/not/exist"]) == 1
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith("Error: /does/not/exist: cannot read the leader migration configuration")
