"""KubeletEndpoint: what simulated kubelets answer. Logs and their own pages always; commands and ports where that is allowed.

A simulated container has no process. With ``allow_exec``, exec runs a command on this machine (`local_process`), attaching with input runs the
container's own command there, and a port of a pod is the same port of 127.0.0.1. Without it, all of this is refused with the way to allow
it. The annotation, with the prefix ``sim.steersman.dev/``, ends with the number of a port (``port.80``):

========  ==================================================
``port``  the port of 127.0.0.1 that this port of the pod is
========  ==================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from steersman.api.errors import ApiError, BadRequest, Forbidden, ServerError, TooManyRequests
from steersman.api.generated import core_v1 as v1
from steersman.server.codec.convert import to_document
from steersman.server.codec.encoding import dump
from steersman.server.kubelet_api import CommandOptions, CommandStreams, KubeletAnswer, LogOptions
from steersman.sim.kubelet.behaviour import PREFIX
from steersman.sim.kubelet.container_log import (
    Limit,
    LogLine,
    container_spec,
    container_status,
    instance,
    log_lines,
    selected,
    written_line,
)
from steersman.sim.kubelet.kubelets import Kubelets
from steersman.sim.kubelet.log_file import follow_file, read_file

MAX_COMMANDS = 32
"""Commands that run at once."""
_JSON = "application/json"
_ALLOW = "start `steersman up` with --allow-exec to run it on this machine"


class KubeletEndpoint:
    """The answers of the kubelets of some nodes. A `KubeletApi`."""

    def __init__(self, kubelets: Kubelets, *, allow_exec: bool = False, logs: Path | None = None) -> None:
        """``logs`` is a directory with the logs of containers: ``NAMESPACE/POD/CONTAINER.log``."""
        self._kubelets = kubelets
        self._allow_exec = allow_exec
        self._logs = logs
        self._commands = 0

    # -- logs ---------------------------------------------------------------------------------

    def log(self, pod: v1.Pod, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a container. Raises `BadRequest` where there is none, in a kubelet's words."""
        self._check_reachable(pod)
        run = instance(pod, container, previous=options.previous)
        file = self._file(pod, container)
        if file is not None and not options.previous:
            ended = (lambda: self._has_ended(pod, container)) if options.follow else None
            return read_file(file, options) if ended is None else follow_file(file, options, ended)
        lines = log_lines(pod, container, run)
        return self._follow(pod, container, lines, options)

    def _file(self, pod: v1.Pod, container: str) -> Path | None:
        if self._logs is None:
            return None
        meta = pod.metadata
        found = self._logs / meta.namespace / meta.name / f"{container}.log"
        return found if found.is_file() else None

    def _has_ended(self, pod: v1.Pod, container: str) -> bool:
        status = container_status(self._kubelets.pod(pod.key, pod.metadata.uid) or pod, container)
        gone = self._kubelets.pod(pod.key, pod.metadata.uid) is None
        return gone or status is None or status.state.running is None

    async def _follow(
        self, pod: v1.Pod, container: str, lines: list[LogLine], options: LogOptions
    ) -> AsyncIterator[bytes]:
        limit, sent = Limit(options.limit), len(lines)
        for piece in selected(lines, options):
            yield limit.take(piece)
            if limit.reached:
                return
        while options.follow and not options.previous:
            current = self._kubelets.pod(pod.key, pod.metadata.uid)
            if current is None:
                return
            try:
                run = instance(current, container, previous=False)
            except BadRequest:
                return
            lines = log_lines(current, container, run)
            for line in lines[sent:]:
                yield limit.take(written_line(line, options.timestamps))
            sent = max(sent, len(lines))
            if limit.reached or run.ended is not None:
                return
            await self._kubelets.changed(pod.key)

    # -- commands and ports -------------------------------------------------------------------

    def authorize(self, pod: v1.Pod, container: str, subresource: str, options: CommandOptions) -> None:
        """Refuse what is not allowed, or cannot be done now."""
        self._check_reachable(pod)
        if subresource == "portforward":
            if not self._allow_exec:
                message = (
                    f"port forwarding to pod {pod.metadata.name} is not allowed: its node is simulated; "
                    "start `steersman up` with --allow-exec to forward to ports of this machine"
                )
                raise Forbidden(message, reason="Forbidden")
            if pod.status.phase != "Running":
                phase = (
                    f"unable to forward port because pod is not running. Current status={pod.status.phase}"
                )
                raise BadRequest(phase, reason="BadRequest")
            return
        status = container_status(pod, container)
        if status is None or status.state.running is None:
            raise ServerError(
                f'Internal error occurred: unable to upgrade connection: container not found ("{container}")',
                reason="InternalError",
            )
        if subresource == "attach" and not options.stdin:
            return  # shows the log
        if not self._allow_exec:
            what = (
                "attaching to the input of a container"
                if subresource == "attach"
                else "running a command in it"
            )
            message = f"{what} is not allowed: container {container} of pod {pod.metadata.name} is simulated; {_ALLOW}"
            raise Forbidden(message, reason="Forbidden")
        self._check_room()

    def _check_room(self) -> None:
        if self._commands >= MAX_COMMANDS:
            raise TooManyRequests(
                f"too many commands: {MAX_COMMANDS} are running", reason="TooManyRequests", retry_after=1.0
            )

    async def run(
        self, pod: v1.Pod, container: str, options: CommandOptions, streams: CommandStreams
    ) -> int | str:
        """Run a command on this machine, or follow the log of a container that is attached to without input."""
        if not options.command and not options.stdin:
            async for piece in self.log(pod, container, LogOptions(follow=True)):
                await streams.write(piece)
            return 0
        command = options.command or _own_command(pod, container)
        if not command:
            return f"container {container} has no command of its own that could be run on this machine"
        # Imported when needed: it is of no use where commands are not allowed.
        from steersman.sim.kubelet.local_process import run_command

        self._check_room()
        self._commands += 1
        try:
            return await run_command(command, pod, container, options, streams)
        finally:
            self._commands -= 1

    async def dial(self, pod: v1.Pod, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the port of this machine that stands for a port of a pod."""
        if not self._allow_exec:
            raise Forbidden(_ALLOW, reason="Forbidden")
        named = pod.metadata.annotations.get(f"{PREFIX}port.{port}", str(port))
        if not (named.isascii() and named.isdigit() and len(named) < 6 and 0 < int(named) < 65536):
            raise OSError(f"annotation {PREFIX}port.{port} is no port: {named[:32]!r}")
        return await asyncio.open_connection("127.0.0.1", int(named))

    # -- a kubelet's own pages ----------------------------------------------------------------

    def answer(self, node: v1.Node, path: str) -> KubeletAnswer:
        """The answer of a node's kubelet to a GET request."""
        name = node.metadata.name
        if self._kubelets.is_down(name):
            raise self._unreachable(name)
        pods = sorted(self._kubelets.pods_on(name), key=lambda pod: pod.key)
        match path.strip("/").split("/"):
            case ["healthz"] | ["healthz", "ping" | "log" | "syncloop"]:
                return KubeletAnswer(b"ok")
            case ["pods"]:
                items = [to_document("v1", "Pod", pod) for pod in pods]
                return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
            case ["runningpods"]:
                running = [pod for pod in pods if pod.status.phase == "Running"]
                items = [to_document("v1", "Pod", pod) for pod in running]
                return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
            case ["configz"]:
                config = {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
                return _json({"kubeletconfig": config})
            case ["metrics"]:
                return KubeletAnswer(_metrics(name, pods), content_type="text/plain; version=0.0.4")
            case ["logs", *_]:
                return KubeletAnswer(b"<pre>\n</pre>\n", content_type="text/html; charset=utf-8")
        return KubeletAnswer(b"404 page not found\n", 404)

    def _check_reachable(self, pod: v1.Pod) -> None:
        if self._kubelets.is_down(pod.spec.nodeName):
            raise self._unreachable(pod.spec.nodeName)

    def _unreachable(self, node: str) -> ApiError:
        address = self._kubelets.address(node)
        message = f"Internal error occurred: dial tcp {address}:10250: connect: connection refused"
        return ServerError(message, reason="InternalError")


def _own_command(pod: v1.Pod, container: str) -> tuple[str, ...]:
    spec = container_spec(pod, container)
    return () if spec is None else (*spec.command, *spec.args)


def _json(document: object) -> KubeletAnswer:
    return KubeletAnswer(dump(document), content_type=_JSON)


def _metrics(node: str, pods: list[v1.Pod]) -> bytes:
    states = [status.state for pod in pods for status in pod.status.containerStatuses]
    running = sum(state.running is not None for state in states)
    exited = sum(state.terminated is not None for state in states)
    up = sum(pod.status.phase == "Running" for pod in pods)
    return "".join(_metric_lines(node, up, running, exited)).encode()


def _metric_lines(node: str, pods: int, running: int, exited: int) -> Iterator[str]:
    yield "# HELP kubelet_node_name [ALPHA] The node's name. The count is always 1.\n"
    yield f'# TYPE kubelet_node_name gauge\nkubelet_node_name{{node="{node}"}} 1\n'
    yield "# HELP kubelet_running_containers [ALPHA] Number of containers currently running\n"
    yield "# TYPE kubelet_running_containers gauge\n"
    yield f'kubelet_running_containers{{container_state="exited"}} {exited}\n'
    yield f'kubelet_running_containers{{container_state="running"}} {running}\n'
    yield "# HELP kubelet_running_pods [ALPHA] Number of pods that have a running pod sandbox\n"
    yield f"# TYPE kubelet_running_pods gauge\nkubelet_running_pods {pods}\n"
