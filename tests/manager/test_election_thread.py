"""Leader election on its own thread: leases are renewed whatever the main loop does, and never for one that is dead."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from steersman.api.clock import RealClock
from steersman.api.kinds import LEASES
from steersman.api.scheme import Kind
from steersman.intent.controller import Controller
from steersman.manager.election import LeaderElection
from steersman.manager.election_thread import MISSES, ElectionThread
from steersman.manager.options import read
from steersman.runtime.leader_election import LostLease
from steersman.runtime.metrics import Metrics
from steersman.server.auth.users import User
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server
from tests.harness.follow import follow

T = TypeVar("T")

NAME, NAMESPACE = "kube-controller-manager", "kube-system"
LIMIT = 120.0
"""Seconds after which a test that is to end by itself fails."""
FLAGS = (
    # Renewed often, so that a test need not wait; not lost soon, however busy the machine is.
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=40s",
    "--leader-elect-retry-period=100ms",
    "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true",
)


class Client(LocalApi):
    """A client that notes each renewal, is stolen from on demand, and knows the threads it was used by."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.renewals: list[str] = []
        self.steal = False
        self.threads: set[str] = set()
        self.open = False

    async def __aenter__(self) -> Client:
        self.open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open = False

    def update(self, kind: Kind[T], namespace: str, name: str, body: object) -> Coroutine[Any, Any, T]:
        return self._renew(kind, namespace, name, body)

    async def _renew(self, kind: Kind[T], namespace: str, name: str, body: object) -> T:
        self.threads.add(threading.current_thread().name)
        if self.steal:
            await self.patch(LEASES, namespace, name, {"spec": {"holderIdentity": "thief"}})
        written = await super().update(kind, namespace, name, body)
        assert isinstance(written, dict)
        self.renewals.append(written["spec"]["renewTime"])
        return written


class Manager:
    """A manager whose controllers are one function of the test."""

    def __init__(self, *, answer_timeout: float = LIMIT, period: float = LIMIT) -> None:
        server = Server(RealClock())
        bootstrap_server(server)
        self.client = Client(server)
        self.election = LeaderElection(read(FLAGS), None, self.client, RealClock(), Metrics())
        self.exits: list[str] = []
        self.thread = ElectionThread(
            self.election,
            self.client,
            exit=self.exits.append,
            answer_timeout=answer_timeout,
            period=period,
        )
        self.fence: Callable[[], bool] = lambda: False
        self.leading = asyncio.Event()
        self.stopped_on = ""

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def lead(
            controllers: tuple[Controller[Any], ...], fence: Callable[[], bool], started: Callable[[], None]
        ) -> None:
            self.fence = fence
            started()
            self.leading.set()
            try:
                await work()
            finally:
                self.stopped_on = threading.current_thread().name

        async with asyncio.timeout(LIMIT):
            await self.thread.run(lead)


def block(until: Callable[[], bool]) -> None:
    """Hold the event loop, as pure Python that never yields does."""
    deadline = time.monotonic() + LIMIT / 2
    while not until():
        assert time.monotonic() < deadline, "nothing happens while the event loop is blocked"


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_lease_is_renewed_while_the_main_loop_is_blocked() -> None:
    manager = Manager()

    async def busy() -> None:
        block(lambda: len(manager.client.renewals) >= 12)
        assert manager.fence()
        assert manager.election.check() is None

    await manager.run(busy)
    assert len(set(manager.client.renewals)) == len(manager.client.renewals)
    assert manager.client.threads == {"leader election"}
    assert manager.stopped_on == "MainThread"
    assert (manager.exits, manager.client.open) == ([], False)


async def test_a_lost_lease_stops_the_controllers_on_their_own_loop() -> None:
    manager = Manager()

    async def work() -> None:
        manager.client.steal = True
        await forever()

    with pytest.raises(
        LostLease, match="leaderelection lost: kube-system/kube-controller-manager: held by thief"
    ):
        await manager.run(work)
    assert manager.stopped_on == "MainThread"
    assert not manager.fence()
    assert (manager.exits, manager.client.open) == ([], False)


