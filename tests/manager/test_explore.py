"""``steersman explore`` as a command: its flags, and what it prints."""

from __future__ import annotations

import json

import pytest
import yaml

from steersman.manager import cli


def test_writes_take_time_in_every_trial_if_the_flag_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--write-latency=10ms,200ms", "--faults=crash_after_write(3)", "--seed=4"]
    assert cli.main(["explore", "deployment-create", *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "deployment-create: request_latency(minimum=0.01, maximum=0.2) + crash_after_write(3)"
    assert any("requests take 0.01 s to 0.2 s" in line for line in lines)
    assert any("crash after write 3" in line for line in lines)


def test_a_latency_of_its_own_comes_before_that_of_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(
            ["explore", "deployment-create", "--write-latency=1ms,2ms", "--faults=request_latency(0.1, 0.2)"]
        )
        == 0
    )
    assert "deployment-create: request_latency(minimum=0.1, maximum=0.2)\n" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["300ms", "1ms,2ms,3ms", "soon,later", "2s,1s"])
def test_a_latency_that_is_no_range_is_refused(capsys: pytest.CaptureFixture[str], given: str) -> None:
    assert (
        cli.main(["explore", "deployment-create", "--faults=request_latency", f"--write-latency={given}"])
        == 1
    )
    said = capsys.readouterr().err
    assert "Error: write latency: " in said
    assert "(" not in said


def test_latencies_can_be_all_that_is_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["explore", "deployment-create", "--faults=request_latency", "--seeds=2", "--jobs=1"]) == 0
    )
    assert "2 runs" in capsys.readouterr().out


def test_programs_read_the_trials_as_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explore", "--faults=request_latency", "--seeds=2", "--jobs=1", "deployment-create"]
    assert cli.main([*words, "-o", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["scenario"], told["runs"], told["findings"]) == ("deployment-create", 2, 0)
    words = ["explore", "-o", "yaml", "deployment-create", "--faults=crash_after_write(3)"]
    assert cli.main(words) == 0
    (told,) = yaml.safe_load(capsys.readouterr().out)
    assert told["findings"] == []
    assert told["faults"] == "crash_after_write(3)"
    assert cli.main([*words, "--history"]) == 1
    assert "--history is text for people: pass it without --output=yaml" in capsys.readouterr().err
