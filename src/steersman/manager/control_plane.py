"""The control plane of ``steersman up`` in one process: API server, controllers, scheduler and simulated nodes."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider, offers
from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from steersman.api.kinds import EMPTY
from steersman.api.signing_keys import KeySet
from steersman.client.api import Api
from steersman.cloud.local import LocalProvider
from steersman.http.limits import Limits
from steersman.intent.controller import Controller, Settings
from steersman.manager.aggregated_api import AggregatedApi, RemoteClients
from steersman.manager.controller_selection import select
from steersman.manager.dashboard import PREFIX
from steersman.manager.embedded_election import EmbeddedElection
from steersman.manager.flags import UsageError
from steersman.manager.plane_dashboard import USER as DASHBOARD_USER
from steersman.manager.plane_dashboard import ControlPlane, ControlPlaneSite
from steersman.manager.supervisor import ComponentFailed, Supervisor
from steersman.manager.tracing import make_tracing
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.lease import identity
from steersman.runtime.trace import Trace
from steersman.runtime.trace_view import PATH, TraceView
from steersman.server import admission
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed, write_private
from steersman.server.auth.rbac import GROUP, RBACAuthorizer
from steersman.server.auth.users import MASTERS, User, authenticated, node_user, service_account_user
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.bootstrap_objects import service_cidr
from steersman.server.calls import WebhookAddresses
from steersman.server.http.app import ApiServer
from steersman.server.http.loopback import LoopbackListener
from steersman.server.local import LocalApi
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.sim import metrics
from steersman.sim.dynamicresources import DRIVER, Devices
from steersman.sim.kubelet import Kubelets, KubeletSettings, pod_addresses
from steersman.sim.kubelet.kubelet_endpoint import KubeletEndpoint
from steersman.sim.kubelet.node import taken_over
from steersman.sim.scaled_clock import ScaledLoop
from steersman.sim.scheduler import Scheduler
from steersman.sim.storage import SimulatedStorage
from steersman.sim.storage import install as install_storage
from steersman.sim.time_control import TimeControl
from steersman.sim.volume_names import ATTACHER, BINDER, STORAGE_USER

if TYPE_CHECKING:
    from steersman.snapshot.model import LoadedSnapshot

TAINT_REMOVER = "node-lifecycle-controller"
"""Removes the not-ready taint of a new node once the node is ready. Without it, nodes are not tainted."""
START_DELAY = 1.0
"""Seconds a simulated container takes to start."""
SHUTDOWN = 0.2
"""Seconds a simulated container takes to stop. Not 0: a pod would be gone before any watcher saw it unready."""
MANAGER = "kube-controller-manager"
MANAGER_USER = "system:kube-controller-manager"
KUBELETS = "steersman:kubelets"
"""The user whose watches and events all kubelets share, and the ClusterRoleBinding that grants it system:node.

differs: a real kubelet watches the objects of its own node. Whatever a kubelet writes, it writes as its own node.
"""
KUBELET_VOLUMES = "steersman:kubelets:volumes"
"""The ClusterRole and the binding by which the kubelets watch claims and volumes.

differs: a real kubelet gets those of its own pods.
"""
KUBELET_CLAIMS = "steersman:kubelets:resourceclaims"
"""The ClusterRole and the binding by which the kubelets watch ResourceClaims.

differs: a real kubelet gets the claims of its own pods.
"""
SETTINGS = Settings(
    {
        "root-ca-file": "ca.crt",
        "cluster-signing-cert-file": "ca.crt",
        "cluster-signing-key-file": "ca.key",
        "service-account-private-key-file": "sa.key",
        **pod_addresses.FLAGS,
    }
)
"""Flags of the controllers that differ from their defaults: the files are the server's own keys."""

_PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)
"""Errors of a port: it is in use, or reserved for the system. All others are errors of the host's name or address."""

Durable = Callable[[], Coroutine[Any, Any, None]]


