"""The audit log: what a real server's log has of the same requests, and what is done where it cannot be written."""

from __future__ import annotations

import json
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
