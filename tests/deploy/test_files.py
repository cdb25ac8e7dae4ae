"""What lies in ``deploy`` is whole, and the program takes every argument in it."""

from __future__ import annotations

import configparser
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.api.kinds import PODS
from steersman.manager.options import read
from steersman.sim.world import World

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROGRAM = "kube-controller-manager"


def manifest() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "kube-controller-manager.yaml").read_text())
    return document


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "steersman.service").read_text().replace("\\\n", " "))
    return parser


def test_the_arguments_of_the_static_pod_are_taken_unchanged() -> None:
    [container] = manifest()["spec"]["containers"]
    program, *argv = container["command"]
    assert program == PROGRAM
    options = read(argv)
    assert options.use_service_accounts
    assert {"bootstrap-signer-controller", "token-cleaner-controller"} <= {
        controller.name for controller in options.controllers
    }
    assert options.serving.secure_port == container["ports"][0]["containerPort"]


def test_the_static_pod_is_one_that_an_api_server_takes() -> None:
    with World(seed=1) as world:
        world.run(world.api().create(PODS.untyped, "kube-system", manifest()))


def test_everything_that_the_static_pod_names_is_mounted() -> None:
    [container] = manifest()["spec"]["containers"]
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    volumes = {volume["name"] for volume in manifest()["spec"]["volumes"]}
    assert volumes == {mount["name"] for mount in container["volumeMounts"]}
    files = re.findall(
        r"=(/\S+)", " ".join(argument for argument in container["command"] if "cidr" not in argument)
    )
    assert files
    for file in files:
        assert any(file == path or file.startswith(f"{path}/") for path in mounted), file


def test_the_unit_starts_the_program_with_arguments_it_takes() -> None:
    service = unit()["Service"]
    program, *argv = shlex.split(service["ExecStart"])
    assert Path(program).name == PROGRAM
    options = read(argv)
    assert options.settings.enabled("ControllerManagerReleaseLeaderElectionLockOnExit")
    # Controllers and the lease are given the time they may take.
    assert options.shutdown_timeout + options.election.renew_deadline < float(service["TimeoutStopSec"])


@pytest.mark.parametrize("name", ["Containerfile", "kube-controller-manager.yaml"])
def test_the_image_is_called_after_this_version(name: str) -> None:
    assert f"steersman:{version('steersman')}" in (DEPLOY / name).read_text()


def test_the_image_is_made_of_what_is_there_and_starts_the_program() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    sources = [
        source
        for word, *rest in words
        if word == "COPY" and "--from=build" not in rest
        for source in rest[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
    assert ["ENTRYPOINT", f'["{PROGRAM}"]'] in words
    assert {word for word, *_ in words} <= {"FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT"}
