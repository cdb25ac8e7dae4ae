"""The plane itself: that it starts, refuses whom it should, counts, and leaves nothing behind."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.harness.envtest import RealPlane

HOLD = """
import signal
from tests.harness.envtest import RealPlane
# Ignored in what a shell starts in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
plane = RealPlane.start()
print(plane.dir, plane.etcd.pid, plane.apiserver.pid, flush=True)
signal.pause()
"""


def ends(pid: int, within: float = 10.0) -> bool:
    """Whether a process that is no child of ours ends in time."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def children() -> list[int]:
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in found.split()]


def planes() -> list[Path]:
    """The directories of this process's planes, wherever they are put."""
    roots = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return sorted(found for root in roots for found in root.glob(f"steersman-plane-{os.getpid()}-*"))


def test_a_plane_is_ready_and_has_its_namespaces(plane: RealPlane) -> None:
    assert plane.kubectl("get", "--raw", "/readyz") == "ok"
    names = plane.kubectl("get", "namespaces", "-o", "name").split()
    assert {"namespace/default", "namespace/kube-system"} <= set(names)


def test_a_user_nobody_knows_is_denied_by_rbac_and_the_audit_log_says_so(
    plane: RealPlane, namespace: str
) -> None:
    mark = plane.mark()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        plane.kubectl("get", "pods", "--namespace", namespace, user="nobody")
    assert 'User "nobody" cannot list resource "pods"' in refused.value.stderr
    entries = plane.audited(lambda e: e.user == "nobody" and e.resource == "pods", since=mark)
    asked = [e for e in entries if e.user == "nobody" and e.resource == "pods"]
    assert [(e.verb, e.namespace, e.code) for e in asked] == [("list", namespace, 403)]


def test_the_audit_log_counts_every_request_once(plane: RealPlane, namespace: str) -> None:
    mark = plane.mark()
    for name in ("one", "two", "three"):
        plane.kubectl("create", "configmap", name, "--namespace", namespace)
    entries = plane.audited(lambda e: e.name == "three", since=mark)
    made = [e for e in entries if e.verb == "create" and e.namespace == namespace]
    assert [(e.target, e.name, e.user, e.code) for e in made] == [
        ("configmaps", name, "admin", 201) for name in ("one", "two", "three")
    ]
    assert all(e.agent.startswith("kubectl/") and e.received <= e.answered for e in made)


def test_a_watch_is_counted_when_it_starts_and_not_again_when_it_ends(
    plane: RealPlane, namespace: str
) -> None:
    mark = plane.mark()
    plane.kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/secrets?watch=1&timeoutSeconds=1")
    plane.kubectl("get", "secrets", "--namespace", namespace)
    entries = plane.audited(lambda e: e.verb == "list" and e.namespace == namespace, since=mark)
    assert [e.code for e in entries if e.verb == "watch" and e.namespace == namespace] == [200]


def test_a_pod_without_its_service_account_is_refused(plane: RealPlane, namespace: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        plane.kubectl("run", "lonely", "--image=any", "--namespace", namespace)
    assert 'serviceaccount "default" not found' in refused.value.stderr


def test_only_the_owner_may_read_a_kubeconfig(plane: RealPlane) -> None:
    assert stat.S_IMODE(plane.kubeconfig("someone").stat().st_mode) == 0o600
    assert stat.S_IMODE(plane.dir.stat().st_mode) == 0o700


def test_a_plane_that_cannot_start_says_why_and_leaves_nothing_behind() -> None:
    before = children(), planes()
    with pytest.raises(RuntimeError, match="unknown flag: --no-such-flag"):
        RealPlane.start(apiserver=["--no-such-flag"])
    assert (children(), planes()) == before


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_running_when_its_process_is_killed(sig: signal.Signals) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    where, *pids = holder.stdout.readline().split()
    holder.send_signal(sig)
    assert holder.wait(60) != 0
    holder.stdout.close()
    assert len(pids) == 2
    assert all(ends(int(pid)) for pid in pids)
    if sig is not signal.SIGKILL:
        assert not Path(where).exists()