async def test_a_blocked_main_loop_is_ended_with_the_process_when_the_lease_is_lost() -> None:
    manager = Manager(answer_timeout=0.05)

    async def busy() -> None:
        manager.client.steal = True
        block(lambda: bool(manager.exits))
        assert not manager.fence()
        await forever()

    with pytest.raises(LostLease):
        await manager.run(busy)
    assert manager.exits[0] == "leaderelection lost: the event loop does not respond"


async def test_a_main_loop_that_never_runs_again_does_not_keep_the_lease() -> None:
    manager = Manager(period=0.05)

    async def busy() -> None:
        block(lambda: bool(manager.exits))

    await manager.run(busy)
    seconds = MISSES * 0.05
    assert manager.exits[0] == f"leaderelection lost: the event loop has not run for {seconds:g} s"


async def test_where_the_main_loop_is_stuck_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    manager = Manager(period=0.05)

    def a_round_that_takes_long() -> bool:
        return bool(caplog.records)

    async def busy() -> None:
        block(a_round_that_takes_long)

    with caplog.at_level("WARNING"):
        await manager.run(busy)
    assert "the event loop has not run for 0.05 s" in caplog.text
    assert "block(a_round_that_takes_long)" in caplog.records[0].__dict__["values"]["stack"]


async def test_a_manager_that_is_told_to_stop_ends_its_controllers_and_releases_the_lease() -> None:
    manager = Manager()
    running = asyncio.create_task(manager.run(forever))
    await manager.leading.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert manager.stopped_on == "MainThread"
    lease = await manager.client.get(LEASES, NAMESPACE, NAME)
    assert lease.spec.holderIdentity == ""
    assert (manager.exits, manager.client.open) == ([], False)


async def test_a_manager_that_is_told_to_stop_before_it_leads_ends() -> None:
    manager = Manager()
    running = asyncio.create_task(manager.run(forever))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_controllers_that_fail_fail_the_manager() -> None:
    async def work() -> None:
        raise SystemError("by itself")

    with pytest.raises(SystemError, match="by itself"):
        await Manager().run(work)


# -- as a process -----------------------------------------------------------------------------------


async def test_a_manager_whose_standard_error_is_blocked_keeps_its_lease(tmp_path: Path) -> None:
    clock = RealClock()
    boot = Bootstrap.generate(clock.now)
    server = Server(clock)
    authorizer = bootstrap_server(server, client_ca=boot.authority.pair.cert)
    edge = await boot.serve(server, authorizer, tokens={"token": User("system:kube-controller-manager")})
    config = json.loads(boot.kubeconfig(edge.url, "system:kube-controller-manager"))
    config["users"][0]["user"] = {"token": "token"}
    (tmp_path / "config").write_text(json.dumps(config))
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    command = (sys.executable, "-m", "steersman.manager.cli", "run", f"--kubeconfig={tmp_path / 'config'}")
    flags = ("--controllers=namespace-controller", "--secure-port=0", "-v=8", *FLAGS)
    manager = subprocess.Popen([*command, *flags], stdin=subprocess.DEVNULL, stderr=writer)
    try:
        async with asyncio.timeout(LIMIT):
            await _renewed(LocalApi(server), 12, lambda: _is_full(writer))
            os.close(writer)
            manager.send_signal(signal.SIGTERM)
            said = await asyncio.to_thread(_read, reader)
            assert await asyncio.to_thread(manager.wait) == 0, said
    finally:
        manager.kill()
        manager.wait()
        os.close(reader)
        await edge.close()
    assert said.endswith("stopped by a signal\n"), "nothing was lost"


async def _renewed(api: LocalApi, times: int, counts: Callable[[], bool]) -> None:
    """Wait until the lease was renewed so many times while a condition held."""
    async for _ in follow(api, LEASES, NAMESPACE):
        times -= counts()
        if not times:
            return


def _is_full(writer: int) -> bool:
    poll = select.poll()
    poll.register(writer, select.POLLOUT)
    return not poll.poll(0)


def _read(reader: int) -> str:
    """All that a process writes until it ends."""
    with os.fdopen(os.dup(reader), "rb") as file:
        return file.read().decode()
