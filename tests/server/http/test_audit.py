"""The audit log: what a real server's log has of the same requests, and what is done where it cannot be written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.server.http import audit
from tests.real.audit_rows import ROWS, audited
from tests.real.scenario_play import embedded
from tests.real.test_audit_log import RECORDED


def _differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}")
    elif one != other:
        yield f"{path}: {one!r} here, {other!r} there"


async def test_the_audit_log_has_the_events_that_a_real_server_wrote(tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text())
    assert list(recorded) == [row.title for row in ROWS]
    async with embedded(tmp_path / "audit.log") as target:
        ours = await audited(target, tmp_path / "audit.log")
    assert "\n".join(_differences(ours, recorded)) == ""


async def test_a_request_without_a_user_and_one_that_names_its_id_are_in_the_log(tmp_path: Path) -> None:
    async with embedded(tmp_path / "audit.log") as target:
        connector = aiohttp.TCPConnector(ssl=target.context(""))
        async with aiohttp.ClientSession(target.url, connector=connector) as session:
            async with session.get("/version", headers={"Audit-ID": "mine"}) as answer:
                assert answer.headers["Audit-Id"] == "mine"
            async with session.get("/version", headers={"Authorization": "Bearer secret"}) as answer:
                assert answer.status == 401
    text = (tmp_path / "audit.log").read_text()
    known, refused = map(json.loads, text.splitlines())
    assert known["auditID"] == "mine"
    # As a real server logs it.
    assert (refused["stage"], refused["user"], refused["responseStatus"]["code"]) == (
        "ResponseStarted",
        {},
        401,
    )
    assert "secret" not in text


def test_a_log_that_has_grown_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_SIZE", 10)
    log = audit.AuditLog(tmp_path / "log")
    log.write({"a": "long enough"})
    log.write({"b": 1})
    log.close()
    assert (tmp_path / "log").read_text() == '{"b":1}\n'
    assert (tmp_path / "log.1").read_text() == '{"a":"long enough"}\n'
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_a_line_that_cannot_be_written_is_lost_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = audit.AuditLog(Path("/dev/full"))
    log.write({"a": 1})
    log.write({"a": 2})
    log.close()
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        "cannot write the audit log /dev/full"
    ]


def test_a_log_that_cannot_be_opened_anew_goes_on_in_the_old_file_and_in_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_SIZE", 10)
    path = tmp_path / "log"
    log = audit.AuditLog(path)

    def fail(*of: Any) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as full:
        full.setattr(os, "open", fail)
        log.write({"a": "long enough"})
    # What is opened next gets the lowest number that is free.
    with (tmp_path / "other").open("wb"):
        log.write({"b": 1})
        log.write({"c": 1})
    log.close()
    assert (tmp_path / "other").read_bytes() == b""
    assert (tmp_path / "log.1").read_text() == '{"a":"long enough"}\n{"b":1}\n'
    assert path.read_text() == '{"c":1}\n'


async def test_a_long_user_agent_is_cut_off_as_upstream_does_it(tmp_path: Path) -> None:
    async with embedded(tmp_path / "audit.log") as target:
        connector = aiohttp.TCPConnector(ssl=target.context(""))
        headers = {"User-Agent": "x" * 100_000}
        async with (
            aiohttp.ClientSession(target.url, connector=connector) as session,
            session.get("/version", headers=headers) as answer,
        ):
            assert answer.status == 200
    (event,) = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert event["userAgent"] == "x" * 1024 + "...TRUNCATED"
