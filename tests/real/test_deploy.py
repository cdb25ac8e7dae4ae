"""The files in ``deploy`` on a real API server: the static pod is valid, and a manager runs with the arguments of each."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harness.assets import assets
from tests.harness.child_process import Child, until
from tests.harness.envtest import MANAGER, RealPlane

DEPLOY = Path(__file__).parents[2] / "deploy"
POD = DEPLOY / "kube-controller-manager.yaml"
GUIDE = DEPLOY.parent / "docs" / "guides" / "deploy.md"
PROGRAM = "import sys; from steersman.manager.cli import kube_controller_manager; sys.exit(kube_controller_manager())"


@pytest.fixture(scope="module")
def alone() -> Iterator[RealPlane]:
    """A plane whose lease no other manager holds."""
    with RealPlane.start() as running:
        yield running


def of_unit() -> list[str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "steersman.service").read_text().replace("\\\n", " "))
    return shlex.split(parser["Service"]["ExecStart"])[1:]


def of_pod() -> list[str]:
    command: list[str] = yaml.safe_load(POD.read_text())["spec"]["containers"][0]["command"]
    return command[1:]


def test_a_real_api_server_knows_every_field_of_the_static_pod(alone: RealPlane) -> None:
    alone.kubectl(
        "-n", "kube-system", "create", "serviceaccount", "default"
    )  # which no manager has created yet
    created = alone.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(POD))
    assert created == "pod/kube-controller-manager created (server dry run)\n"


@pytest.mark.parametrize(
    "arguments", [of_unit(), of_pod()], ids=["steersman.service", "kube-controller-manager.yaml"]
)
def test_a_manager_runs_with_its_arguments(
    alone: RealPlane, arguments: list[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    files = {
        "/etc/kubernetes/controller-manager.conf": alone.kubeconfig(MANAGER),
        "/etc/kubernetes/pki/ca.crt": alone.ca,
        "/etc/kubernetes/pki/ca.key": alone.ca_key,
        "/etc/kubernetes/pki/sa.key": alone.service_account_key,
        "/etc/kubernetes/pki/front-proxy-ca.crt": alone.ca,
    }
    given = [
        f"{flag}={files.get(value, value)}"
        for flag, _, value in (argument.partition("=") for argument in arguments)
    ]
    assert not any("/etc/kubernetes" in argument for argument in given)
    given += [f"--secure-port={alone.free_port()}", "--permit-port-sharing"]
    name = "unit" if "service" in request.node.callspec.id else "pod"
    manager = Child([sys.executable, "-c", PROGRAM, *given], tmp_path / "log")
    try:
        alone.kubectl("create", "deployment", name, "--image=app")
        until(
            lambda: alone.kubectl("get", "pods", "-o", "name", f"--selector=app={name}") != "",
            manager,
            40,
            "the Deployment has a pod",
        )
    finally:
        manager.stop()


def test_the_guides_kubeconfig_is_that_of_the_manager(alone: RealPlane, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on PATH")
    [script] = re.findall(r"```sh\n(openssl .*?)```", GUIDE.read_text(), re.DOTALL)
    for path, here in {
        "/etc/kubernetes/pki/ca.crt": alone.ca,
        "/etc/kubernetes/pki/ca.key": alone.ca_key,
        "/etc/kubernetes": tmp_path,
        "https://127.0.0.1:6443": alone.url,
    }.items():
        script = script.replace(path, str(here))
    path = os.pathsep.join((str(assets("kubectl")), os.environ["PATH"]))
    ran = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert MANAGER in ran.stdout