class ControlPlaneOptions(msgspec.Struct, frozen=True):
    """Options of ``steersman up``."""

    kubeconfig: Path
    host: str
    port: int
    data_dir: Path | None
    nodes: int
    controllers: bool
    speed: float | None
    """The speed of the cluster's clock, which can be changed while it runs; None: the machine's time, and a faster event loop."""
    verbosity: int
    max_connections: int
    max_watches: int
    gates: Mapping[str, bool] = EMPTY
    """The feature gates that differ from their defaults."""
    csi: bool = False
    dra: Devices | None = None
    """The simulated devices of each node; None: ResourceClaims are not allocated."""
    webhook_addresses: Mapping[str, str] = EMPTY
    """The addresses of Services that webhooks and APIServices name."""
    scheduler: bool = True
    """Whether there is a scheduler, where there are nodes."""
    allow_exec: bool = False
    """Whether clients may run commands on this machine, and connect to its ports, as those of pods."""
    pod_logs: Path | None = None
    """A directory with logs of containers."""
    audit_log: Path | None = None
    """A file for a line about each request; None keeps no log."""
    command: tuple[str, ...] = ()
    snapshot: LoadedSnapshot | None = None
    """The cluster to begin with: its objects, and its nodes, which are simulated from then on."""
    keep_kubeconfig: bool = True
    """Whether the kubeconfig stays when the control plane ends."""
    quiet: bool = False
    ui: bool = True
    """Whether there is a dashboard."""
    ui_port: int | None = None
    """The port on loopback where browsers open the dashboard; 0: any free port; None: over HTTPS only."""

    @property
    def node_names(self) -> list[str]:
        """The names of the simulated nodes."""
        if self.snapshot is not None:
            return [node.metadata.name for node in self.snapshot.nodes]
        return [f"node-{number}" for number in range(1, self.nodes + 1)]


class RunningControlPlane(msgspec.Struct, frozen=True):
    """A control plane that is ready."""

    url: str
    kubeconfig: Path
    server: Server
    controllers: int
    dashboard: str
    """The URL of the dashboard, with a token; empty where there is none for browsers."""
    other_manager: str
    """The name of another manager that holds the Lease, so that the controllers wait; empty if there is none."""
    failed: Callable[[], Coroutine[Any, Any, ComponentFailed]]
    """Waits until a component of the control plane fails."""


@asynccontextmanager
async def run_control_plane(
    options: ControlPlaneOptions, clock: Clock, on_failure: Callable[[], None] = lambda: None
) -> AsyncIterator[RunningControlPlane]:
    """Run a control plane. The caches of its controllers are synced on entry.

    ``on_failure`` is called as soon as a component fails, from any thread, and before others fail because of it.

    Raises `UsageError` where it cannot start, and `ComponentFailed` where a component fails during startup.
    """
    async with AsyncExitStack() as stack:
        try:
            running = await _start(options, clock, stack, on_failure)
        except ApiError as error:
            raise UsageError(f"the control plane cannot start: {error.message}") from None
        yield running


