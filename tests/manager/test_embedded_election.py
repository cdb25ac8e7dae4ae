"""``steersman up`` holds the manager's Lease while its controllers run."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import NotFound
from steersman.api.kinds import DEPLOYMENTS, LEASES, PODS, SERVICEACCOUNTS
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.controllers.serviceaccount import controller as serviceaccount
from steersman.manager import options
from steersman.manager.control_plane import run_control_plane
from steersman.manager.embedded_election import EmbeddedElection
from steersman.manager.run import manage
from steersman.manager.up import read
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.local import LocalApi
from steersman.sim.world import World
from tests.harness.follow import follow, until

NAMESPACE, NAME = "kube-system", "kube-controller-manager"
DOCUMENTS = LEASES.untyped


async def lease(api: Any) -> dict[str, Any]:
    found: dict[str, Any] = await api.get(DOCUMENTS, NAMESPACE, NAME)
    return found


async def collect(api: Any, created: set[str]) -> None:
    """Remember the uid of every pod there ever was."""
    async for _, pod in follow(api, PODS, "default"):
        created.add(pod.metadata.uid)


def argv(path: Path, *more: str) -> list[str]:
    return ["--port=0", "--nodes=0", f"--kubeconfig={path / 'config'}", *more]


async def test_the_lease_is_there_for_clients_and_free_at_the_end(tmp_path: Path) -> None:
    async with asyncio.timeout(60), run_control_plane(read(argv(tmp_path)), RealClock()) as running:
        async with HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api:
            spec = (await lease(api))["spec"]
        assert re.fullmatch(rf"{re.escape(socket.gethostname())}_[0-9a-f-]{{36}}", spec["holderIdentity"])
        assert spec["leaseDurationSeconds"] == 15
        assert running.other_manager == ""
    spec = (await lease(LocalApi(running.server)))["spec"]
    assert spec.get("holderIdentity", "") == ""


async def test_without_controllers_there_is_no_lease(tmp_path: Path) -> None:
    requested = read(argv(tmp_path, "--no-controllers"))
    async with asyncio.timeout(60), run_control_plane(requested, RealClock()) as running:
        with pytest.raises(NotFound):
            await lease(LocalApi(running.server))


async def test_a_manager_beside_it_waits_and_writes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    requested = read(["--port=0", "--nodes=1", f"--kubeconfig={tmp_path / 'config'}"])
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 30, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    async with asyncio.timeout(60), run_control_plane(requested, RealClock()) as running:
        admin = LocalApi(running.server)
        flags = [f"--kubeconfig={running.kubeconfig}", "--secure-port=0"]
        connection = kubeconfig.load(str(running.kubeconfig))
        beside = asyncio.create_task(manage(options.read(flags), connection))
        holder = (await lease(admin))["spec"]["holderIdentity"]
        while f"the lease {NAMESPACE}/{NAME} is held by {holder}" not in caplog.text:
            assert not beside.done()
            await asyncio.sleep(0.01)
        await until(admin, SERVICEACCOUNTS, "default", "default", lambda found: True)
        created: set[str] = set()
        following = asyncio.create_task(collect(admin, created))
        await admin.create(DEPLOYMENTS.untyped, "default", {"metadata": {"name": "web"}, "spec": spec})
        await until(admin, DEPLOYMENTS, "default", "web", lambda found: found.status.readyReplicas == 30)
        for task in (beside, following):
            task.cancel()
        await asyncio.gather(beside, following, return_exceptions=True)
        assert len(created) == 30
        assert (await lease(admin))["spec"]["holderIdentity"] == holder
    assert "caches synced: controllers start" not in caplog.text


async def test_its_controllers_wait_while_another_manager_leads_and_follow_it(tmp_path: Path) -> None:
    data = f"--data-dir={tmp_path / 'data'}"
    async with asyncio.timeout(60):
        async with run_control_plane(read(argv(tmp_path, data, "--no-controllers")), RealClock()) as running:
            held = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
            await LocalApi(running.server).create(
                DOCUMENTS, NAMESPACE, {"metadata": {"name": NAME}, "spec": held}
            )
        async with run_control_plane(read(argv(tmp_path, data)), RealClock()) as running:
            admin = LocalApi(running.server)
            assert running.other_manager == "other"
            assert (await admin.list(SERVICEACCOUNTS, "default")).items == []
            document = await lease(admin)
            await admin.update(DOCUMENTS, NAMESPACE, NAME, {**document, "spec": {"holderIdentity": ""}})
            await until(admin, SERVICEACCOUNTS, "default", "default", lambda found: True)
            assert (await lease(admin))["spec"]["holderIdentity"] not in ("", "other")


async def test_after_a_crash_it_leads_again_at_once(tmp_path: Path) -> None:
    data = f"--data-dir={tmp_path / 'data'}"
    async with asyncio.timeout(60):
        async with run_control_plane(read(argv(tmp_path, data)), RealClock()) as running:
            before = await lease(LocalApi(running.server))
        async with run_control_plane(read(argv(tmp_path, data, "--no-controllers")), RealClock()) as running:
            admin = LocalApi(running.server)
            # As a process that was killed leaves it.
            document = await lease(admin)
            await admin.update(DOCUMENTS, NAMESPACE, NAME, {**document, "spec": before["spec"]})
        async with run_control_plane(read(argv(tmp_path, data)), RealClock()) as running:
            after = (await lease(LocalApi(running.server)))["spec"]
            assert running.other_manager == ""
            assert after["holderIdentity"] == before["spec"]["holderIdentity"]
            assert after["leaseTransitions"] == before["spec"]["leaseTransitions"]


def test_a_lease_that_another_took_stops_the_controllers_until_it_is_free_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with World(seed=3) as world:
        manager, admin = world.api("manager"), world.api()
        fences: list[Callable[[], bool]] = []

        def make(fence: Callable[[], bool]) -> ControllerGroup:
            fences.append(fence)
            return ControllerGroup((serviceaccount,), manager, world, fence=fence)

        others: list[str] = []
        election = EmbeddedElection(manager, world, make, identity="ours", on_other=others.append)
        world.spawn(election.run(lambda: None))
        world.run(asyncio.sleep(1))
        document = world.run(lease(admin))
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 15}
        world.run(admin.update(DOCUMENTS, NAMESPACE, NAME, {**document, "spec": thief}))
        world.run(asyncio.sleep(5))
        assert [fence() for fence in fences] == [False]
        world.run(admin.delete(SERVICEACCOUNTS, "default", "default"))
        world.run(asyncio.sleep(5))
        assert world.run(admin.list(SERVICEACCOUNTS, "default")).items == []
        world.run(asyncio.sleep(10))
        assert [fence() for fence in fences] == [False, True]
        assert world.run(lease(admin))["spec"]["holderIdentity"] == "ours"
        assert len(world.run(admin.list(SERVICEACCOUNTS, "default")).items) == 1
        assert set(others) == {"thief"}
    assert "held by thief; the controllers start again when the Lease is free" in caplog.text
