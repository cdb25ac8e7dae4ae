"""What kubelets answer on ``steersman up --allow-exec``: logs, commands and ports, asked for by kubectl and the official Python client."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward as port_forward
from kubernetes.stream import stream as over_websocket

from tests.harness.child_process import Child, until
from tests.manager.test_kubectl import PATIENCE, Kubectl, found

needs_kubectl = pytest.mark.skipif(
    found() is None, reason="needs kubectl on the path, or in KUBEBUILDER_ASSETS"
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A plane that allows commands, with a running pod ``web``."""
    home = tmp_path_factory.mktemp("plane")
    kubeconfig, logs = home / "config", home / "logs"
    (logs / "default" / "filed").mkdir(parents=True)
    (logs / "default" / "filed" / "main.log").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    argv = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", "--speed=10", "--allow-exec"]
    child = Child([*argv, f"--kubeconfig={kubeconfig}", f"--pod-logs={logs}"], home / "up.log")
    try:
        until(lambda: "steersman is up" in child.log(), child, PATIENCE, "the plane")
        plane = Kubectl(found() or "kubectl", kubeconfig, home)
        api = core(plane)
        until(lambda: bool(api.list_namespaced_service_account("default").items), child, PATIENCE, "accounts")
        for name in ("web", "filed", "noted"):
            make(api, name)
        yield plane
        log = child.log()
        assert child.code is None, log
        assert "Traceback" not in log, log
        assert "failed" not in log, log
    finally:
        child.kill()
        child.wait(PATIENCE)


def core(plane: Kubectl) -> client.CoreV1Api:
    """The Python client. Every stream needs one of its own: a stream changes how its client sends requests."""
    return client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))


def make(api: client.CoreV1Api, name: str, **spec: Any) -> None:
    """Create a pod, and wait until it runs or has ended."""
    notes = {"sim.steersman.dev/log": "first\nsecond\n"} if name == "noted" else {}
    main = {"name": "main", "image": "app:1", "env": [{"name": "COLOUR", "value": "blue"}]}
    body = {
        "metadata": {"name": name, "annotations": notes},
        "spec": {"containers": [{**main, **spec.pop("main", {})}], **spec},
    }
    api.create_namespaced_pod("default", body)
    events = watch.Watch().stream(
        api.list_namespaced_pod,
        "default",
        field_selector=f"metadata.name={name}",
        timeout_seconds=int(PATIENCE),
    )
    assert any(each["object"].status.phase not in (None, "Pending") for each in events)


