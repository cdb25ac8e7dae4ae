"""A cluster with a bit of everything that managers take over from each other, and what changes meanwhile.

One plane with kube-scheduler and simulated kubelets. The reference brings the cluster up; then each manager in turn runs it for a while.
Whatever a manager writes then, or whatever object has another resourceVersion afterwards, is a difference between the two, leases, events
and what kubelets report excepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from steersman.api.clock import RealClock
from steersman.api.partial_object import PartialObject
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets, KubeletSettings
from tests.harness.assets import Binary
from tests.harness.audit import AuditEntry
from tests.harness.child_process import Child, tail
from tests.harness.envtest import MANAGER, RealPlane
from tests.harness.follow import beside

MANIFEST = Path(__file__).with_name("hand_over.yaml")
NAMESPACE = "everything"
NODES = ("node-1", "node-2")
HEARTBEATS = ("leases.coordination.k8s.io", "events", "events.events.k8s.io", "nodes")
"""Resources that change all the time: of nodes, only what managers write is looked at."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
REVIEWS = ("leases", "events", "tokenreviews", "subjectaccessreviews", "serviceaccounts/token")
"""What a manager writes without changing the cluster."""
SHORT_LEASE = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
)
"""For shifts of seconds: the next manager waits until the lease of the last has expired."""
LONG = 60.0
"""Seconds of a shift from which the lease is the default one."""
QUIET = 20.0
"""Seconds without a write after which the cluster is at rest: autoscalers are looked at every 15."""
PATIENCE = 180.0


@dataclass(frozen=True)
class Shift:
    """The time for which one manager ran the cluster."""

    binary: Binary
    seconds: float
    writes: tuple[str, ...]
    """Verb, resource and name of what it wrote, besides leases and events."""
    changed: tuple[str, ...]
    """Objects that came, went or changed."""
    objects: int


@dataclass
class Cluster:
    plane: RealPlane
    api: HttpApi

    def start(self, binary: Binary, *, lease: Sequence[str] = SHORT_LEASE) -> Child:
        plane = self.plane
        return plane.manager(
            "--use-service-account-credentials=true",
            "--leader-elect=true",
            *lease,
            "--allocate-node-cidrs=true",
            "--cluster-cidr=10.244.0.0/16",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--root-ca-file={plane.ca}",
            f"--service-account-private-key-file={plane.service_account_key}",
            f"--cluster-signing-cert-file={plane.ca}",
            f"--cluster-signing-key-file={plane.ca_key}",
            binary=binary,
        )

    async def rest(self, mark: int, manager: Child) -> None:
        """Wait until no manager and no scheduler has written for a while. Raises `TimeoutError`."""
        async with asyncio.timeout(PATIENCE):
            seen, since = -1, asyncio.get_running_loop().time()
            while True:
                _check(manager)
                count = sum(1 for entry in self.plane.audit(mark) if _writes(entry))
                now = asyncio.get_running_loop().time()
                if count != seen:
                    seen, since = count, now
                elif now - since >= QUIET:
                    return
                await asyncio.sleep(0.5)

    async def versions(self) -> Mapping[str, str]:
        """The resourceVersion of every object, by resource and key."""
        found: dict[str, str] = {}
        discovered = await self.api.discover()
        for resource in discovered.preferred:
            if resource.id in HEARTBEATS or not resource.supports("list", "watch"):
                continue
            async for obj in _all(self.api, resource.partial):
                found[f"{resource.id} {obj.key}"] = obj.metadata.resourceVersion
        return found

    async def shift(self, binary: Binary, seconds: float) -> Shift:
        """Let a manager run the cluster, and take stock."""
        before, mark = await self.versions(), self.plane.mark()
        manager = self.start(binary, lease=() if seconds >= LONG else SHORT_LEASE)
        try:
            loop = asyncio.get_running_loop()
            end = loop.time() + seconds
            while (left := end - loop.time()) > 0:
                _check(manager)
                await asyncio.sleep(min(1.0, left))
            after = await self.versions()
            entries = self.plane.audit(mark)
        finally:
            manager.stop()
        assert any(_leads(entry) for entry in entries), f"{binary} never led:\n{tail(manager)}"
        differ = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        writes = tuple(
            f"{entry.verb} {entry.target} {entry.namespace}/{entry.name} by {entry.user.rpartition(':')[2]}: {entry.code}"
            for entry in entries
            if _writes(entry)
        )
        return Shift(binary, seconds, writes, tuple(differ), len(after))


async def _all(api: HttpApi, kind: Kind[PartialObject]) -> AsyncIterator[PartialObject]:
    token = ""
    while True:
        page = await api.list(kind, limit=500, continue_=token)
        for item in page.items:
            assert isinstance(item, PartialObject)
            yield item
        token = page.continue_
        if not token:
            return


def _is_a_manager(entry: AuditEntry) -> bool:
    return entry.user == MANAGER or entry.user.startswith("system:serviceaccount:kube-system:")


def _writes(entry: AuditEntry) -> bool:
    return _is_a_manager(entry) and entry.verb in WRITES and entry.target not in REVIEWS


def _leads(entry: AuditEntry) -> bool:
    return _is_a_manager(entry) and entry.target == "leases" and entry.verb in ("create", "update")


def _check(manager: Child) -> None:
    if manager.code is not None:
        raise RuntimeError(f"a manager has ended:\n{tail(manager)}")


def _apply(plane: RealPlane) -> None:
    plane.kubectl("create", "namespace", NAMESPACE)
    # Pods cannot be created before the account that they run as.
    plane.kubectl(
        "wait", "--for=create", "serviceaccount/default", f"--namespace={NAMESPACE}", "--timeout=50s"
    )
    plane.kubectl("apply", "--server-side", "-f", str(MANIFEST))


@asynccontextmanager
async def cluster(say: Callable[[str], None] = lambda text: None) -> AsyncIterator[Cluster]:
    """A cluster with a bit of everything, brought up by the reference and at rest."""
    plane = RealPlane.start()
    try:
        async with plane.connect() as api:
            made = Cluster(plane, api)
            mark = plane.mark()
            manager = made.start("kube-controller-manager")
            plane.scheduler("--leader-elect=false")
            kubelets = Kubelets(api, RealClock(), NODES, settings=KubeletSettings(start_delay=0.2))
            async with beside(kubelets.run()):
                say("bringing the cluster up")
                await asyncio.to_thread(_apply, plane)
                await made.rest(mark, manager)
                manager.stop()
                yield made
    finally:
        plane.close()
