"""``steersman up``: a control plane for every client, on loopback."""

from __future__ import annotations

import asyncio
import signal
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, BadRequest
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS, SERVICEACCOUNTS
from steersman.api.kinds.services import SERVICES, Service
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.manager import cli
from steersman.manager.control_plane import run_control_plane
from steersman.manager.flags import UsageError
from steersman.manager.up import read, warnings
from steersman.server.local import LocalApi
from steersman.sim import nodes
from steersman.sim.kubelet.node import is_ready
from steersman.testing import Cluster
from tests.harness.follow import until


def workload() -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


async def test_a_deployment_becomes_ready_over_http(tmp_path: Path) -> None:
    options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}"])
    async with asyncio.timeout(60), run_control_plane(options, RealClock()) as running:
        assert stat.S_IMODE(running.kubeconfig.stat().st_mode) == 0o600
        async with HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api:
            await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
            await api.create(DEPLOYMENTS.untyped, "default", workload())
            await until(api, DEPLOYMENTS, "default", "web", lambda found: found.status.readyReplicas == 2)
            told = await api.document("/debug/rounds?kind=Deployment&namespace=default&name=web&after=0")
            controllers = [each["controller"] for each in told["rounds"]]
            assert controllers[0] == "deployment-controller"
            assert told["rounds"][0]["causes"][0]["text"] == "Deployment default/web added"
            with pytest.raises(BadRequest, match="limit must be a whole number"):
                await api.document("/debug/rounds?limit=many")
        async with aiohttp.ClientSession() as anonymous:
            url = f"{running.url}/debug/rounds"
            async with anonymous.get(url, ssl=False) as refused:
                assert refused.status == 403, "authorized like other paths"


async def test_the_kinds_of_enabled_feature_gates_are_served(tmp_path: Path) -> None:
    argv = ["--port=0", "--nodes=0", f"--kubeconfig={tmp_path / 'config'}"]
    for gates, served in ((["--feature-gates=GenericWorkload=true"], True), ([], False)):
        async with (
            asyncio.timeout(60),
            run_control_plane(read([*argv, *gates]), RealClock()) as running,
            HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
        ):
            found = await api.discover()
            assert any(each.name == "podgroups" for each in found.resources) is served


