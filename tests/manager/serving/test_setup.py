"""A manager's door as its flags make it: the cases of upstream's own test of secure serving, and bad input."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.api.verbosity import V
from steersman.client import kubeconfig
from steersman.manager import cli
from steersman.manager.flags import UsageError
from steersman.manager.options import read
from steersman.manager.run import manage
from steersman.server.auth.ca import CertificateAuthority

Started = Callable[..., Awaitable[Any]]


@pytest.fixture
def configs(plane: Any, tmp_path: Path) -> dict[str, str]:
    """A kubeconfig of the manager, and one that no server accepts."""
    paths = {}
    for name, token in (("GOOD", "manager"), ("BROKEN", "WRONGTOKEN")):
        path = tmp_path / name
        cluster = {"server": plane.edge.url, "certificate-authority": str(tmp_path / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
        path.write_text(json.dumps(config))
        paths[name] = str(path)
    (tmp_path / "ca.crt").write_bytes(plane.boot.authority.pair.cert)
    return paths


@pytest.fixture
async def started(
    plane: Any, configs: dict[str, str], asker: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Started]:
    """Starts a manager with flags, in which GOOD and BROKEN stand for kubeconfigs."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    tasks: list[asyncio.Task[None]] = []
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]

        async def start(*flags: str) -> Any:
            argv = [
                flag.replace("GOOD", configs["GOOD"]).replace("BROKEN", configs["BROKEN"]) for flag in flags
            ]
            common = ("--bind-address=127.0.0.1", f"--secure-port={port}", "--permit-port-sharing")
            options = read([f"--kubeconfig={configs['GOOD']}", *common, *argv])
            work = manage(options, kubeconfig.from_flags(options.kubeconfig))
            task = asyncio.create_task(work)
            # It listens from its first moment; who asks before it can answer waits.
            await asyncio.sleep(0)
            if task.done():
                task.result()
            tasks.append(task)
            return asker(port)

        yield start
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


CALM = ("--controllers=", "--leader-elect=false")
BOTH = ("--authentication-kubeconfig=GOOD", "--authorization-kubeconfig=GOOD")
# To survive that the cluster's configmap cannot be read.
NEITHER = (
    "--authentication-skip-lookup",
    "--authentication-kubeconfig=BROKEN",
    "--authorization-kubeconfig=BROKEN",
)


@pytest.mark.parametrize(
    ("flags", "path", "authorization", "code"),
    [
        # upstream's own
        ((), "/healthz", "", 200),
        ((), "/metrics", "", 403),
        (BOTH, "/healthz", "Token manager", 200),
        (NEITHER, "/healthz", "Token manager", 200),
        (
            ("--authentication-kubeconfig=GOOD", "--authorization-kubeconfig=BROKEN"),
            "/metrics",
            "Token manager",
            500,
        ),
        (
            (*NEITHER, "--authorization-always-allow-paths=/healthz,/metrics"),
            "/metrics",
            "Token manager",
            200,
        ),
        # and what they leave out
        (BOTH, "/healthz", "", 200),
        (BOTH, "/metrics", "", 403),
        (BOTH, "/metrics", "Bearer monitor", 200),
        (BOTH, "/metrics", "Bearer nobody", 403),
        (BOTH, "/metrics", "Bearer wrong", 401),
        (BOTH, "/healthz", "Bearer wrong", 401),
        (BOTH, "/nowhere", "", 403),
        (BOTH, "/nowhere", "Bearer admin", 404),
        (BOTH, "/", "Bearer admin", 404),
        (BOTH, "/livez", "", 404),
        (BOTH, "/configz", "Bearer admin", 200),
        (BOTH, "/healthz/ping", "", 403),
        (BOTH, "/debug/pprof/", "", 403),
        (BOTH, "/debug/pprof/", "Bearer admin", 200),
        ((*BOTH, "--profiling=false"), "/debug/pprof/", "Bearer admin", 404),
        ((*BOTH, "--authorization-always-allow-paths=/healthz*"), "/healthz/ping", "", 200),
        ((), "/metrics", "Bearer monitor", 403),
        ((), "/healthz", "Bearer wrong", 200),
        ((*NEITHER, "--authorization-kubeconfig=GOOD"), "/metrics", "", 403),
        (NEITHER, "/metrics", "", 500),
        (NEITHER, "/healthz", "Bearer monitor", 401),
        (
            ("--authentication-kubeconfig=BROKEN", "--authentication-tolerate-lookup-failure"),
            "/metrics",
            "",
            403,
        ),
        (
            (
                "--authentication-skip-lookup",
                "--authentication-kubeconfig=GOOD",
                "--authorization-kubeconfig=GOOD",
            ),
            "/metrics",
            "Bearer monitor",
            200,
        ),
    ],
)
async def test_a_manager_answers_each_client_as_it_deserves(
    started: Started, flags: tuple[str, ...], path: str, authorization: str, code: int
) -> None:
    client = await started(*CALM, *flags)
    headers = {"Authorization": authorization} if authorization else {}
    answer = await client.get(path, **headers)
    assert answer.status == code, answer.body


