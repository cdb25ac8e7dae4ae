"""``steersman top`` against running control planes: on a terminal, in a pipe, and where there is no trace."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, SERVICEACCOUNTS
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.manager import cli
from steersman.manager.control_plane import run_control_plane
from steersman.manager.up import read
from tests.harness.child_process import Child
from tests.harness.follow import until
from tests.harness.stuck import deployment
from tests.harness.terminal import Terminal

ALTERNATE, NORMAL, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
STEERSMAN = (sys.executable, "-m", "steersman.manager.cli")


async def _top(*words: str) -> int:
    """The verb in a thread of its own, beside the control plane. Its output is no terminal."""
    return await asyncio.to_thread(cli.main, ["top", *words])


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[tuple[Child, Path]]:
    """A `steersman up` in a process of its own with a Deployment that is ready, and its kubeconfig."""
    config = tmp_path / "config"
    child = Child((*STEERSMAN, "up", "--port=0", f"--kubeconfig={config}"), tmp_path / "up.log")
    try:
        asyncio.run(_make_deployment(child, config))
        yield child, config
    finally:
        child.stop()


async def _make_deployment(child: Child, config: Path) -> None:
    async with asyncio.timeout(60):
        # The kubeconfig is written when the port is open.
        while not config.exists():
            assert child.code is None, child.log()
            await asyncio.sleep(0.05)
        async with HttpApi(kubeconfig.load(str(config)), qps=0) as api:
            await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
            await api.create(DEPLOYMENTS.untyped, "default", deployment(replicas=2))
            await until(api, DEPLOYMENTS, "default", "web", lambda found: found.status.readyReplicas == 2)


def test_a_terminal_shows_the_controllers_and_obeys_keys(plane: tuple[Child, Path]) -> None:
    argv = (*STEERSMAN, "top", f"--kubeconfig={plane[1]}", "--interval=0.2")
    with Terminal(argv, 80, 30) as terminal:
        page = terminal.see("sort: rate")
        assert ALTERNATE in terminal.written
        assert "CONTROLLER" in page
        assert "default/web" in page, "a busy key"
        terminal.press("s")
        terminal.see("sort: queue")
        terminal.press("/deployment")
        terminal.see("filter: deployment_")
        terminal.press("\r")
        terminal.see("filter: deployment  q quit")
        terminal.press("\x1b[B")
        page = terminal.see("default/web because ")
        assert "deployment-controller  " in page
        assert "created replicaset default/web-" in page or "updated deployment default/web status" in page
        terminal.press("p")
        terminal.see("PAUSED")
        terminal.resize(200, 40)
        terminal.see("WRITES BY VERB")
        terminal.press("p\x1b")
        terminal.see("WRITES BY VERB")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.written.rstrip().endswith(NORMAL)
        assert CURSOR in terminal.written
        assert terminal.modes_now() == terminal.attributes


@pytest.mark.parametrize("end", ["\x03", "SIGTERM"])
def test_a_signal_gives_the_terminal_back(plane: tuple[Child, Path], end: str) -> None:
    argv = (*STEERSMAN, "top", f"--kubeconfig={plane[1]}", "--controller=deployment")
    with Terminal(argv, 100, 24) as terminal:
        terminal.see("deployment-controller  ")
        assert terminal.modes_now() != terminal.attributes
        if end == "SIGTERM":
            terminal.kill(signal.SIGTERM)
        else:
            terminal.press(end)
        assert terminal.wait() == 0
        assert terminal.written.rstrip().endswith(NORMAL)
        assert terminal.modes_now() == terminal.attributes


def test_a_lost_connection_is_told_and_the_picture_stays(plane: tuple[Child, Path]) -> None:
    up, config = plane
    with Terminal((*STEERSMAN, "top", f"--kubeconfig={config}", "--interval=0.1"), 120, 30) as terminal:
        terminal.see("default/web")
        up.stop()
        page = terminal.see("; this is the last picture")
        assert "no answer since " in page
        terminal.press("s")
        assert "default/web" in terminal.see("sort: queue")
        terminal.press("q")
        assert terminal.wait() == 0


def test_a_control_plane_that_is_started_again_is_found_by_its_new_kubeconfig(
    plane: tuple[Child, Path], tmp_path: Path
) -> None:
    up, config = plane
    with Terminal((*STEERSMAN, "top", f"--kubeconfig={config}", "--interval=0.1"), 120, 30) as terminal:
        terminal.see("default/web")
        up.stop()
        terminal.see("; this is the last picture")
        config.unlink()
        # Another CA, and another port.
        again = Child((*STEERSMAN, "up", "--port=0", f"--kubeconfig={config}"), tmp_path / "again.log")
        try:
            asyncio.run(_make_deployment(again, config))
            terminal.press("s")
            terminal.see(kubeconfig.load(str(config)).server)
            terminal.see("sort: queue")
            terminal.press("q")
            assert terminal.wait() == 0
        finally:
            again.stop()


async def test_a_pipe_gets_tables_and_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config"
    options = read(["--port=0", f"--kubeconfig={config}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()),
        HttpApi(kubeconfig.load(str(config)), qps=0) as api,
    ):
        await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
        await api.create(DEPLOYMENTS.untyped, "default", deployment())
        await until(api, DEPLOYMENTS, "default", "web", lambda found: found.status.readyReplicas == 1)
        flag, url = f"--kubeconfig={config}", kubeconfig.load(str(config)).server
        assert await _top(flag) == 0
        page = capsys.readouterr().out
        assert page.startswith("CONTROLLER ")
        assert "\x1b" not in page
        assert "HOTTEST KEYS" in page
        assert await _top(flag, "-o", "json", "--sort=writes", f"--trace-url={url}") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["running"] is told["recording"] is True
        (mine,) = (each for each in told["controllers"] if each["controller"] == "deployment-controller")
        assert mine["writes"]["create"] == 1
        assert {"controller", "namespace", "name", "rate", "why"} == set(told["hottest"][0])
        assert await _top(flag, "-o", "yaml", "--controller=deployment") == 0
        told = yaml.safe_load(capsys.readouterr().out)
        assert [each["controller"] for each in told["controllers"]] == ["deployment-controller"]
        assert await _top(flag, "--controller=steering") == 1
        assert "no controller steering runs there" in capsys.readouterr().err
        assert await _top(flag, f"--trace-url={url}/elsewhere") == 1
        told = capsys.readouterr().err
        assert f"{url}/elsewhere has no trace of rounds" in told
        assert "--trace-url=https://HOST:10257" in told
        assert "Go's kube-controller-manager keeps no trace" in told
        assert await _top(flag, "--trace-ca=ca.crt") == 1
        assert "--trace-url names, which is missing" in capsys.readouterr().err
        for token, words in (("nonsense", "does not accept the credentials"), ("", "needs the verb get on")):
            limited = tmp_path / "limited"
            limited.write_text(yaml.safe_dump(_as(config, token)))
            assert await _top(f"--kubeconfig={limited}") == 1
            assert words in capsys.readouterr().err


def _as(config: Path, token: str) -> object:
    """The kubeconfig with a bearer token instead of the administrator's certificate; without one it is anonymous."""
    found = yaml.safe_load(config.read_text())
    found["users"][0]["user"] = {"token": token} if token else {}
    return found


@pytest.mark.parametrize("interval", ["0", "nan", "inf"])
def test_an_interval_is_not_a_busy_loop(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["top", f"--interval={interval}"]) == 1
    told = capsys.readouterr().err
    assert told == f"Error: --interval must be at least 0.1 seconds, but got {interval}\n"


async def test_a_server_that_is_gone_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config"
    options = read(["--port=0", "--nodes=0", f"--kubeconfig={config}"])
    async with asyncio.timeout(60), run_control_plane(options, RealClock()):
        kept = config.read_text()
    config.write_text(kept)
    assert await _top(f"--kubeconfig={config}") == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: no answer from https://127.0.0.1:")
    assert told.count("\n") == 1
