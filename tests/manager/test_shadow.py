"""``steersman shadow`` as a command: over HTTP beside `steersman up`, and what it says to bad input."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from steersman.api.clock import RealClock
from steersman.api.scheme import Kind
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.manager import cli
from steersman.manager.control_plane import run_control_plane
from steersman.manager.up import read

RBAC = "rbac.authorization.k8s.io"
STEERSMAN = [sys.executable, "-m", "steersman.manager.cli"]


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STEERSMAN, *argv], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_it_agrees_with_the_controllers_of_an_embedded_control_plane(tmp_path: Path) -> None:
    shadow = ("shadow", "--for=4s", "--grace=1s", "-o=json", "--report=report.json", "--metrics-file=metrics")
    done = run("up", "--port=0", "--nodes=1", "--quiet", "--", *STEERSMAN, *shadow, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["differences"] == report["errors"] == []
    assert sum(each["rounds"] for each in report["controllers"]) > 0
    assert "steersman_shadow_rounds_total" in (tmp_path / "metrics").read_text()


def test_it_finds_that_no_manager_acts(tmp_path: Path) -> None:
    shadow = ("shadow", "--for=6s", "--grace=1s", "--controllers=serviceaccount-controller")
    done = run(
        "up", "--port=0", "--nodes=0", "--no-controllers", "--quiet", "--", *STEERSMAN, *shadow, cwd=tmp_path
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "ServiceAccount default/default: we would, they did not (serviceaccount-controller)" in done.stdout
    assert "they:  no such object was created" in done.stdout


async def test_without_the_right_to_list_events_it_says_which_role_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, limited = tmp_path / "config", tmp_path / "limited"
    role = {"apiGroups": ["", "apps"], "resources": ["pods", "deployments", "replicasets"], "verbs": ["list"]}
    subject = {"kind": "User", "name": "limited", "apiGroup": RBAC}
    async with (
        asyncio.timeout(60),
        run_control_plane(read(["--port=0", "--nodes=0", f"--kubeconfig={config}"]), RealClock()),
        HttpApi(kubeconfig.load(str(config)), qps=0) as api,
    ):
        meta = {"metadata": {"name": "limited"}}
        await api.create(
            Kind(RBAC, "v1", "ClusterRole", "clusterroles", False, dict), "", {**meta, "rules": [role]}
        )
        reference = {"kind": "ClusterRole", "name": "limited", "apiGroup": RBAC}
        binding = {**meta, "roleRef": reference, "subjects": [subject]}
        bindings = Kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False, dict)
        await api.create(bindings, "", binding)
        found = yaml.safe_load(config.read_text())
        found["users"][0]["user"]["as"] = "limited"
        limited.write_text(yaml.safe_dump(found))
        words = ["shadow", f"--kubeconfig={limited}", "--controllers=deployment-controller", "--for=1s"]
        assert await asyncio.to_thread(cli.main, words) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Error: https://127.0.0.1:")
    assert 'cannot list resource "events"' in told.err
    assert told.err.endswith("; deploy/rbac-read-only.yaml has the rights of a shadow\n")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--grace=0s",), "--grace must be more than 0"),
        (("--report=absent/report.json",), "--report: there is no directory absent"),
        (("--metrics-file=absent/metrics",), "--metrics-file: there is no directory absent"),
        (("--controllers=-ttl",), "--controllers selects no controller"),
        (("--controllers=tll",), "did you mean"),
        (("--kubeconfig=absent",), "absent"),
    ],
)
def test_bad_input_is_one_line_that_names_it(tmp_path: Path, argv: Sequence[str], message: str) -> None:
    done = run("shadow", *argv, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
