"""What lies in ``deploy`` is whole, and the program takes every argument in it."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from steersman import __version__
from steersman.api.kinds import PODS
from steersman.controllers import CONTROLLERS
from steersman.manager.controller_selection import KNOWN
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
    assert f"steersman:{__version__}" in (DEPLOY / name).read_text()


def test_the_guide_says_truly_that_no_controller_is_missing() -> None:
    guide = (ROOT / "docs" / "guides" / "deploy.md").read_text()
    assert f"none of the {len(KNOWN)} controllers" in guide
    assert set(KNOWN) == {controller.name for controller in CONTROLLERS}


def instructions() -> list[list[str]]:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_the_image_is_made_of_what_is_there_and_starts_the_program() -> None:
    words = instructions()
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
    assert {word for word, *_ in words} <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT"}


# -- what is installed, and with which rights -----------------------------------------------------


def test_the_base_image_is_named_by_a_digest_that_has_to_be_given() -> None:
    words = instructions()
    assert ["ARG", "PYTHON_DIGEST"] in words
    bases = [rest[0] for word, *rest in words if word == "FROM"]
    assert bases == ["docker.io/library/python@${PYTHON_DIGEST}"] * 2


def pip_commands(text: str) -> list[list[str]]:
    """The arguments of every ``pip`` in a file, comments included: users copy those."""
    return [line.split() for line in re.findall(r"\bpip ((?:install|wheel) .*)", text)]


@pytest.mark.parametrize("name", ["Containerfile", "steersman.service"])
def test_everything_is_installed_by_hash_and_the_wheel_alone(name: str) -> None:
    commands = pip_commands((DEPLOY / name).read_text())
    locks = {Path(argv[argv.index("-r") + 1]).name for argv in commands if "-r" in argv}
    assert "requirements.lock" in locks
    for argv in commands:
        if "-r" in argv:
            # A source distribution would run code that no hash names: its build dependencies.
            assert {"--require-hashes", "--only-binary=:all:"} <= set(argv)
        else:
            assert {"--no-deps", "--no-index"} <= set(argv)


class Pin(NamedTuple):
    """An entry of a lock file."""

    requirement: str
    hashes: frozenset[str]
    parents: frozenset[str]


def lock(path: Path) -> dict[str, Pin]:
    pins: dict[str, Pin] = {}
    for entry in re.split(r"^(?=\S)", path.read_text(), flags=re.MULTILINE)[1:]:
        requirement, *rest = (line.strip(" \\") for line in entry.splitlines())
        hashes = frozenset(line for line in rest if line.startswith("--hash=sha256:"))
        parents = (
            line.removeprefix("#").removeprefix(" via").strip() for line in rest if line.startswith("#")
        )
        pins[requirement.partition("==")[0]] = Pin(requirement, hashes, frozenset(filter(None, parents)))
    return pins


def names_in(requirements: list[str]) -> set[str]:
    return {re.split(r"[^a-z0-9-]", one.lower())[0] for one in requirements}


@pytest.mark.parametrize("name", ["requirements.lock", "build-requirements.lock"])
def test_the_locks_of_the_image_are_parts_of_the_whole(name: str) -> None:
    whole, part = lock(ROOT / "requirements.lock"), lock(DEPLOY / name)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = names_in(
        project["project"]["dependencies"]
        if name == "requirements.lock"
        else project["build-system"]["requires"]
    )
    while more := {one for one, pin in whole.items() if pin.parents & needed} - needed:
        needed |= more
    assert set(part) == needed
    for one, pin in part.items():
        # A marker may be narrower here: other dependencies need the package on more versions of Python.
        assert pin.requirement.partition(" ;")[0] == whole[one].requirement.partition(" ;")[0]
        assert pin.hashes == whole[one].hashes
        assert pin.hashes


def test_the_locks_name_what_the_build_system_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]


def test_the_image_runs_as_a_numeric_user_who_is_not_root() -> None:
    users = [rest for word, *rest in instructions() if word == "USER"]
    assert users == [["65532:65532"]]
    # The kubelet checks runAsNonRoot against a number only.
    assert instructions()[-1][0] == "ENTRYPOINT"


def test_the_static_pod_has_no_rights_beyond_reading_its_files() -> None:
    spec = manifest()["spec"]
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        # kubeadm's keys are root's alone.
        "runAsGroup": 0,
        "runAsUser": 0,
    }
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert all(
        mount.get("readOnly") for mount in container["volumeMounts"] if mount["name"] != "flexvolume-dir"
    )


def test_the_unit_has_no_rights_beyond_reading_its_files() -> None:
    service = unit()["Service"]
    assert service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == service["PrivateTmp"] == service["ProtectHome"] == "true"
    assert service["ProtectSystem"] == "strict"
