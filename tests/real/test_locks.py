"""The locks of a manager on a real API server: released or not, two of them, and one that the server hands out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.api.kinds import DEPLOYMENTS, LEASES, REPLICASETS, Lease
from steersman.client.api import Api
from steersman.runtime.events import EVENTS, Event
from steersman.runtime.lease_candidate import CANDIDATES
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import until

LEASE = "kube-controller-manager"
SYSTEM = "kube-system"
RELEASE = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit"
MIGRATION = """\
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: {name}
controllerLeaders:
- name: replicaset-controller
  component: "*"
- name: job-controller
  component: cloud-controller-manager
"""
WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "app"}]},
        },
    },
}
LIMIT = 90.0

Start = Callable[..., Child]


@contextmanager
def starting(plane: RealPlane) -> Iterator[Start]:
    """Starts managers, and ends them."""
    started: list[Child] = []

    def start(*argv: str) -> Child:
        started.append(plane.manager(*argv))
        return started[-1]

    try:
        yield start
    finally:
        for child in started:
            child.end()


@pytest.fixture
def start(plane: RealPlane) -> Iterator[Start]:
    with starting(plane) as found:
        yield found


async def held(api: Api, namespace: str, name: str = LEASE, but: str = "") -> str:
    """Who holds a lease, once somebody does who is not the one named."""

    def taken(lease: Lease) -> bool:
        return lease.spec.holderIdentity not in (None, "", but)

    return (await until(api, LEASES, namespace, name, taken)).spec.holderIdentity or ""


@pytest.mark.parametrize(("gate", "released"), [("true", True), ("false", False)])
async def test_told_to_stop_it_succeeds_and_releases_the_lease_if_the_gate_says_so(
    plane: RealPlane, namespace: str, start: Start, gate: str, released: bool
) -> None:
    async with asyncio.timeout(LIMIT), plane.connect() as api:
        flags = ("--controllers=replicaset-controller", f"--leader-elect-resource-namespace={namespace}")
        manager = start(*flags, f"{RELEASE}={gate}")
        who = await held(api, namespace)
        await until(
            api, LEASES, namespace, LEASE, lambda lease: lease.spec.renewTime != lease.spec.acquireTime
        )
        manager.kill(signal.SIGTERM)
        assert await manager.exited() == 0
        lease = await api.get(LEASES, namespace, LEASE)
        assert lease.spec.holderIdentity == ("" if released else who)
        events = [one for one in (await api.list(EVENTS, namespace)).items if isinstance(one, Event)]
        told = {one.message: (one.reason, one.source.component) for one in events}
        assert told == {
            f"{who} {what}": ("LeaderElection", LEASE) for what in ("became leader", "stopped leading")
        }


async def test_migrated_controllers_have_a_lock_of_their_own_and_losing_it_ends_them_all(
    plane: RealPlane, namespace: str, start: Start, tmp_path: Path
) -> None:
    # A manager may have leases of any name in kube-system only.
    main, moving = f"main-{namespace}", f"moving-{namespace}"
    config = tmp_path / "migration.yaml"
    config.write_text(MIGRATION.format(name=moving))
    async with asyncio.timeout(LIMIT), plane.connect() as api:
        manager = start(
            "--controllers=serviceaccount-controller,deployment-controller,replicaset-controller,job-controller",
            f"--leader-elect-resource-name={main}",
            "--use-service-account-credentials=true",
            "--enable-leader-migration",
            f"--leader-migration-config={config}",
        )
        assert await held(api, SYSTEM, moving) == await held(api, SYSTEM, main)
        # The one is at work under the main lock, the other under that of the migration.
        await api.create(DEPLOYMENTS.untyped, namespace, WEB)
        sets = await until(api, DEPLOYMENTS, namespace, "web", lambda web: web.status.replicas == 1)
        assert sets.status.observedGeneration == 1
        assert [one.status.replicas for one in (await api.list(REPLICASETS, namespace)).items] == [1]
        await api.patch(LEASES, SYSTEM, moving, {"spec": {"holderIdentity": "thief"}})
        assert await manager.exited() == 1
        assert f"leaderelection lost: {SYSTEM}/{moving}: held by thief" in manager.log()


async def test_the_server_has_the_candidate_lead_that_emulates_the_oldest_version() -> None:
    flags = ("--controllers=replicaset-controller", "--feature-gates=CoordinatedLeaderElection=true")
    served = (
        "--feature-gates=CoordinatedLeaderElection=true",
        "--runtime-config=coordination.k8s.io/v1beta1=true",
    )
    with RealPlane.start(apiserver=served) as plane, starting(plane) as start:
        async with asyncio.timeout(LIMIT), plane.connect() as api:
            newer = start(*flags)
            # The server chooses it for five seconds; it leads once it has renewed that for its own time.
            lease = await until(api, LEASES, SYSTEM, LEASE, lambda one: one.spec.leaseDurationSeconds == 15)
            first = lease.spec.holderIdentity or ""
            start(*flags, "--emulated-version=1.35")
            # Asked whether they are there, both answer; then the first is told to make way.
            assert await newer.exited() == 1
            second = await held(api, SYSTEM, but=first)
            assert f"leaderelection lost: {SYSTEM}/{LEASE}: the server prefers {second}" in newer.log()
            candidates = (await api.list(CANDIDATES, SYSTEM)).items
            versions = {one["metadata"]["name"]: one["spec"]["emulationVersion"] for one in candidates}
            assert versions == {first: "1.36.0", second: "1.35.0"}