async def _start(
    options: ControlPlaneOptions, clock: Clock, stack: AsyncExitStack, on_failure: Callable[[], None]
) -> RunningControlPlane:
    supervisor = Supervisor(on_failure)
    loop = asyncio.get_running_loop()
    server, boot, durable, manager = _server(options, clock, stack, supervisor, on_failure)
    server.registry.enable(gate for gate, on in options.gates.items() if on)
    server.webhook_addresses = WebhookAddresses(options.webhook_addresses)
    loops = controllers(server, options.gates) if options.controllers else ()
    without = () if any(each.name == TAINT_REMOVER for each in loops) else ("TaintNodesByCondition",)
    authorizer = bootstrap_server(
        server,
        client_ca=boot.authority.pair.cert,
        disabled_plugins=without,
        cidr=service_cidr(server.store) or admission.CIDR,
    )
    if options.node_names:
        server.extend(metrics.install)
        _bind_kubelets(server, "system:node")
        if options.dra is not None:
            _create_role(server, KUBELET_CLAIMS, "resource.k8s.io", "resourceclaims")
            _bind_kubelets(server, KUBELET_CLAIMS)
        _create_role(server, KUBELET_VOLUMES, "", "persistentvolumeclaims", "persistentvolumes")
        _bind_kubelets(server, KUBELET_VOLUMES)
        install_storage(server, csi=options.csi)
    token = secrets.token_urlsafe(32) if options.ui_port is not None else ""
    viewer = User(DASHBOARD_USER, groups=(MASTERS,))
    try:
        api_server = await boot.serve(
            server,
            authorizer,
            host=options.host,
            port=options.port,
            tokens={token: viewer} if token else None,
            durable=durable,
            limits=Limits(connections=options.max_connections),
            max_watches=options.max_watches,
            audit_log=options.audit_log,
        )
    except OSError as error:
        if options.audit_log is not None and str(error.filename) == str(options.audit_log):
            raise UsageError(
                f"--audit-log: cannot write {options.audit_log}: {error.strerror}; pass another file"
            ) from None
        address = f"{options.host}:{options.port}"
        remedy = "--port, or --port=0" if error.errno in _PORT_ERRORS else "--host"
        raise UsageError(f"cannot listen on {address}: {_cause(error)}; pass another {remedy}") from None
    stack.push_async_callback(api_server.close)
    clients = RemoteClients(api_server.url, boot.authority, lambda: api_server.state.aggregator)
    stack.push_async_callback(clients.close)
    path = options.kubeconfig
    if options.command:
        import tempfile

        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-")), "kubeconfig")
    text = boot.kubeconfig(api_server.url)
    try:
        write_private(path, text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; pass another --kubeconfig") from None
    if not options.keep_kubeconfig:
        stack.callback(_remove, path, text)
    tracing = make_tracing()
    if tracing.close is not None:
        stack.callback(tracing.close)
    stack.push_async_callback(supervisor.stop)
    ready = asyncio.Event()
    rounds = TraceView(tracing.trace, clock)
    api_server.state.documents = {PATH: rounds.answer}
    dashboard = ""
    kubelets: Kubelets | None = None
    if options.ui:
        plane = ControlPlane(clock, rounds, simulated=options.nodes > 0)
        api_server.state.site = site = ControlPlaneSite(plane, server, authorizer, rounds)
        if options.ui_port is not None:
            listener = await _open_to_browsers(api_server, options.ui_port)
            stack.push_async_callback(listener.close)
            dashboard = f"http://127.0.0.1:{listener.port}{PREFIX}/#token={token}"
        stack.push_async_callback(site.close)
        if isinstance(loop, ScaledLoop):
            plane.time = time = TimeControl(loop, clock, server.store, lambda: _wake_ups(rounds, kubelets))
            site.sleep = loop.sleep_in_real_time
            stack.callback(time.release)
    others: list[str] = []
    if loops:

        def other_leads(holder: str) -> None:
            others.append(holder)
            ready.set()

        def make(fence: Callable[[], bool]) -> ControllerGroup:
            fleet = _fleet(loops, server, boot, authorizer, clock, fence, rounds.trace, clients)
            rounds.groups[:] = [fleet]
            return fleet

        election = EmbeddedElection(
            _api(server, authorizer, User(MANAGER_USER), MANAGER),
            clock,
            make,
            identity=manager,
            loop=loop if isinstance(loop, ScaledLoop) else None,
            on_other=other_leads,
        )
        supervisor.start(election.run(ready.set), "the controllers")
    else:
        ready.set()
    names = options.node_names
    if names:
        api = _api(server, authorizer, User(KUBELETS), "kubelet")
        # Without controllers of its own, the control plane has those of another manager.
        volumes, attach = (not loops or any(one.name == each for one in loops) for each in (BINDER, ATTACHER))
        settings = KubeletSettings(start_delay=START_DELAY, shutdown=SHUTDOWN)
        dra = options.dra is not None
        kubelets = Kubelets(
            api,
            clock,
            names,
            settings=settings,
            volumes=volumes,
            attach=attach,
            dra=dra,
            node_api=cache(lambda name: _api(server, authorizer, node_user(name), "kubelet")),
            register=options.snapshot is None,
            adopt=options.snapshot.nodes if options.snapshot is not None else (),
        )
        server.kubelets = KubeletEndpoint(kubelets, allow_exec=options.allow_exec, logs=options.pod_logs)
        supervisor.start(kubelets.run(), "the kubelets")
        if options.scheduler:
            api = _api(server, authorizer, User("system:kube-scheduler"), "kube-scheduler")
            scheduler = Scheduler(api, clock, scheduled_events=True, volumes=volumes, dra=dra)
            supervisor.start(scheduler.run(), "the scheduler")
        # Like the drivers of a real cluster, simulated storage is not restricted by roles of the control plane.
        api = LocalApi(server, authenticated(User(STORAGE_USER).with_group(MASTERS)), STORAGE_USER)
        supervisor.start(SimulatedStorage(api, clock, csi=options.csi).run(), "the storage")
        if options.dra is not None:
            from steersman.sim.dynamicresources.driver import DeviceDriver

            api = LocalApi(server, authenticated(User(DRIVER).with_group(MASTERS)), DRIVER)
            supervisor.start(DeviceDriver(api, clock, names, options.dra).run(), "the devices")
    await supervisor.wait_for(ready)
    other = others[-1] if others else ""
    return RunningControlPlane(api_server.url, path, server, len(loops), dashboard, other, supervisor.failed)


def _wake_ups(rounds: TraceView, kubelets: Kubelets | None) -> Iterator[float | None]:
    """When the components act again even if nothing changes."""
    for group in rounds.groups:
        for runner in group.runners:
            yield runner.queue.next_due()
    if kubelets is not None and kubelets.timer is not None:
        yield kubelets.timer.when()


def _cause(error: OSError) -> str:
    """The words of the system alone: asyncio's have the address once more, as a tuple."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


async def _open_to_browsers(api_server: ApiServer, port: int) -> LoopbackListener:
    """Serve the dashboard over plain HTTP on loopback, too: no browser trusts the authority of this control plane."""
    listener = LoopbackListener(api_server.handle, PREFIX)
    try:
        await listener.open(port)
    except OSError as error:
        raise UsageError(
            f"cannot listen on 127.0.0.1:{port}: {_cause(error)}; pass another --ui-port, or --no-ui"
        ) from None
    return listener


def _remove(path: Path, text: bytes) -> None:
    """Remove a kubeconfig, unless another program has written to the file since."""
    with suppress(OSError):
        if path.read_bytes() == text:
            path.unlink()


def controllers(server: Server, gates: Mapping[str, bool] = EMPTY) -> tuple[Controller[Any], ...]:
    """The controllers that kube-controller-manager runs by default, where the server serves what they need."""
    serves, settings = server.registry.serves, replace(SETTINGS, gates=gates)
    return tuple(
        one
        for each in select(("*",))
        if (one := each.configured(settings)) is not None
        and all(serves(kind.group, kind.version, kind.plural) for kind in one.required_kinds)
        and (one.cloud is None or offers(_cloud(), one.cloud))
    )


def _cloud() -> CloudProvider:
    """The provider of load balancers' addresses."""
    return LocalProvider(routes=False, instances=False)


def _fleet(
    loops: tuple[Controller[Any], ...],
    server: Server,
    boot: Bootstrap,
    authorizer: RBACAuthorizer,
    clock: Clock,
    fence: Callable[[], bool],
    trace: Trace,
    clients: RemoteClients,
) -> ControllerGroup:
    files: Mapping[str, bytes] = {
        "ca.crt": boot.authority.pair.cert,
        "ca.key": boot.authority.pair.key,
        "sa.key": boot.keys.pem,
    }

    def api_of(controller: Controller[Any]) -> Api:
        if controller.as_manager:
            return shared
        user = service_account_user("kube-system", controller.service_account or controller.name, "")
        return acting_as(user)

    def acting_as(user: User) -> Api:
        return AggregatedApi(_api(server, authorizer, user, MANAGER), user, clients)

    shared = acting_as(User(MANAGER_USER))
    return ControllerGroup(
        loops,
        shared,
        clock,
        api_of=api_of,
        fence=fence,
        trace=trace,
        files=files.__getitem__,
        cloud=_cloud(),
    )


def _api(server: Server, authorizer: RBACAuthorizer, user: User, manager: str) -> Api:
    """An in-process client that acts as ``user``, under RBAC."""
    return AuthorizedApi(LocalApi(server, authenticated(user), manager), authorizer)


def _create_role(server: Server, name: str, group: str, *resources: str) -> None:
    """Create a ClusterRole that may list and watch some resources, unless it exists."""
    load(GROUP, "v1", "ClusterRole")
    roles = server.registry.find(GROUP, "v1", "clusterroles")
    if server.table(roles).get(name) is None:
        rule = PolicyRule(apiGroups=(group,), resources=resources, verbs=("list", "watch"))
        create_as_server(server, roles, "", ClusterRole(metadata=ObjectMeta(name=name), rules=(rule,)))


def _bind_kubelets(server: Server, role: str) -> None:
    """Grant the kubelets a ClusterRole."""
    load(GROUP, "v1", "ClusterRoleBinding")
    bindings = server.registry.find(GROUP, "v1", "clusterrolebindings")
    name = KUBELETS if role == "system:node" else role
    if server.table(bindings).get(name) is None:
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            roleRef=RoleRef(apiGroup=GROUP, kind="ClusterRole", name=role),
            subjects=(Subject(kind="User", apiGroup=GROUP, name=KUBELETS),),
        )
        create_as_server(server, bindings, "", binding)