async def test_a_load_balancer_gets_an_address_and_keeps_it(tmp_path: Path) -> None:
    def has_address(found: Service) -> bool:
        return [each.ip for each in found.status.loadBalancer.ingress] == ["198.18.0.1"]

    argv = ["--port=0", "--nodes=0", f"--kubeconfig={tmp_path / 'config'}", f"--data-dir={tmp_path / 'data'}"]
    service = {"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    async with asyncio.timeout(60):
        async with run_control_plane(read(argv), RealClock()) as running:
            admin = LocalApi(running.server)
            await admin.create(SERVICES.untyped, "default", service)
            await until(admin, SERVICES, "default", "a", has_address)
        async with run_control_plane(read(argv), RealClock()) as running:
            admin = LocalApi(running.server)
            await admin.create(SERVICES.untyped, "default", {**service, "metadata": {"name": "b"}})
            await until(
                admin, SERVICES, "default", "b", lambda found: bool(found.status.loadBalancer.ingress)
            )
            assert has_address(await admin.get(SERVICES, "default", "a"))
            assert not has_address(await admin.get(SERVICES, "default", "b"))


async def test_there_is_a_default_storage_class_and_a_csi_driver_where_asked_for(tmp_path: Path) -> None:
    options = read(["--port=0", "--csi", f"--kubeconfig={tmp_path / 'config'}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()) as running,
        HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
    ):
        classes = await api.list(load("storage.k8s.io", "v1", "StorageClass"))
        assert sorted(each.metadata.name for each in classes.items) == ["csi-sim", "standard"]
        csi_nodes = load("storage.k8s.io", "v1", "CSINode")
        await until(api, csi_nodes, "", "node-1", lambda found: bool(found.spec.drivers))


async def test_claims_are_allocated_devices_where_asked_for(tmp_path: Path) -> None:
    options = read(["--port=0", "--dra", "--devices=1", "--nodes=1", f"--kubeconfig={tmp_path / 'config'}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()) as running,
        HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
    ):
        claims = load("resource.k8s.io", "v1", "ResourceClaim")
        request = {"name": "r", "exactly": {"deviceClassName": "simulated"}}
        body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        await api.create(claims.untyped, "default", body)
        main = {"name": "main", "image": "app:1", "resources": {"claims": [{"name": "c"}]}}
        spec = {"containers": [main], "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
        await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
        await api.create(PODS.untyped, "default", {"metadata": {"name": "p"}, "spec": spec})
        await until(api, PODS, "default", "p", lambda found: found.status.phase == "Running")
        claim = await api.get(claims, "default", "c")
        assert [each.device for each in claim.status.allocation.devices.results] == ["device-0"]


async def test_kubelets_may_read_all_that_volumes_are_made_from(tmp_path: Path) -> None:
    claims, volumes, pods = (
        load("", "v1", kind) for kind in ("PersistentVolumeClaim", "PersistentVolume", "Pod")
    )
    size = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "config", "keys")]
    spec = {
        "nodeName": "node-1",
        "containers": [{"name": "main", "image": "app:1", "volumeMounts": mounts}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "keys", "secret": {"secretName": "keys"}},
        ],
    }
    options = read(["--port=0", "--no-controllers", f"--kubeconfig={tmp_path / 'config'}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()) as running,
        HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
    ):
        await api.create(
            load("", "v1", "ServiceAccount").untyped, "default", {"metadata": {"name": "default"}}
        )
        await api.create(pods.untyped, "default", {"metadata": {"name": "p"}, "spec": spec})
        for kind, name in (("ConfigMap", "config"), ("Secret", "keys")):
            await api.create(load("", "v1", kind).untyped, "default", {"metadata": {"name": name}})
        await until(api, pods, "default", "p", lambda found: found.status.phase == "Pending")
        claim = {**size, "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}}
        made = await api.create(claims, "default", {"metadata": {"name": "data"}, "spec": claim})
        reference = {"namespace": "default", "name": "data", "uid": made.metadata.uid}
        disk = {**size, "capacity": {"storage": "1Gi"}, "claimRef": reference, "hostPath": {"path": "/disk"}}
        await api.create(volumes.untyped, "", {"metadata": {"name": "pv"}, "spec": disk})
        await api.patch(claims, "default", "data", {"status": {"phase": "Bound"}}, subresource="status")
        await until(api, pods, "default", "p", lambda found: found.status.phase == "Running")


async def test_a_data_directory_keeps_what_was_acknowledged_and_who_is_trusted(tmp_path: Path) -> None:
    argv = ["--port=0", "--nodes=0", f"--kubeconfig={tmp_path / 'config'}", f"--data-dir={tmp_path / 'data'}"]
    async with asyncio.timeout(60):
        async with run_control_plane(read(argv), RealClock()) as running:
            connection = kubeconfig.load(str(running.kubeconfig))
            async with HttpApi(connection, qps=0) as api:
                await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
                made = await api.create(DEPLOYMENTS, "default", workload())
        async with (
            run_control_plane(read(argv), RealClock()) as running,
            HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
        ):
            found = await api.get(DEPLOYMENTS, "default", "web")
            assert found.metadata.uid == made.metadata.uid
            assert int(found.metadata.resourceVersion) >= int(made.metadata.resourceVersion)
            old = kubeconfig.load(str(running.kubeconfig)).tls.ca
            assert old == connection.tls.ca, "the same authority as before"


async def test_every_loop_writes_under_the_name_of_its_component(tmp_path: Path) -> None:
    options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}"])
    async with asyncio.timeout(60), run_control_plane(options, RealClock()) as running:
        async with HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api:
            await until(api, SERVICEACCOUNTS, "default", "default", lambda found: True)
            await api.create(DEPLOYMENTS.untyped, "default", workload())
            await until(api, DEPLOYMENTS, "default", "web", lambda found: found.status.readyReplicas == 2)
        admin = LocalApi(running.server)
        found = await admin.get(load("apps", "v1", "Deployment"), "default", "web")
        assert {each.manager for each in found.metadata.managedFields} >= {"kube-controller-manager"}
        pods = (await admin.list(load("", "v1", "Pod"), "default")).items
        for pod in pods:
            assert [(each.manager, each.subresource or "") for each in pod.metadata.managedFields] == [
                ("kube-controller-manager", ""),
                ("kubelet", "status"),
            ]


async def test_a_controller_that_lost_a_right_is_refused_like_anybody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}"])
    async with asyncio.timeout(60), run_control_plane(options, RealClock()) as running:
        admin = LocalApi(running.server)
        bindings = load("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
        await admin.delete(bindings, "", "system:controller:deployment-controller")
        await admin.create(DEPLOYMENTS.untyped, "default", workload())
        events = load("", "v1", "Event")
        refused = (
            'replicasets.apps is forbidden: User "system:serviceaccount:kube-system:deployment-controller" '
            'cannot create resource "replicasets" in API group "apps" in the namespace "default"'
        )
        while refused not in caplog.text:
            await asyncio.sleep(0)
        found = (await admin.list(events, "default")).items
        assert {event.reason for event in found} <= {"RegisteredNode"}, "its events are refused, too"


async def test_a_plane_that_loses_a_part_says_which(tmp_path: Path) -> None:
    options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}"])
    async with asyncio.timeout(60), run_control_plane(options, RealClock()) as running:
        scheduler = next(task for task in asyncio.all_tasks() if task.get_name() == "the scheduler")
        scheduler.cancel()
        failure = await running.failed()
    assert str(failure) == "the scheduler ended, so the control plane stops: it returned without an error"


CRAMPED = """
import resource, sys
from steersman.manager import cli
# No file may grow beyond this: the disk is full, as far as this process can tell.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(cli.main(sys.argv[2:]))
"""


async def test_a_full_disk_ends_the_plane_with_one_line_and_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    config, data = tmp_path / "config", tmp_path / "data"
    argv = ["up", "--port=0", "--nodes=0", f"--kubeconfig={config}", f"--data-dir={data}"]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CRAMPED, str(2 << 20), *argv),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    maps = load("", "v1", "ConfigMap").untyped
    acknowledged: list[str] = []
    async with asyncio.timeout(60):
        assert b"steersman is up" in await child.stdout.readline()
        async with HttpApi(kubeconfig.load(str(config)), qps=0) as api:
            for number in range(1000):
                body = {"metadata": {"name": f"big-{number}"}, "data": {"text": "x" * 50_000}}
                try:
                    await api.create(maps, "default", body)
                except ApiError:
                    break
                acknowledged.append(f"big-{number}")
        said = (await child.stderr.read()).decode()
        assert await child.wait() == 1
    assert said.splitlines() == [
        next(line for line in said.splitlines() if line.startswith(f"Error: cannot write to {data} any more"))
    ]
    async with run_control_plane(read(argv[1:]), RealClock()) as running:
        kept = await LocalApi(running.server).list(
            maps, "default", field_selector="metadata.name!=kube-root-ca.crt"
        )
    assert {each["metadata"]["name"] for each in kept.items} >= set(acknowledged)
    assert len(acknowledged) > 5


