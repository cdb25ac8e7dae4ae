"""The demo tells the same story every time."""

from pathlib import Path

import pytest

from steersman.manager import cli


def test_the_demo_rolls_fails_at_the_deadline_and_recovers(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert "create Deployment shop with 3 replicas" in first[0]
    assert any("rollout made no progress for 600s" in line for line in first)
    assert "5 of 5 replicas updated and available" in first[-3]
    assert cli.main(["demo"]) == 0
    # All but the last line, which says how long it took.
    assert capsys.readouterr().out.splitlines()[:-1] == first[:-1]


MINE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: team}
spec:
  replicas: 2
  progressDeadlineSeconds: 60
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: main, image: "registry.example:5000/team/api@sha256:01", envFrom: [{configMapRef: {name: settings}}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
---
apiVersion: v1
kind: List
items:
- apiVersion: serving.knative.dev/v1
  kind: Service
  metadata: {name: function}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: c, image: "web:v2"}]}
"""


def test_all_steps_are_played_on_the_deployments_of_a_file_in_their_namespaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    assert cli.main(["demo", f"--file={path}"]) == 0
    lines = [line[10:] for line in capsys.readouterr().out.splitlines()]
    assert [line[12:] for line in lines if line.startswith("you ")] == [
        "create Deployment team/api with 2 replicas",
        "create Deployment web with 1 replica",
        "team/api: scale to 4",
        "web: scale to 3",
        "team/api: roll out registry.example:5000/team/api:v2",
        "web: roll out web:v3",
        "team/api: roll out registry.example:5000/team/api:bad, an image that cannot be pulled",
        "web: roll out web:bad, an image that cannot be pulled",
        "team/api: roll back to registry.example:5000/team/api:v2",
        "web: roll back to web:v3",
    ]
    assert lines[0] == "demo        leaves out CronJob nightly, Service function: it plays Deployments"
    verdicts = [line[12:] for line in lines if line.startswith("why ")]
    assert verdicts[:2] == [
        "team/api rests: 2 of 2 replicas updated and available",
        "web rests: 1 of 1 replicas updated and available",
    ]
    assert verdicts[-4:] == [
        "team/api rests: rollout made no progress for 60s: 0 of 4 new replicas available, 2 created, "
        "3 old pods remaining",
        "web rests: rollout made no progress for 600s: 0 of 3 new replicas available, 1 created, "
        "3 old pods remaining",
        "team/api rests: 4 of 4 replicas updated and available",
        "web rests: 3 of 3 replicas updated and available",
    ]


def test_counts_are_those_of_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    stuck = next(line for line in lines if "made no progress" in line)
    begin = next(number for number, line in enumerate(lines) if "roll out shop:bad" in line)
    during = lines[begin : lines.index(stuck)]
    created = sum("replicaset  Created pod" in line for line in during)
    assert f"0 of 5 new replicas available, {created} created, 4 old pods remaining" in stuck
    assert any(line.endswith(f"Error: ErrImagePull ({created} times)") for line in during)


def test_a_deployment_that_the_server_refuses_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
    assert cli.main(["demo", "-f", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f'Error: {path}: Deployment.apps "web" is invalid: ')
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no Deployment found"),
        ("[1]", "manifest"),
        ("just text", "manifest"),
        ("{", "expected the node content"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_manifest_is_one_line(
    text: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text)
    assert cli.main(["demo", f"--file={path}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"Error: {path}: ")
    assert words in said
    assert said.count("\n") == 1