def _server(
    options: ControlPlaneOptions,
    clock: Clock,
    stack: AsyncExitStack,
    supervisor: Supervisor,
    on_failure: Callable[[], None],
) -> tuple[Server, Bootstrap, Durable | None, str]:
    """The API server, its keys, a wait until its writes are on disk, and the manager's name in its Lease."""
    if options.snapshot is not None:
        machines = options.snapshot.store.table("nodes")
        # By their providerIDs they are real machines, but here no node is: `steersman node` may fail any of them.
        machines.load({each.metadata.name: taken_over(each) for each in options.snapshot.nodes})
        server = Server(clock, store=options.snapshot.store)
        server.renew(server.registry.find("", "v1", "events"))
        return server, Bootstrap.generate(clock.now), None, identity(clock)
    if options.data_dir is None:
        return Server(clock), Bootstrap.generate(clock.now), None, identity(clock)
    from steersman.server.storage.durable.data_dir import open_data_dir
    from steersman.server.storage.durable.errors import DataDirError

    try:
        data_dir = stack.enter_context(open_data_dir(options.data_dir))
    except DataDirError as error:
        raise UsageError(str(error)) from None
    loop = asyncio.get_running_loop()

    def failed(error: Exception) -> None:
        on_failure()
        message = (
            f"cannot write to {options.data_dir} any more, so the control plane stops: {error}; "
            "writes acknowledged before are safe there"
        )
        loop.call_soon_threadsafe(supervisor.fail, message)

    data_dir.log.on_failure = failed
    cert, key, signing = (data_dir.blob(name) for name in ("ca.crt", "ca.key", "sa.key"))
    if cert is None or key is None or signing is None:
        pair, keys = self_signed("steersman", clock.now()), KeySet.generate()
        cert, key, signing = pair.cert, pair.key, keys.pem
        for name, value in (("ca.crt", cert), ("ca.key", key), ("sa.key", signing)):
            data_dir.put_blob(name, value)
    holder = data_dir.blob("identity")
    if holder is None:
        # One process at a time has the directory, so a Lease held by this name is held by this process: after a crash the
        # controllers need not wait until it has run out.
        holder = identity(clock).encode()
        data_dir.put_blob("identity", holder)
    boot = Bootstrap(
        CertificateAuthority(CertificatePair(cert, key), clock.now), KeySet.load(signing), clock.now
    )
    server = Server(clock, store=data_dir.store)
    data_dir.restart_ttls(server)
    return server, boot, data_dir.log.durable, holder.decode()