@pytest.mark.parametrize("room", [1_000, 100_000])
def test_a_disk_too_small_to_begin_on_is_one_line(tmp_path: Path, room: int) -> None:
    argv = ["up", "--port=0", f"--kubeconfig={tmp_path / 'config'}", f"--data-dir={tmp_path / 'data'}"]
    command = [sys.executable, "-c", CRAMPED, str(room), *argv, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "disk I/O error" in line or "full" in line


class Ahead(RealClock):
    """A clock that is a day ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(days=1)


async def test_answers_bear_the_date_of_the_wall_whatever_time_the_cluster_has(tmp_path: Path) -> None:
    options = read(["--port=0", "--nodes=0", "--no-controllers", f"--kubeconfig={tmp_path / 'config'}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, Ahead()) as running,
        aiohttp.ClientSession() as session,
        # Its certificate is not valid before tomorrow.
        session.get(f"{running.url}/version", ssl=False) as answer,
    ):
        told = parsedate_to_datetime(answer.headers["Date"])
    assert abs(told - datetime.now(UTC)) < timedelta(hours=1), "what comes from the future would be kept"


@pytest.mark.parametrize("ignored", [False, True], ids=["terminal", "nohup"])
def test_a_terminal_that_is_closed_ends_the_plane_unless_nohup_started_it(
    tmp_path: Path, ignored: bool
) -> None:
    # Set in either case: these tests may run under nohup.
    handler = "SIG_IGN" if ignored else "SIG_DFL"
    script = f"import signal, sys; signal.signal(signal.SIGHUP, signal.{handler}); from steersman.manager import cli; sys.exit(cli.main())"
    command = [sys.executable, "-c", script, "up", "--port=0", "--no-ui"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as plane:
        try:
            assert plane.stdout is not None
            assert "steersman is up" in plane.stdout.readline()
            assert (tmp_path / "steersman.kubeconfig").exists()
            plane.send_signal(signal.SIGHUP)
            if ignored:
                with pytest.raises(subprocess.TimeoutExpired):
                    plane.wait(timeout=1)
                plane.send_signal(signal.SIGTERM)
            assert plane.wait(timeout=30) == 0
        finally:
            plane.kill()
    assert not (tmp_path / "steersman.kubeconfig").exists()


def test_a_command_runs_with_the_kubeconfig_and_its_exit_code_is_ours() -> None:
    program = "import os, sys; sys.exit(7 if os.path.exists(os.environ['KUBECONFIG']) else 1)"
    assert cli.main(["up", "--port=0", "--nodes=0", "--", sys.executable, "-c", program]) == 7


def test_a_control_plane_loads_no_more_than_it_uses() -> None:
    # Clients of webhooks and other servers, patterns of custom resources, CEL, protobuf: all come with their first use.
    script = "import sys; from steersman.manager import cli; cli.main(); print(*sys.modules)"
    words = ["up", "--port=0", "--quiet", "--", sys.executable, "-c", ""]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "steersman.server.http.app" in loaded
    heavy = (
        "aiohttp",
        "importlib.metadata",
        "kubernetes_validate",
        "opentelemetry",
        "re2",
        "rich",
        "steersman.api.cel.runtime",
        "steersman.explain",
        "steersman.server.codec.protobuf.encode",
        "steersman.server.http.aggregator",
        "yaml",
    )
    assert [name for name in heavy if name in loaded] == []


def test_a_full_garbage_collection_does_not_visit_what_a_control_plane_has_loaded() -> None:
    # It would hold up all requests meanwhile: 100 ms and more.
    script = "import gc; from steersman.manager import cli; cli.main(); print(gc.isenabled(), len(gc.get_objects()), gc.get_freeze_count())"
    words = ["up", "--port=0", "--quiet", "--", sys.executable, "-c", ""]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=True
    )
    enabled, visited, exempt = done.stdout.splitlines()[-1].split()
    assert enabled == "True"
    assert int(visited) * 10 < int(exempt)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nodes=-1"], "--nodes must be at least 0, but got -1"),
        (["--nodes=0", "--csi"], "--csi needs nodes to attach volumes to: pass --nodes=1 or more"),
        (["--nodes=0", "--dra"], "--dra needs nodes that have devices: pass --nodes=1 or more"),
        (["--dra", "--devices=129"], "--devices must be from 0 to 128, but got 129"),
        (["--devices=2"], "--devices is about the nodes of --dra: pass --dra, too"),
        (["--speed=0"], "--speed must be more than 0, but got 0"),
        (["--port=70000"], "--port must be from 0 to 65535, but got 70000"),
        (["--max-watches=0"], "--max-watches must be at least 1, but got 0"),
        (
            ["--max-connections=9", "--max-watches=9"],
            "--max-connections must be more than --max-watches (9), but got 9",
        ),
        (["--feature-gates=Nonesuch=true"], "unrecognized feature gate: Nonesuch"),
        (["--"], "no command after --"),
        (["--frob"], "unknown flag: --frob"),
    ],
)
def test_a_bad_option_is_one_line(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(argv)
    assert str(caught.value).startswith(message)


def test_a_port_that_is_taken_and_a_foreign_directory_are_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = f"--kubeconfig={tmp_path / 'config'}"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["up", config, f"--port={taken.getsockname()[1]}"]) == 1
    said = capfd.readouterr().err
    assert ": Address already in use; pass another --port" in said
    assert said.count("127.0.0.1") == 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("do not touch")
    assert cli.main(["up", config, "--port=0", f"--data-dir={tmp_path / 'data'}"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("Error: ")
    assert str(tmp_path / "data") in said
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["thesis.txt"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "0.0.0.0"])
async def test_clients_connect_to_the_host_that_a_control_plane_listens_on(tmp_path: Path, host: str) -> None:
    options = read([f"--host={host}", "--port=0", "--nodes=0", f"--kubeconfig={tmp_path / 'config'}"])
    async with run_control_plane(options, RealClock()) as running:
        async with HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api:
            assert (await api.document("/version"))["major"] == "1"
        assert host in running.url


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("", "--host must be a host name in ASCII or an IP address, but got ''"),
        ("b\u00fccher", "--host must be a host name in ASCII or an IP address, but got 'b\u00fccher'"),
        ("192.0.2.1", "pass another --host"),
        ("no.such.host.invalid", "pass another --host"),
    ],
)
def test_a_host_that_cannot_be_listened_on_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], host: str, said: str
) -> None:
    assert cli.main(["up", f"--host={host}", "--port=0", f"--kubeconfig={tmp_path / 'config'}"]) == 1
    error = capfd.readouterr().err
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert said in error


@pytest.mark.parametrize(
    ("flags", "warned"),
    [
        (["--host=0.0.0.0"], False),
        (["--allow-exec"], False),
        (["--allow-exec", "--host=::1"], False),
        (["--allow-exec", "--host=localhost"], False),
        (["--allow-exec", "--host=0.0.0.0"], True),
        (["--allow-exec", "--host=::"], True),
    ],
)
def test_commands_for_clients_on_other_machines_are_warned_of(flags: list[str], warned: bool) -> None:
    found = list(warnings(read(flags)))
    assert len(found) == warned
    assert all("lets users on other machines run commands" in warning for warning in found)


@pytest.mark.parametrize("fails", [True, False])
def test_a_real_node_of_a_snapshot_recovers_on_request_whenever_it_failed(
    tmp_path: Path, fails: bool
) -> None:
    file, said = tmp_path / "one.snapshot", list[str]()
    with Cluster(seed=1) as cluster:
        spec = {"providerID": "aws:///eu-1a/i-1"}
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}, "spec": spec})
        assert cli.main(["snapshot", "save", str(file), f"--kubeconfig={cluster.kubeconfig}"]) == 0

    async def operate() -> None:
        options = read(["--port=0", f"--kubeconfig={tmp_path / 'config'}", f"--from={file}"])
        async with (
            asyncio.timeout(60),
            run_control_plane(options, RealClock()) as running,
            HttpApi(kubeconfig.load(str(running.kubeconfig)), qps=0) as api,
        ):
            if fails:
                await nodes.fail(api, "real", said.append)
            rows = {each.name: each.simulated for each in await nodes.list_nodes(api)}
            assert rows["real"] == "failed"
            await nodes.recover(api, "real", said.append)
            await until(api, nodes.NODES, "", "real", is_ready)

    asyncio.run(operate())
