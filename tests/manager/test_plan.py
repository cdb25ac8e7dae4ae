"""``steersman plan`` and ``steersman snapshot save`` of a cluster, from the command line."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.manager import cli
from steersman.manager.plan import manager_flags
from steersman.server.storage.store import Store
from steersman.snapshot.model import LoadedSnapshot
from steersman.testing import Cluster

WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:v1"}]},
        },
    },
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot that the command line has made of a served cluster."""
    directory = tmp_path_factory.mktemp("snapshots")
    file = directory / "one.snapshot"
    with Cluster(seed=1) as cluster:
        cluster.apply(WEB)
        cluster.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hunter2"}}
        )
        cluster.settle()
        assert cli.main(["snapshot", "save", str(file), f"--kubeconfig={cluster.kubeconfig}"]) == 0
        assert cli.main(["snapshot", "save", str(file), f"--kubeconfig={cluster.kubeconfig}"]) == 1
        assert (
            cli.main(
                ["snapshot", "save", "--force", "-ojson", str(file), f"--kubeconfig={cluster.kubeconfig}"]
            )
            == 0
        )
    return file


def plan(*words: object) -> int:
    return cli.main(["plan", *map(str, words)])


def test_a_plan_of_a_snapshot_is_told_in_all_forms(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "change.yaml"
    file.write_text(yaml.safe_dump({**WEB, "spec": {**WEB["spec"], "replicas": 4}}))
    assert plan("--from", snapshot, "-f", file, "--for=5m") == 0
    page = capsys.readouterr().out
    assert "spec.replicas: 2 -> 4" in page
    assert "Converges within" in page
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
    assert plan("--from", snapshot, "-f", "-", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["converged"]
    assert [each["verb"] for each in told["timeline"] if each["object"]["kind"] == "Pod"].count("create") == 2
    assert plan("--from", snapshot, "--scale=deploy/web=4", "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out)["converged"] is True
    assert plan("--from", snapshot, "--delete=deploy/web", "-o", "markdown") == 0
    assert capsys.readouterr().out.startswith("### Plan: delete deploy/web")


def test_the_exit_code_is_two_where_something_never_converges(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roll = ("--set-image=deploy/web=web:v9", "--assume=image=web:v9:never")
    assert plan("--from", snapshot, *roll) == 2
    page = capsys.readouterr().out
    assert "Never converges" in page
    assert "web:v9" in page
    assert "hunter2" not in page


def test_what_is_refused_in_a_plan_is_in_the_report_and_not_in_the_log(
    snapshot: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    quota = tmp_path / "quota.yaml"
    quota.write_text(
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: 2}}}\n"
    )
    assert plan("--from", snapshot, "-f", quota, "--scale=deploy/web=4") == 2
    assert "exceeded quota: few" in capsys.readouterr().out
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--delete=deploy/wev",), "did you mean 'web'"),
        (("--drain=node-7",), "no node 'node-7'"),
        (("--fail=node-x",), "no node 'node-x'"),
        ((), "there is no change"),
        (("--scale=deploy/web=many",), "KIND/NAME=REPLICAS"),
        (("--delete=deploy/web", "--for=soon"), "no duration"),
        (("--delete=deploy/web", "--for=99999999h"), "at most 4 weeks ahead (672h)"),
        (("--delete=deploy/web", f"--for={'9' * 400}h"), "at most 4 weeks ahead (672h)"),
        (("--delete=deploy/web", "--assume=redy=1s"), "did you mean 'ready'"),
        (("--delete=deploy/web", "--kubeconfig=x"), "pass one of them"),
        (("-f", "/no/such/file.yaml"), "/no/such/file.yaml: No such file"),
    ],
)
def test_what_cannot_be_planned_is_one_clear_error(
    snapshot: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan("--from", snapshot, *words) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_file_that_is_no_snapshot_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x"
    file.write_text("hello")
    assert plan("--from", file, "--delete=deploy/web") == 1
    assert "not a steersman snapshot" in capsys.readouterr().err
    assert cli.main(["up", f"--from={file}"]) == 1
    assert "not a steersman snapshot" in capsys.readouterr().err
    assert cli.main(["up", f"--from={file}", "--nodes=2"]) == 1
    assert "leave out --nodes" in capsys.readouterr().err


def test_a_snapshot_of_a_cluster_is_not_restored_into_a_data_directory(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["snapshot", "restore", str(snapshot), f"--data-dir={tmp_path / 'data'}"]) == 1
    assert "steersman up --from" in capsys.readouterr().err
    assert cli.main(["snapshot", "save", str(tmp_path / "y"), f"--data-dir={tmp_path}", "--events"]) == 1
    assert "--events is for the snapshot of a cluster" in capsys.readouterr().err


def test_the_flags_of_a_manager_that_runs_as_a_pod_are_taken_over() -> None:
    command = (
        "kube-controller-manager",
        "--node-monitor-grace-period=20s",
        "--root-ca-file=/x",
        "--allocate-node-cidrs=true",
    )
    pod = v1.Pod(
        metadata=ObjectMeta(
            name="m", namespace="kube-system", labels={"component": "kube-controller-manager"}
        ),
        spec=v1.PodSpec(containers=(v1.Container(name="m", image="m", command=command),)),
    )
    store = Store()
    loaded = LoadedSnapshot(store, datetime(2026, 1, 1, tzinfo=UTC))
    assert manager_flags(loaded) is None
    store.table("pods").load({"kube-system/m": pod})
    assert manager_flags(loaded) == {"node-monitor-grace-period": 20.0}