@contextmanager
def echoing() -> Iterator[int]:
    """A server on this machine that sends back what it gets, in capitals, until the end of the input."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while data := connection.recv(65536):
                        connection.sendall(data.upper())

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


# -- logs -------------------------------------------------------------------------------------


def test_a_log_tells_what_happened_to_the_container(plane: Kubectl) -> None:
    api = core(plane)
    assert api.read_namespaced_pod_log("web", "default") == "started container main with image app:1\n"
    stamped = api.read_namespaced_pod_log("web", "default", timestamps=True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000000000Z started container .*\n", stamped)
    assert api.read_namespaced_pod_log("noted", "default", tail_lines=1) == "second\n"
    assert api.read_namespaced_pod_log("noted", "default", limit_bytes=8) == "first\nse"
    with pytest.raises(ApiException) as refused:
        api.read_namespaced_pod_log("web", "default", previous=True)
    message = json.loads(refused.value.body)["message"]
    assert message == 'previous terminated container "main" in pod "web" not found'


def test_a_log_is_a_file_where_there_is_one(plane: Kubectl) -> None:
    api = core(plane)
    assert api.read_namespaced_pod_log("filed", "default").splitlines()[::19] == ["line 1", "line 20"]
    assert api.read_namespaced_pod_log("filed", "default", tail_lines=2) == "line 19\nline 20\n"
    followed = watch.Watch().stream(api.read_namespaced_pod_log, "filed", "default", tail_lines=1)
    lines = iter(followed)
    assert next(lines) == "line 20"
    with (plane.home / "logs" / "default" / "filed" / "main.log").open("a") as file:
        file.write("line 21\n")
    assert next(lines) == "line 21"


def test_a_log_is_followed_until_the_container_ends(plane: Kubectl) -> None:
    api = core(plane)
    make(api, "brief", main={"command": ["sleep", "20"]}, restartPolicy="Never")
    lines = list(watch.Watch().stream(api.read_namespaced_pod_log, "brief", "default"))
    assert lines == ["started container main with image app:1", "container main exited with code 0"]


@needs_kubectl
def test_kubectl_reads_logs(plane: Kubectl) -> None:
    assert plane("logs", "web").out == "started container main with image app:1\n"
    assert plane("logs", "noted", "--tail=1").out == "second\n"
    assert plane("logs", "noted", "--since=1s").out == ""
    assert 'previous terminated container "main"' in plane.refused("logs", "web", "--previous")


# -- commands ---------------------------------------------------------------------------------


@needs_kubectl
def test_kubectl_runs_a_command_with_its_streams_and_exit_code(plane: Kubectl) -> None:
    script = "echo out; echo err >&2; echo $STEERSMAN_POD $STEERSMAN_CONTAINER $COLOUR; pwd; exit 3"
    said = plane("exec", "web", "--", "sh", "-c", script, code=3)
    out, where, directory = said.out.splitlines()
    assert (out, where) == ("out", "web main blue")
    assert said.err.splitlines() == ["err", "command terminated with exit code 3"]
    assert not Path(directory).exists(), "its directory is removed"
    assert plane("exec", "-i", "web", "--", "cat", stdin="hello\n").out == "hello\n"
    assert 'exec: "nosuch": executable file not found in $PATH' in plane.refused(
        "exec", "web", "--", "nosuch"
    )


@needs_kubectl
def test_a_command_is_not_a_shell_and_does_not_get_our_environment(plane: Kubectl) -> None:
    said = plane("exec", "web", "--", "echo", "$HOME; ls", "*").out
    assert said == "$HOME; ls *\n"
    names = {line.partition("=")[0] for line in plane("exec", "web", "--", "env").out.splitlines()}
    assert "KUBECONFIG" not in names
    assert names <= {
        *(
            "PATH",
            "LANG",
            "LC_ALL",
            "TZ",
            "HOME",
            "HOSTNAME",
            "COLOUR",
            "STEERSMAN_POD",
            "STEERSMAN_NAMESPACE",
        ),
        *("STEERSMAN_CONTAINER", "STEERSMAN_NODE", "STEERSMAN_POD_IP"),
    }


@needs_kubectl
@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1)")
def test_a_command_has_a_terminal_where_it_is_asked_for(plane: Kubectl) -> None:
    # kubectl sends the size of its terminal after it has connected.
    script = 'tty >/dev/null || exit 9; until [ "$(stty size)" = "30 90" ]; do :; done; exit 4'
    words = plane.command("exec", "-it", "web", "--", "sh", "-c", script)
    terminal = ["script", "-qec", f"stty rows 30 cols 90; {shlex.join(words)}"]
    done = subprocess.run(
        [*terminal, "/dev/null"],
        env=plane.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr


def test_the_python_client_runs_a_command(plane: Kubectl) -> None:
    said = over_websocket(
        core(plane).connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["sh", "-c", "read line; echo got $line; exit 5"],
        stdin=True,
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    said.write_stdin("this\n")
    said.run_forever(timeout=PATIENCE)
    assert (said.read_stdout(), said.returncode) == ("got this\n", 5)


def test_a_command_ends_with_its_client(plane: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {file}; echo ready; wait"
    said = over_websocket(
        core(plane).connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["sh", "-c", script],
        stdout=True,
        _preload_content=False,
    )
    assert said.readline_stdout(timeout=PATIENCE) == "ready"
    pid = int(file.read_text())
    said.sock.sock.shutdown(socket.SHUT_RDWR)
    ended = threading.Event()

    def wait() -> None:
        while Path(f"/proc/{pid}").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
            os.sched_yield()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    assert ended.wait(PATIENCE)


@needs_kubectl
def test_attaching_shows_the_log_and_with_input_runs_the_container_s_own_command(plane: Kubectl) -> None:
    api = core(plane)
    make(api, "shell", main={"command": ["cat"], "stdin": True})
    assert "hello" in plane("attach", "shell", "-i", stdin="hello\n").out
    make(api, "short", main={"command": ["sleep", "30"]}, restartPolicy="Never")
    assert "started container main" in plane("attach", "short").out


@needs_kubectl
def test_kubectl_debug_goes_on(plane: Kubectl) -> None:
    plane("debug", "web", "--image=busybox", "-c", "debugger", "--", "sleep", "20")
    wait = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}"
    plane("wait", wait, "pod/web", f"--timeout={PATIENCE:g}s")


# -- ports ------------------------------------------------------------------------------------


@needs_kubectl
def test_kubectl_forwards_a_port_to_this_machine(plane: Kubectl) -> None:
    with echoing() as port:
        words = plane.command("port-forward", "pod/web", f":{port}", "--address=127.0.0.1")
        with subprocess.Popen(words, env=plane.env(), stdout=subprocess.PIPE, text=True) as forwarding:
            try:
                assert forwarding.stdout is not None
                line = forwarding.stdout.readline()
                local = int(line.split(" -> ")[0].rpartition(":")[2])
                for content in (b"one", b"x" * 200_000, b"three"):
                    with socket.create_connection(("127.0.0.1", local), PATIENCE) as connection:
                        connection.sendall(content)
                        connection.shutdown(socket.SHUT_WR)
                        received = b""
                        while data := connection.recv(65536):
                            received += data
                        assert received == content.upper()
            finally:
                forwarding.terminate()


def test_the_python_client_forwards_a_port_that_an_annotation_names(plane: Kubectl) -> None:
    with echoing() as port:
        note = {"metadata": {"annotations": {"sim.steersman.dev/port.80": str(port)}}}
        core(plane).patch_namespaced_pod("web", "default", note)
        forwarded = port_forward(
            core(plane).connect_get_namespaced_pod_portforward, "web", "default", ports="80"
        )
        connection = forwarded.socket(80)
        connection.settimeout(PATIENCE)
        connection.sendall(b"hello")
        assert connection.recv(100) == b"HELLO"
        forwarded.close()


def test_a_port_where_nothing_listens_is_an_error_of_its_own(plane: Kubectl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    forwarded = port_forward(
        core(plane).connect_get_namespaced_pod_portforward, "web", "default", ports=str(port)
    )
    connection = forwarded.socket(port)
    connection.settimeout(PATIENCE)
    assert connection.recv(100) == b""
    assert f"error forwarding port {port} to pod web" in forwarded.error(port)


# -- a kubelet's own pages --------------------------------------------------------------------


def test_a_node_is_proxied_to_by_name_and_port(plane: Kubectl) -> None:
    api = core(plane)

    get = api.connect_get_node_proxy_with_path
    assert get("node-1:10250", "healthz") == "ok"
    assert 'kubelet_node_name{node="node-1"} 1' in get("https:node-1:10250", "metrics")
    for name, path, status in (("node-1", "nope", 404), ("node-9", "healthz", 404), ("node-1:22", "x", 503)):
        with pytest.raises(ApiException) as refused:
            get(name, path)
        assert refused.value.status == status


# -- rights -----------------------------------------------------------------------------------


@needs_kubectl
def test_a_user_needs_the_right_to_create_pods_exec(plane: Kubectl) -> None:
    plane("create", "role", "reader", "--verb=get", "--resource=pods,pods/exec,pods/log")
    plane("create", "rolebinding", "reader", "--role=reader", "--user=jane")
    assert "started" in plane("logs", "web", "--as=jane").out
    said = plane.refused("exec", "web", "--as=jane", "--", "true")
    assert "is forbidden" in said
