"""Reports as text, markdown, documents and metrics, and the exit code that they mean."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from steersman.manager import output
from steersman.shadow.comparison import Tally
from steersman.shadow.report import (
    Difference,
    ErrorEntry,
    Excluded,
    Report,
    figures,
    markdown,
    metrics,
    text,
)

FIGURES = figures("deployment-controller", Tally(rounds=12, wanted=4, fulfilled=3, missing=1), 0)
QUIET = figures("job-controller", Tally(), 0)
FOUND = Difference(
    "missing",
    "deployment-controller",
    "ReplicaSet default/web-1",
    "create replicaset default/web-1; rolling update",
    "no such object was created",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:30Z",
)
AGREED = Report(
    "https://api",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:10:00Z",
    600.0,
    30.0,
    (replace(FIGURES, missing=0), QUIET),
    (),
    excluded=(Excluded("serviceaccount-token-controller", "signs with private keys"),),
)
DIFFERENT = replace(AGREED, controllers=(FIGURES, QUIET), differences=(FOUND,))
TROUBLED = replace(AGREED, errors=(ErrorEntry("job-controller default/one", "no rights"),))


@pytest.mark.parametrize(("report", "code"), [(AGREED, 0), (DIFFERENT, 2), (TROUBLED, 1)])
def test_the_exit_code_tells_agreement_differences_and_errors_apart(report: Report, code: int) -> None:
    assert report.exit_code == code


def test_a_difference_is_told_with_both_reasons() -> None:
    lines = list(text(DIFFERENT))
    assert lines[0].startswith("1 difference: deployment-controller ")
    told = "\n".join(lines)
    assert "ReplicaSet default/web-1: we would, they did not (deployment-controller)" in told
    assert "we:    create replicaset default/web-1; rolling update" in told
    assert "they:  no such object was created" in told


def test_what_is_not_compared_is_listed_with_its_reason() -> None:
    for lines in (text(AGREED), markdown(AGREED)):
        assert any("serviceaccount-token-controller" in line and "private keys" in line for line in lines)


def test_a_cell_of_markdown_cannot_end_its_table() -> None:
    lines = list(markdown(replace(DIFFERENT, differences=(replace(FOUND, ours="a | b"),))))
    assert any("a \\| b" in line for line in lines)


def test_metrics_are_read_by_prometheus() -> None:
    families = {one.name: one for one in text_string_to_metric_families(metrics(DIFFERENT))}
    found = {
        (sample.labels["controller"], sample.labels["side"]): sample.value
        for sample in families["steersman_shadow_differences"].samples
    }
    assert found["deployment-controller", "missing"] == 1
    assert found["deployment-controller", "extra"] == 0
    assert {sample.value for sample in families["steersman_shadow_rounds"].samples} == {12, 0}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_report_is_a_document(form: str) -> None:
    assert "deployment-controller" in output.document(DIFFERENT, form)


def test_a_shadow_that_decided_nothing_did_not_agree() -> None:
    report = replace(TROUBLED, controllers=(QUIET,))
    assert next(text(report)).startswith("nothing compared; 1 error (")
    assert next(text(TROUBLED)).startswith("agreed: 3 writes of 12 rounds; 1 error (")


def test_differences_that_are_only_counted_are_told() -> None:
    lines = list(text(replace(AGREED, more=1)))
    assert lines[0].startswith("1 difference (")
    assert "and 1 more difference" in lines


def test_late_differences_that_are_no_longer_listed_are_counted() -> None:
    report = replace(AGREED, controllers=(replace(FIGURES, late=1234),), late=(FOUND,))
    assert any(line.endswith("and then as we would: 1,234") for line in text(report))


def test_the_words_of_others_stay_in_their_line() -> None:
    told = replace(FOUND, theirs="manager says: a\nb\x1b[2J")
    report = replace(DIFFERENT, differences=(told,), errors=(ErrorEntry("job", "c\nd"),))
    for lines in (list(text(report)), list(markdown(report))):
        assert not any("\n" in line or "\x1b" in line for line in lines)
