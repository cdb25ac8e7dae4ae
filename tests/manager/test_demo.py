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


def test_the_demo_takes_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        """\
apiVersion: v1
kind: Service
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mine}
spec:
  replicas: 2
  selector: {matchLabels: {app: mine}}
  template:
    metadata: {labels: {app: mine}}
    spec: {containers: [{name: c, image: i}]}
"""
    )
    assert cli.main(["demo", f"--file={path}"]) == 0
    assert "mine rests: 2 of 2 replicas updated and available" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no Deployment found"), ("{", "expected the node content"), (None, "No such file")],
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