def test_a_manager_without_any_cluster_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert cli.main(["run"]) == 1


# -- flags ------------------------------------------------------------------------------------


async def test_the_configuration_is_shown_under_its_own_name(started: Started) -> None:
    client = await started(*CALM, *BOTH, "--leader-elect-lease-duration=30s")
    document = json.loads((await client.get("/configz", Authorization="Bearer admin")).body)
    config = document["kubecontrollermanager.config.k8s.io"]
    assert config["apiVersion"] == "kubecontrollermanager.config.k8s.io/v1alpha1"
    assert config["kind"] == "KubeControllerManagerConfiguration"
    assert config["Generic"]["LeaderElection"]["leaseDuration"] == "30s"


@pytest.mark.parametrize(
    ("gates", "path", "form", "code"),
    [
        ("", "/statusz", "json", 200),
        ("", "/flagz", "json", 200),
        ("", "/statusz", "cbor", 406),
        ("--feature-gates=CBORServingAndStorage=true", "/statusz", "cbor", 200),
        ("--feature-gates=CBORServingAndStorage=true", "/flagz", "cbor", 200),
        ("--feature-gates=ComponentStatusz=false", "/statusz", "json", 404),
        ("--feature-gates=ComponentFlagz=false", "/flagz", "json", 404),
    ],
)
async def test_gates_say_which_pages_there_are(
    started: Started, gates: str, path: str, form: str, code: int
) -> None:
    client = await started(*CALM, *BOTH, *([gates] if gates else []))
    accept = f"application/{form};v=v1beta1;g=config.k8s.io;as={path[1:].title()}"
    answer = await client.get(path, Authorization="Bearer admin", Accept=accept)
    assert answer.status == code


async def test_clients_are_recognised_by_the_authority_the_cluster_publishes(
    started: Started, plane: Any, stranger: CertificateAuthority
) -> None:
    client = await started(*CALM, *BOTH)
    boss = ("system:masters",)
    assert (await client.get("/metrics", pair=plane.boot.authority.client("me", boss))).status == 200
    assert (await client.get("/metrics", pair=stranger.client("me", boss))).status == 401


async def test_clients_are_recognised_by_the_authorities_that_flags_name(
    started: Started,
    authority: CertificateAuthority,
    stranger: CertificateAuthority,
    plane: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "clients.crt").write_bytes(authority.pair.cert)
    (tmp_path / "proxies.crt").write_bytes(stranger.pair.cert)
    client = await started(
        *CALM,
        *BOTH,
        f"--client-ca-file={tmp_path}/clients.crt",
        f"--requestheader-client-ca-file={tmp_path}/proxies.crt",
        "--requestheader-allowed-names=front",
        "--requestheader-username-headers=X-User",
        "--requestheader-group-headers=X-Group",
    )
    boss = ("system:masters",)
    assert (await client.get("/metrics", pair=authority.client("me", boss))).status == 200
    assert (await client.get("/metrics", pair=plane.boot.authority.client("me", boss))).status == 401
    spoken = {"X_User": "me", "X_Group": "system:masters"}
    assert (await client.get("/metrics", pair=stranger.client("front"), **spoken)).status == 200
    assert (await client.get("/metrics", pair=stranger.client("other"), **spoken)).status == 401
    assert (await client.get("/metrics", **spoken)).status == 403


async def test_an_authority_that_is_replaced_is_taken_at_once(
    started: Started, authority: CertificateAuthority, stranger: CertificateAuthority, tmp_path: Path
) -> None:
    path = tmp_path / "clients.crt"
    path.write_bytes(authority.pair.cert)
    client = await started(*CALM, f"--client-ca-file={path}")
    me = stranger.client("me", ("system:masters",))
    assert (await client.get("/metrics", pair=me)).status == 401
    path.write_bytes(stranger.pair.cert)
    assert (await client.get("/metrics", pair=me)).status == 200
    path.write_text("broken")
    assert (await client.get("/metrics", pair=me)).status == 200


async def test_without_an_answer_of_the_api_server_there_is_no_access(started: Started, plane: Any) -> None:
    client = await started(*CALM, *BOTH)
    assert (await client.get("/metrics")).status == 403
    await plane.edge.close()
    assert (await client.get("/healthz")).status == 200
    assert (await client.get("/metrics")).status == 403, "known for a while"
    unknown = await client.get("/metrics/slis")
    assert (unknown.status, unknown.body.startswith('Internal Server Error: "/metrics/slis": ')) == (
        500,
        True,
    )
    assert (await client.get("/metrics", Authorization="Bearer monitor")).status == 401


