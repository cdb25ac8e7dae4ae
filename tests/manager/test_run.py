"""Bad input to ``steersman run`` is one clear line and exit code 1, never a traceback."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web

from steersman.client.config import ClientConfig
from steersman.client.http import HttpApi
from steersman.manager import cli
from steersman.manager.run import StartupError, wait_for_server

CONFIG = """\
apiVersion: v1
kind: Config
current-context: {context}
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
users: [{{name: u, user: {{token: hunter2}}}}]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not YAML at line 2"),
        ("[]", "kubeconfig"),
        (CONFIG.format(context="nowhere", server="https://x"), "nowhere"),
        (CONFIG.format(context="here", server="ftp://x"), "ftp://x"),
    ],
)
def test_a_malformed_kubeconfig_is_one_line_that_names_it(
    text: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert cli.main(["run", f"--kubeconfig={path}"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert words in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "--kubeconfig=/does/not/exist"], "/does/not/exist: the kubeconfig file does not exist"),
        (["run", "--frobnicate"], "unknown flag: --frobnicate"),
        (["run", "--controllers=nonesuch"], '"nonesuch" is not in the list of known controllers'),
        (["run", "--controllers="], '--controllers="" selects no controller'),
        (["run", "--controllers=-job"], "--controllers=\"-job\" selects no controller; '*' selects those"),
        (["run", "--controllers=nodeipam"], "leaves no controller to run: node-ipam-controller lack flags"),
        (["run", "--secure-port=-1"], "--secure-port -1 must be between 0 and 65535"),
        (["fly"], "unknown verb 'fly'"),
    ],
)
def test_a_bad_command_line_is_one_line_that_says_what_to_do(
    argv: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 1
    said = capfd.readouterr().err
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert words in said


def test_a_pod_without_service_account_and_no_kubeconfig_is_told_what_to_pass(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert cli.main(["run"]) == 1
    assert "pass --kubeconfig or --master" in capfd.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], [], ["run", "--help"], ["version"], ["run", "--version"]])
def test_help_and_version_succeed(argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    assert "steersman" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("word", "begin"),
    [
        ("--version", "Kubernetes v1.36.4"),
        ("--version=raw", 'version.Info{Major:"1", Minor:"36", GitVersion:"v1.36.4"'),
    ],
)
def test_the_version_is_told_as_kubernetes_components_do(
    word: str, begin: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", word]) == 0
    assert capfd.readouterr().out.startswith(begin)


def test_a_wrong_flag_is_told_before_help_and_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help", "--secure-port=x"]) == 1
    assert cli.main(["run", "--version", "--feature-gates=Nonesuch=true"]) == 1
    assert capfd.readouterr().out == ""


@pytest.fixture
async def answering() -> AsyncIterator[Callable[[int, str], object]]:
    """A server that gives one answer to everything."""
    runners: list[web.AppRunner] = []

    async def start(code: int, body: str) -> HttpApi:
        async def handle(request: web.Request) -> web.Response:
            return web.Response(status=code, text=body, content_type="application/json")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        return HttpApi(ClientConfig(server=f"http://127.0.0.1:{port}", origin="the test"))

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (401, '{"kind":"Status","code":401,"message":"Unauthorized"}', "does not accept the credentials"),
        (403, '{"kind":"Status","code":403,"message":"namespaces is forbidden"}', "namespaces is forbidden"),
        (404, "<html>", "does not answer as an API server does"),
        (500, "{}", "no answer from the API server"),
    ],
)
async def test_a_server_that_says_no_is_one_line(answering, code: int, body: str, words: str) -> None:  # type: ignore[no-untyped-def]
    api = await answering(code, body)
    async with api:
        with pytest.raises(StartupError) as caught:
            await wait_for_server(api, timeout=0)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_server_that_is_not_there_is_one_line_with_its_address() -> None:
    with socket.socket() as taken:
        # Bound and not listening: nobody else can have the port, and nobody answers.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with HttpApi(ClientConfig(server=f"http://127.0.0.1:{port}")) as api:
            with pytest.raises(StartupError, match=f"127.0.0.1:{port}"):
                await wait_for_server(api, timeout=0)


async def test_a_server_that_takes_connections_and_says_nothing_is_waited_for_no_longer_than_that() -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, HttpApi(ClientConfig(server=f"http://127.0.0.1:{port}")) as api:
        with pytest.raises(
            StartupError, match=rf"no answer from the API server at http://127.0.0.1:{port} in 0.2 s"
        ):
            await wait_for_server(api, timeout=0.2)
        silent.close()


async def test_a_server_that_comes_up_in_time_is_reached() -> None:
    answers = iter((503, 500, 429))

    async def handle(request: web.Request) -> web.Response:
        code = next(answers, 200)
        body = {"kind": "NamespaceList", "apiVersion": "v1", "metadata": {}, "items": []}
        return web.json_response(body if code == 200 else {"kind": "Status", "code": code}, status=code)

    app = web.Application()
    app.router.add_get("/api/v1/namespaces", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with HttpApi(ClientConfig(server=f"http://127.0.0.1:{runner.addresses[0][1]}")) as api:
            await wait_for_server(api, timeout=30, pause=0.01)
    finally:
        await runner.cleanup()
    assert next(answers, None) is None


def test_a_manager_does_not_load_the_embedded_server() -> None:
    # Its HTTPS endpoints share the HTTP protocol, users and certificates with the server, and nothing that holds objects.
    script = "import sys, steersman.manager.run; print(*(m for m in sys.modules if m.startswith('steersman.server.')))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    rooms = {name.split(".")[2] for name in loaded}
    assert not rooms & {"storage", "registry", "rest", "admission", "apply", "crd", "defaulting", "http"}
