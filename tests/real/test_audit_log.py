"""The audit log of ``steersman up --audit-log`` beside that of a real kube-apiserver: the same events for the same requests.

``python -m tests.real.test_audit_log`` writes anew what the real server's log has.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

from steersman.api.signing_keys import KeySet
from tests.harness.envtest import RealPlane
from tests.real.audit_rows import audited
from tests.real.scenario_play import Target, embedded

RECORDED = Path(__file__).with_name("audit.json")


async def really_audited() -> dict[str, Any]:
    with RealPlane.start() as plane:
        target = Target(
            plane.url,
            lambda user: plane.tls(user) if user else ssl.create_default_context(cafile=str(plane.ca)),
            KeySet.load(plane.service_account_key.read_bytes()),
            lambda: None,
        )
        return await audited(target, plane.audit_path)


async def test_both_audit_logs_have_the_same_events(tmp_path: Path) -> None:
    theirs = await really_audited()
    assert theirs == json.loads(RECORDED.read_text()), "the real server does not log what was written down"
    async with embedded(tmp_path / "audit.log") as target:
        assert await audited(target, tmp_path / "audit.log") == theirs


if __name__ == "__main__":
    made = asyncio.run(really_audited())
    lines = ",\n".join(f"{json.dumps(title)}: {json.dumps(entry)}" for title, entry in made.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
