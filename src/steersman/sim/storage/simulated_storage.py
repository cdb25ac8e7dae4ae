"""Runs the controllers of simulated storage, and creates the StorageClasses that name them.

Without a claim there is nothing to do, so the controllers are imported and started with the first one. A CSI driver has nodes to
register with, so it starts at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.api.clock import Clock
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.storage_v1 import CSIDriver, CSIDriverSpec, StorageClass
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server

HOST_PATH = "sim.steersman.dev/hostpath"
"""The provisioner of the default StorageClass."""
DRIVER = "csi.sim.steersman.dev"
"""The simulated CSI driver, and its provisioner."""
CLAIMS: Kind[v1.PersistentVolumeClaim] = load("", "v1", "PersistentVolumeClaim")

STANDARD = StorageClass(
    metadata=ObjectMeta(name="standard", annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
    provisioner=HOST_PATH,
    reclaimPolicy="Delete",
    volumeBindingMode="WaitForFirstConsumer",
)
"""The default StorageClass, named and configured as that of kind."""
CSI = StorageClass(
    metadata=ObjectMeta(name="csi-sim"),
    provisioner=DRIVER,
    reclaimPolicy="Delete",
    volumeBindingMode="WaitForFirstConsumer",
    allowVolumeExpansion=True,
)
"""The StorageClass of the simulated CSI driver."""
CSI_DRIVER = CSIDriver(
    metadata=ObjectMeta(name=DRIVER),
    spec=CSIDriverSpec(attachRequired=True, podInfoOnMount=False, volumeLifecycleModes=("Persistent",)),
)


def install(server: Server, *, csi: bool = False) -> None:
    """Create the default StorageClass, and with ``csi`` the CSI driver and its class, where they are missing."""
    _create_missing(server, "StorageClass", STANDARD)
    if csi:
        _create_missing(server, "StorageClass", CSI)
        _create_missing(server, "CSIDriver", CSI_DRIVER)


def _create_missing(server: Server, kind: str, obj: StorageClass | CSIDriver) -> None:
    resource = server.registry.find("storage.k8s.io", "v1", load("storage.k8s.io", "v1", kind).plural)
    if server.table(resource).get(obj.metadata.name) is None:
        create_as_server(server, resource, "", obj)


class SimulatedStorage:
    """The provisioner of the default StorageClass, and the CSI driver."""

    def __init__(self, api: Api, clock: Clock, *, csi: bool = False, any_provisioner: bool = False) -> None:
        """With ``any_provisioner`` the claims of all StorageClasses get volumes."""
        self._any_provisioner = any_provisioner
        self._api = api
        self._clock = clock
        self._csi = csi

    async def run(self) -> None:
        """Run until cancelled."""
        if not self._csi:
            await self._first_claim()
        # Imported when needed: most clusters under test have no volumes.
        from steersman.runtime.controller_group import ControllerGroup
        from steersman.runtime.metrics import Metrics
        from steersman.sim.storage import provisioner

        controllers: list[Controller[Any]] = [
            provisioner.any_controller if self._any_provisioner else provisioner.controller
        ]
        if self._csi:
            from steersman.sim.storage import attacher, registrar, resizer

            if not self._any_provisioner:
                controllers = [provisioner.hostpath_controller, provisioner.csi_controller]
            controllers += [registrar.controller, attacher.controller, resizer.controller]
        await ControllerGroup(controllers, self._api, self._clock, metrics=Metrics(enabled=False)).run()

    async def _first_claim(self) -> None:
        """Wait until there is a claim, where the server can tell."""
        claimed = asyncio.Event()
        empty = self._api.capabilities.when_not_empty(CLAIMS, claimed.set)
        if empty is not None:
            try:
                await claimed.wait()
            finally:
                empty.end()
