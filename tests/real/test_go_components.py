"""Go's own kube-controller-manager and kube-scheduler, unmodified, steer the embedded plane under a mixed load.

They have their defaults, so they speak protobuf. The same load runs on a kube-apiserver: of the errors that a server can be at fault
for, they report none on the embedded plane that they do not report there. ``python -m tests.harness.go_components --minutes 60`` is the longer run.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.assets import assets
from tests.harness.go_components import COMPONENTS, server_faults, steer

SECONDS = 40.0


@pytest.mark.reference
async def test_no_error_is_logged_that_a_real_server_would_not_cause(tmp_path: Path) -> None:
    for name in COMPONENTS:
        if not (assets(name) / name).exists():
            pytest.skip(f"needs {name}")
    ours, theirs = tmp_path / "embedded", tmp_path / "real"
    for directory in (ours, theirs):
        directory.mkdir()
    async with asyncio.timeout(600):
        (here, rounds), (there, _) = await asyncio.gather(
            steer(real_server=False, seconds=SECONDS, directory=ours),
            steer(real_server=True, seconds=SECONDS, directory=theirs),
        )
    assert rounds >= 2
    logs = [(ours / f"{name}.log").read_text() for name in COMPONENTS]
    assert all("panic" not in text and "F1" not in text[:2] for text in logs)
    assert server_faults(here) - server_faults(there) == set()
