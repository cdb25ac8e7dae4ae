"""Reading an audit log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness import audit


def line(ident: str, verb: str, stage: str = "ResponseComplete", **more: object) -> bytes:
    entry = {
        "kind": "Event",
        "auditID": ident,
        "stage": stage,
        "requestURI": "/apis/apps/v1/namespaces/default/deployments/web/status",
        "verb": verb,
        "user": {"username": "system:kube-controller-manager", "groups": ["system:authenticated"]},
        "userAgent": "steersman",
        "objectRef": {
            "resource": "deployments",
            "namespace": "default",
            "name": "web",
            "apiGroup": "apps",
            "subresource": "status",
        },
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
        "stageTimestamp": "2026-01-01T00:00:00.000002Z",
        **more,
    }
    return json.dumps(entry).encode() + b"\n"


def test_an_entry_says_who_asked_for_what(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(line("a", "update"))
    [entry] = audit.read(log)
    assert (entry.user, entry.verb, entry.group, entry.target, entry.name, entry.code) == (
        "system:kube-controller-manager",
        "update",
        "apps",
        "deployments/status",
        "web",
        200,
    )
    assert entry.received < entry.answered


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    first, second = line("a", "update"), line("b", "delete")
    log.write_bytes(first + second[:40])
    assert [e.verb for e in audit.read(log)] == ["update"]
    log.write_bytes(first + second)
    assert [e.verb for e in audit.read(log, since=len(first))] == ["delete"]


@pytest.mark.parametrize("block", [16, 65536])
def test_the_end_is_behind_the_last_whole_line(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_BLOCK", block)
    log = tmp_path / "audit.log"
    assert audit.end(log) == 0
    first, second = line("a", "update"), line("b", "delete")
    for written, end in ((first[:40], 0), (first, len(first)), (first + second[:-1], len(first))):
        log.write_bytes(written)
        assert audit.end(log) == end


def test_a_watch_counts_once_though_it_starts_and_ends() -> None:
    lines = [
        line("a", "watch", "ResponseStarted"),
        line("b", "watch", "ResponseStarted"),
        line("a", "watch", "ResponseComplete"),
        line("c", "watch", "ResponseComplete", responseStatus={"code": 410}),
    ]
    assert [e.code for e in audit.parse(lines)] == [200, 200, 410]


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert audit.read(tmp_path / "audit.log") == []
