"""Leases and events as a real API server takes them, and an election against the reference manager."""

from __future__ import annotations

import asyncio
import re

from steersman.api.clock import RealClock
from steersman.api.kinds import LEASES, Lease
from steersman.runtime.event_correlator import COMBINED
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.events import EVENTS, SERIES_EVENTS, Event, SeriesEvent
from steersman.runtime.leader_election import LeaderElector
from steersman.runtime.lease import identity
from tests.harness.child_process import Child
from tests.harness.envtest import MANAGER, RealPlane

NAME = "kube-controller-manager"


async def test_the_server_takes_our_leases_and_events(plane: RealPlane, namespace: str) -> None:
    clock = RealClock()
    async with plane.connect(MANAGER) as api, plane.connect() as admin:
        recorder = Recorder(api, clock, component=NAME)
        series = Recorder(admin, clock, component="steersman", host="box", sink="events.k8s.io")
        elector = LeaderElector(
            api,
            clock,
            name=NAME,
            namespace=namespace,
            identity=identity(clock),
            release_on_cancel=True,
            emit=recorder.emit,
        )
        held: list[Lease] = []

        async def lead() -> None:
            assert elector.fence()
            lease = await api.get(LEASES, namespace, NAME)
            held.append(lease)
            for number in range(14):
                recorder.emit(lease, "Normal", "Said", f"message {number}")
                series.emit(lease, "Warning", "Said", "ä" * 2000, action="Saying")

        await elector.run(lead)
        await recorder.close(10)
        await series.close(10)
        assert (recorder.dropped, series.dropped) == (0, 0)
        [lease] = held
        assert lease.spec.holderIdentity == elector.identity
        released = await api.get(LEASES, namespace, NAME)
        assert (released.spec.holderIdentity, released.spec.leaseDurationSeconds) == ("", 1)
        # Both groups serve both kinds of events; each is read by what only it has.
        events = [one for one in (await admin.list(EVENTS, namespace)).items if isinstance(one, Event)]
        counts = {one.message: one.count for one in events if one.source.component == NAME}
        assert counts == {
            f"{elector.identity} became leader": 1,
            f"{elector.identity} stopped leading": 1,
            **{f"message {number}": 1 for number in range(9)},
            f"{COMBINED}message 13": 5,
        }
        found = (await admin.list(SERIES_EVENTS, namespace)).items
        [one] = [
            one for one in found if isinstance(one, SeriesEvent) and one.reportingController == "steersman"
        ]
        assert one.note == "ä" * 512
        assert one.series is not None
        assert one.series.count == 14


async def test_we_wait_for_the_reference_and_follow_it_when_it_is_gone(
    plane: RealPlane, namespace: str
) -> None:
    clock = RealClock()
    loop = asyncio.get_running_loop()
    seen: asyncio.Future[str] = loop.create_future()
    won: asyncio.Future[None] = loop.create_future()

    def noticed(leader: str) -> None:
        if leader and not seen.done():
            seen.set_result(leader)

    async def lead() -> None:
        won.set_result(None)

    reference = plane.manager(
        "--controllers=token-cleaner-controller",
        f"--leader-elect-resource-namespace={namespace}",
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
        binary="kube-controller-manager",
    )
    try:
        async with asyncio.timeout(60), plane.connect(MANAGER) as api, plane.connect() as admin:
            # Our candidate starts when the reference leads, so that who is first is no matter of luck.
            async for event in admin.watch(LEASES, namespace):
                if isinstance(event.obj, Lease) and event.obj.spec.holderIdentity:
                    break
            ours = LeaderElector(
                api,
                clock,
                name=NAME,
                namespace=namespace,
                identity=identity(clock),
                lease_duration=3,
                renew_deadline=2,
                retry_period=0.5,
                on_new_leader=noticed,
            )
            running = asyncio.create_task(ours.run(lead))
            holder = await seen
            assert re.fullmatch(r".+_[0-9a-f-]{36}", holder)
            assert holder != ours.identity
            assert not ours.fence()
            reference.end()
            await running
            assert won.done()
            lease = await api.get(LEASES, namespace, NAME)
            assert (lease.spec.holderIdentity, lease.spec.leaseTransitions) == (ours.identity, 1)
    finally:
        reference.end()


async def test_the_reference_follows_us_at_once_when_we_release(plane: RealPlane, namespace: str) -> None:
    clock = RealClock()
    managers: list[Child] = []

    async def lead() -> None:
        flags = ("--controllers=token-cleaner-controller", f"--leader-elect-resource-namespace={namespace}")
        managers.append(plane.manager(*flags, binary="kube-controller-manager"))

    try:
        async with asyncio.timeout(60), plane.connect(MANAGER) as api, plane.connect() as admin:
            who = identity(clock)
            ours = LeaderElector(
                api, clock, name=NAME, namespace=namespace, identity=who, release_on_cancel=True
            )
            await ours.run(lead)
            async for event in admin.watch(LEASES, namespace):
                lease = event.obj
                if isinstance(lease, Lease) and lease.spec.holderIdentity not in ("", who):
                    assert re.fullmatch(r".+_[0-9a-f-]{36}", lease.spec.holderIdentity or "")
                    assert lease.spec.leaseTransitions == 1
                    break
            else:
                raise AssertionError("the watch ended")
    finally:
        for manager in managers:
            manager.end()
