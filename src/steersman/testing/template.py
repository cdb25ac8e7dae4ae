"""Cluster plans, and the template worlds that clusters are forked from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import is_
from typing import Any

import msgspec

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider
from steersman.api.errors import NotFound
from steersman.intent import settings as flags
from steersman.intent.controller import Controller
from steersman.runtime.events import EVENTS
from steersman.runtime.python_gc import freeze, without_collector
from steersman.server import admission
from steersman.server.auth.rbac import RBACAuthorizer, follow, policies
from steersman.server.bootstrap_objects import install_roles, service_cidr
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim import metrics
from steersman.sim.dynamicresources import DRIVER, Devices
from steersman.sim.kubelet import Kubelets, KubeletSettings, Shape, pod_addresses
from steersman.sim.kubelet.kubelet_endpoint import KubeletEndpoint
from steersman.sim.scheduler import Scheduler
from steersman.sim.storage import SimulatedStorage
from steersman.sim.storage import install as install_storage
from steersman.sim.volume_names import ATTACHER, BINDER, STORAGE_USER
from steersman.sim.world import World
from steersman.snapshot.model import LoadedSnapshot
from steersman.testing import credentials
from steersman.testing.history import History
from steersman.testing.process import Manager, Runtime, user_named

REQUIRED_CONTROLLERS = {
    "ServiceAccount": "serviceaccount-controller",
    "TaintNodesByCondition": "node-lifecycle-controller",
}
"""Controllers that admission plugins depend on."""
SERVICE_CIDR = "service-cluster-ip-range"
DEFAULT_SETTINGS = KubeletSettings(start_delay=1.0)
"""A container takes a second to start: without a delay, ordering bugs stay hidden."""


class Plan(msgspec.Struct, frozen=True):
    """The parts of a cluster."""

    nodes: tuple[str, ...]
    controllers: tuple[Controller[Any], ...]
    flags: Mapping[str, Any]
    gates: Mapping[str, bool]
    shuffle: bool
    journal: bool
    start: datetime
    settings: KubeletSettings
    shape: Shape
    cloud: CloudProvider | None = None
    csi: bool = False
    dra: Devices | None = None
    """The simulated devices of each node; None: ResourceClaims are not allocated."""
    snapshot: LoadedSnapshot | None = None
    """The cluster to begin with; None: a new one."""
    any_provisioner: bool = False
    """Whether the claims of all StorageClasses get volumes."""
    files: Callable[[str], bytes] = credentials.read
    """Reads the files that flags of the controllers name."""

    @property
    def key(self) -> tuple[object, ...]:
        """Clusters with the same key start from the same template. Controllers are compared by identity."""
        ids = tuple(id(each) for each in self.controllers)
        rest = repr((sorted(self.flags.items()), sorted(self.gates.items()), self.shape, self.dra))
        # A provider makes a difference to running managers only, and a template has none.
        return self.nodes, ids, self.shuffle, self.journal, self.start, self.settings, self.csi, rest

    @property
    def missing(self) -> tuple[str, ...]:
        """Admission plugins whose controller does not run."""
        running = {controller.name for controller in self.controllers}
        return tuple(plugin for plugin, partner in REQUIRED_CONTROLLERS.items() if partner not in running)

    @property
    def service_cidr(self) -> str:
        """The range of cluster IPs, or one of each IP family."""
        given = str(self.flags.get(SERVICE_CIDR) or pod_addresses.FLAGS[SERVICE_CIDR])
        return ",".join(text.strip() for text in given.split(","))

    def configured(self, server: Server) -> tuple[Controller[Any], ...]:
        """The controllers as the flags configure them, where the server serves their resources."""
        found = _configured.get(self.key)
        if found is None:
            settings = flags.Settings({**credentials.FLAGS, **pod_addresses.FLAGS, **self.flags}, self.gates)
            built = (each.configured(settings) for each in self.controllers)
            found = _configured[self.key] = tuple(each for each in built if each is not None)
        return tuple(each for each in found if _served(server, each))

    def runs(self, name: str) -> bool:
        """Whether a controller runs."""
        return any(controller.name == name for controller in self.controllers)

    def start_nodes(self, runtime: Runtime, clock: Clock) -> Kubelets | None:
        """Start the kubelets, the scheduler, the storage and the devices; returns the kubelets."""
        if not self.nodes:
            return None
        volumes, dra = self.runs(BINDER), self.dra is not None
        api = LocalApi(runtime.server, user_named("system:kubelet", None), "kubelet")
        kubelets = Kubelets(
            api,
            clock,
            self.nodes,
            settings=self.settings,
            shape=self.shape,
            volumes=volumes,
            attach=self.runs(ATTACHER),
            dra=dra,
            register=self.snapshot is None,
            adopt=self.snapshot.nodes if self.snapshot is not None else (),
        )
        runtime.server.kubelets = KubeletEndpoint(kubelets)
        runtime.spawn(kubelets.run(), name="kubelets")
        api = LocalApi(runtime.server, user_named("system:kube-scheduler", None), "kube-scheduler")
        runtime.spawn(Scheduler(api, clock, volumes=volumes, dra=dra).run(), name="scheduler")
        if volumes or self.csi:
            api = LocalApi(runtime.server, user_named(STORAGE_USER, None), STORAGE_USER)
            runtime.spawn(
                SimulatedStorage(api, clock, csi=self.csi, any_provisioner=self.any_provisioner).run(),
                name="storage",
            )
        if self.dra is not None:
            from steersman.sim.dynamicresources.driver import DeviceDriver

            api = LocalApi(runtime.server, user_named(DRIVER, None), DRIVER)
            runtime.spawn(DeviceDriver(api, clock, self.nodes, self.dra).run(), name="devices")
        return kubelets


def _served(server: Server, controller: Controller[Any]) -> bool:
    for kind in controller.required_kinds:
        try:
            server.registry.of(kind)
        except NotFound:
            return False
    return True


# -- RBAC -------------------------------------------------------------------------------------


class RbacPlugins(admission.Plugins, frozen=True):
    """Admission plugins of a server with RBAC. Each fork of a server follows its own roles."""

    first: list[tuple[Server, RBACAuthorizer]] = msgspec.field(default_factory=list)
    """The first server: most forks have the same roles, so its rules are reused."""

    def __call__(self, server: Server) -> None:
        rights = server.authorizer = follow(server.store, self._known(server))
        admission.Plugins(self.plugins)(server)
        if not self.first:
            self.first.append((server, rights))
        metrics.install(server)

    def _known(self, server: Server) -> RBACAuthorizer | None:
        for origin, rights in self.first:
            ours, theirs = policies(server.store), policies(origin.store)
            if len(ours) == len(theirs) and all(map(is_, ours, theirs)):
                return rights.fork()
        return None


def authorizer(server: Server) -> RBACAuthorizer:
    """The authorizer of a server."""
    assert server.authorizer is not None
    return server.authorizer


# -- templates --------------------------------------------------------------------------------

_templates: dict[tuple[object, ...], tuple[Plan, World]] = {}
_configured: dict[tuple[object, ...], tuple[Controller[Any], ...]] = {}
"""The controllers of plans by their key. A declaration holds nothing of a running controller."""


def template(wanted: Plan) -> World:
    """A settled world to fork, shared by all seeds."""
    known = _templates.get(wanted.key)
    if known is None:
        with without_collector():
            known = _templates[wanted.key] = wanted, _ready(wanted)
        # The template lives as long as the process: the garbage collector need not visit it for every cluster.
        freeze(collect=False)
    return known[1]


def loaded_world(wanted: Plan, loaded: LoadedSnapshot, seed: int) -> World:
    """A world with the objects of a snapshot. The server adds only what it cannot do without, such as its own roles."""
    # Imported when needed: most clusters under test are new.
    from steersman.snapshot.loading import restore_bootstrap_objects

    cidr = service_cidr(loaded.store) or wanted.service_cidr
    plugins = RbacPlugins(admission.default(cidr=cidr).without(*wanted.missing).plugins)
    world = World(
        seed,
        start=wanted.start,
        shuffle=wanted.shuffle,
        journal=wanted.journal,
        plugins=plugins,
        store=loaded.store.fork(),
    )
    server = world.server
    server.registry.enable(gate for gate, on in wanted.gates.items() if on)
    restore_bootstrap_objects(server, cidr)
    install_roles(server)
    if wanted.csi:
        install_storage(server, csi=True)
    server.renew(server.registry.find("", "v1", "events"))
    return world


def _ready(wanted: Plan) -> World:
    plugins = RbacPlugins(admission.default().without(*wanted.missing).plugins)
    world = World(
        0,
        start=wanted.start,
        shuffle=wanted.shuffle,
        journal=wanted.journal,
        plugins=plugins,
        service_cidr=wanted.service_cidr,
    )
    world.server.registry.enable(gate for gate, on in wanted.gates.items() if on)
    install_roles(world.server)
    if wanted.nodes and (wanted.runs(BINDER) or wanted.csi):
        install_storage(world.server, csi=wanted.csi)
    rights = authorizer(world.server)
    controllers, history = wanted.configured(world.server), History(world.server)
    Manager(controllers, world, world, history, authorizer=rights, files=credentials.read)
    wanted.start_nodes(world, world)
    world.run(world.settle())
    # Each manager registers the nodes when it starts; that of the template is none of the test's.
    world.run(world.api().delete_collection(EVENTS, "default"))
    world.close()
    return world
