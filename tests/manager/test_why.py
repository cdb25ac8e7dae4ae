"""``steersman why``: an answer over HTTP, as text and as JSON, and one line for what cannot be answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, SERVICEACCOUNTS
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.explain.asking import Question, parse_subject
from steersman.manager import cli, why
from steersman.manager.control_plane import run_control_plane
from steersman.manager.up import read
from steersman.manager.verb import parse
from steersman.manager.verbs import WHY
from tests.harness.follow import until
from tests.harness.stuck import deployment, template


async def _why(*words: str) -> int:
    """The verb in a thread of its own, beside the control plane."""
    return await asyncio.to_thread(cli.main, ["why", *words])


async def test_why_explains_an_object_of_a_running_control_plane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    options = read(["--port=0", f"--kubeconfig={config}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()),
        HttpApi(kubeconfig.load(str(config)), qps=0) as api,
    ):
        await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
        paused = deployment(template(container={"resources": {"requests": {"cpu": "1000"}}}), paused=False)
        await api.create(DEPLOYMENTS.untyped, "default", paused)
        await until(api, DEPLOYMENTS, "default", "web", lambda found: found.status.unavailableReplicas == 1)
        flag = f"--kubeconfig={config}"
        while True:
            assert await _why("deployment/web", flag, "-o", "json") == 0
            told = json.loads(capsys.readouterr().out)
            if told["findings"] and told["findings"][0]["code"] == "resources":
                break
        assert told["first"].endswith("no node of 3 fits: 3 have too little cpu.")
        assert told["decisions"][0]["controller"] == "deployment-controller"
        assert await _why("deploy", "web", "-n", "default", flag) == 0
        page = capsys.readouterr().out
        assert page.startswith("Deployment default/web wants 1 replica: 0 of 1 ready.\n")
        assert "to do: add nodes, free cpu, or lower the requests of the pod" in page
        url = kubeconfig.load(str(config)).server
        assert await _why("deployment/web", flag, f"--trace-url={url}", "-o", "json") == 0
        assert json.loads(capsys.readouterr().out)["unread"] == [], "the trace is read"
        assert await _why("deployment/web", flag, "--trace-url=https://127.0.0.1:1", "-o", "json") == 0
        assert "the trace: " in json.loads(capsys.readouterr().out)["unread"][0]
        assert await _why("deployment/web", flag, "--trace-url=http://127.0.0.1:1") == 1
        assert "--trace-url must begin with https://" in capsys.readouterr().err
        assert await _why("deployment/missing", flag) == 1
        assert capsys.readouterr().err == "Error: there is no Deployment missing in namespace default\n"
        assert await _why("node/missing", flag) == 1
        assert capsys.readouterr().err == "Error: there is no Node missing\n"
        strange = tmp_path / "strange"
        strange.write_text(_without_ca(config))
        assert await _why("node/missing", f"--kubeconfig={strange}") == 1
        told = capsys.readouterr().err
        assert told.startswith(
            f"Error: no TLS connection (from {strange}): {url}: the server's certificate is signed by"
        )
        assert told.count("\n") == 1
        assert await _why("gadget/web", flag) == 1
        assert "the server has no kind 'gadget'" in capsys.readouterr().err


def _without_ca(config: Path) -> str:
    """The kubeconfig without the CA that it trusts."""
    found = yaml.safe_load(config.read_text())
    del found["clusters"][0]["cluster"]["certificate-authority-data"]
    return str(yaml.safe_dump(found))


async def test_why_watches_until_it_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why, "INTERVAL", 0.01)
    config = tmp_path / "config"
    options = read(["--port=0", "--nodes=0", f"--kubeconfig={config}"])
    shown = ""

    async def see(words: str) -> None:
        nonlocal shown
        while words not in shown:
            await asyncio.sleep(0)
            shown += capsys.readouterr().out

    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()),
        HttpApi(kubeconfig.load(str(config)), qps=0) as api,
    ):
        await api.create(DEPLOYMENTS.untyped, "default", deployment(replicas=0))
        given = parse(WHY, ["deployment/web", "--watch"])
        question = Question("deployment", "web", "default")
        watching = asyncio.create_task(why._answer(kubeconfig.load(str(config)), question, given))
        await see("Deployment web: it is scaled to 0 replicas.")
        await api.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 1}})
        await see("0 of 1 ready")
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching


@pytest.mark.parametrize("words", [["web"], ["deployment/"], ["a/b/c"], ["/web"], ["deployment", "a/b"]])
def test_an_object_is_named_by_kind_and_name(words: list[str]) -> None:
    with pytest.raises(ValueError, match="name the object as KIND/NAME, such as deployment/web"):
        parse_subject(words)


def test_without_a_cluster_the_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "pod/x", f"--kubeconfig={tmp_path / 'none'}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