async def test_who_leads_shows_so_in_its_health(started: Started) -> None:
    client = await started(*BOTH, "--controllers=ttl-after-finished-controller")
    async with asyncio.timeout(30):
        while (answer := await client.get("/healthz?verbose")).body.count("\n") < 3:
            pass
    assert answer.body == "[+]leaderElection ok\n[+]ttl-after-finished-controller ok\nhealthz check passed\n"
    headers = {"Authorization": "Bearer admin"}
    assert (await client.get("/healthz/leaderElection", **headers)).body == "ok"
    view = json.loads((await client.get("/debug/controllers/ttl-after-finished-controller", **headers)).body)
    assert view["controller"] == "ttl-after-finished-controller"
    assert list(view["caches"]) == ["jobs.batch/v1"]


async def test_who_asks_is_counted(started: Started) -> None:
    client = await started(*CALM, *BOTH)
    for authorization in ("Bearer wrong", "Bearer wrong", "Bearer nobody", "Bearer admin"):
        await client.get("/metrics", Authorization=authorization)
    body = (await client.get("/metrics", Authorization="Bearer monitor")).body
    for line in (
        'authentication_attempts{result="error"} 2',
        'authentication_attempts{result="success"} 3',
        'authenticated_user_requests{username="admin"} 1',
        'authenticated_user_requests{username="other"} 2',
        'authentication_token_cache_request_total{status="hit"} 1',
        'authentication_token_cache_request_total{status="miss"} 4',
        'authentication_token_cache_fetch_total{status="ok"} 4',
        'authentication_token_cache_active_fetch_count{status="in_flight"} 0',
        'authorization_attempts_total{result="allowed"} 2',
        'authorization_attempts_total{result="no-opinion"} 1',
        'apiserver_delegated_authn_request_total{code="201"} 4',
        'apiserver_delegated_authz_request_total{code="201"} 2',
    ):
        assert f"\n{line}\n" in body, line


async def test_more_is_logged_once_somebody_says_so(started: Started) -> None:
    client = await started(*CALM, *BOTH)
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        answer = await client.get("/debug/flags/v", method="PUT", data="4", Authorization="Bearer admin")
        assert (answer.status, answer.body) == (200, "successfully set klog.logging.verbosity to 4\n")
        assert root.level == V[4]
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


async def test_caches_are_shown_under_the_managers_name(started: Started) -> None:
    flags = ("--leader-elect=false", "--controllers=garbagecollector", *NEITHER)
    client = await started(*flags, "--authorization-always-allow-paths=/metrics")
    async with asyncio.timeout(30):
        while "\ninformer_queued_items{" not in (answer := await client.get("/metrics")).body:
            pass
    lines = [line for line in answer.body.splitlines() if line.startswith("informer_queued_items{")]
    assert all('name="kube-controller-manager"' in line for line in lines)


async def test_with_port_0_nothing_is_served(started: Started) -> None:
    client = await started(*CALM, "--secure-port=0")
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.get("/healthz")


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tls-cert-file=/no/such"], "a certificate and its key must be set together"),
        (["--tls-cert-file=/no/such", "--tls-private-key-file=/nor/such"], "/no/such: no such file"),
        (["--tls-sni-cert-key=/no/such,/nor/such"], "/no/such: no such file or directory"),
        (["--client-ca-file=/no/such"], "--client-ca-file=/no/such: no such file or directory"),
        (["--client-ca-file=BROKEN"], "no PEM certificate found"),
        (["--requestheader-client-ca-file=BROKEN"], "--requestheader-client-ca-file="),
        (["--cert-dir=/dev/null/below"], "--cert-dir=/dev/null/below: not a directory"),
        (["--tls-cipher-suites=TLS_NO_SUCH"], "Cipher suite TLS_NO_SUCH not supported or doesn't exist"),
        (["--authorization-always-allow-paths=/a*b"], 'only trailing * allowed in "a*b"'),
        (["--authentication-kubeconfig=/no/such"], "--authentication-kubeconfig: /no/such: "),
        (["--authorization-kubeconfig=/no/such"], "--authorization-kubeconfig: /no/such: "),
        (["--bind-address=192.0.2.1"], "bind: cannot assign requested address"),
    ],
)
async def test_what_cannot_be_served_is_one_line_that_names_it(
    started: Started, flags: list[str], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        await started(*CALM, *flags)
    said = str(caught.value)
    assert words in said
    assert "\n" not in said
    assert "WRONGTOKEN" not in said


async def test_a_cluster_that_does_not_say_whom_it_trusts_ends_the_manager(
    configs: dict[str, str],
) -> None:
    options = read(
        [
            f"--kubeconfig={configs['GOOD']}",
            f"--authentication-kubeconfig={configs['BROKEN']}",
            "--bind-address=127.0.0.1",
            "--secure-port=10257",
            "--permit-port-sharing",
            *CALM,
        ]
    )
    with pytest.raises(UsageError, match="unable to load configmap based request-header-client-ca-file"):
        await manage(options, kubeconfig.from_flags(options.kubeconfig))


def test_a_port_that_is_taken_is_one_line_and_exit_code_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = ["--master=http://127.0.0.1:1", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        assert cli.main(["run", *flags]) == 1
    said = capfd.readouterr().err.splitlines()[-1]
    assert said == (
        f"Error: failed to create listener: listen tcp 127.0.0.1:{port}: bind: address already in use"
    )
