"""The observations that rounds of claims and of volumes decide on, and the flags of the controller."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from steersman.api.kinds import Object, Pod
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from steersman.api.scheme import Key
from steersman.controllers.persistentvolume.memory import REMINDER, Memory
from steersman.intent.actions import Emit
from steersman.intent.settings import Flag
from steersman.intent.verdict import Wake

SYNC_PERIOD = Flag(
    "pvclaimbinder-sync-period", 15.0, "The time between two looks at claims that are not bound."
)
DYNAMIC_PROVISIONING = Flag("enable-dynamic-provisioning", True, "Provision volumes for claims.")
HOST_PATH_PROVISIONER = Flag(
    "enable-hostpath-provisioner",
    False,
    "Provision directories of this host as volumes, for tests on one node.",
)
MINIMUM_TIMEOUT_NFS = Flag(
    "pv-recycler-minimum-timeout-nfs",
    300,
    "The least deadline of the pod that recycles an NFS volume, in seconds.",
)
INCREMENT_TIMEOUT_NFS = Flag(
    "pv-recycler-increment-timeout-nfs", 30, "Seconds of that deadline for each Gi of an NFS volume."
)
POD_TEMPLATE_NFS = Flag(
    "pv-recycler-pod-template-filepath-nfs", "", "The file of the pod that recycles an NFS volume."
)
MINIMUM_TIMEOUT_HOST_PATH = Flag(
    "pv-recycler-minimum-timeout-hostpath",
    60,
    "The least deadline of the pod that recycles a hostPath volume, in seconds.",
)
INCREMENT_TIMEOUT_HOST_PATH = Flag(
    "pv-recycler-timeout-increment-hostpath", 30, "Seconds of that deadline for each Gi of a hostPath volume."
)
POD_TEMPLATE_HOST_PATH = Flag(
    "pv-recycler-pod-template-filepath-hostpath", "", "The file of the pod that recycles a hostPath volume."
)
FLAGS = (
    SYNC_PERIOD,
    DYNAMIC_PROVISIONING,
    HOST_PATH_PROVISIONER,
    MINIMUM_TIMEOUT_NFS,
    INCREMENT_TIMEOUT_NFS,
    POD_TEMPLATE_NFS,
    MINIMUM_TIMEOUT_HOST_PATH,
    INCREMENT_TIMEOUT_HOST_PATH,
    POD_TEMPLATE_HOST_PATH,
)


class Recycler(msgspec.Struct, frozen=True):
    """How the volumes of a plugin are recycled."""

    minimum: int
    increment: int
    """Seconds: the least deadline of the pod, and what each Gi adds up to."""
    template: str = ""
    """The file of the pod; empty for upstream's."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags and feature gates."""

    provisions: bool = DYNAMIC_PROVISIONING.default
    provisions_host_paths: bool = HOST_PATH_PROVISIONER.default
    attributes_classes: bool = True
    sync_period: float = SYNC_PERIOD.default
    """Seconds until a step is tried again that upstream tries again whenever it looks at all volumes."""
    nfs: Recycler = Recycler(MINIMUM_TIMEOUT_NFS.default, INCREMENT_TIMEOUT_NFS.default)
    host_path: Recycler = Recycler(MINIMUM_TIMEOUT_HOST_PATH.default, INCREMENT_TIMEOUT_HOST_PATH.default)


class ClaimSeen(msgspec.Struct, frozen=True):
    """A claim, and what its next step depends on."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    """The volume it names; or, while it names none, the one to bind it to."""
    storage_class: StorageClass | None
    """The class it asks for, if there is such a class."""
    default_class: StorageClass | None
    """The class it gets if it does not ask for one."""
    unscheduled_pods: tuple[str, ...]
    """The names of pods that use it and wait for a node."""
    node_exists: bool
    """Whether the node that the scheduler selected for it exists."""
    memory: Memory
    monotonic: float
    config: Config

    @property
    def written(self) -> tuple[Key, ...]:
        """The keys of the objects that the round may write to."""
        volume = self.volume
        return (self.claim.key, volume.key) if volume is not None else (self.claim.key,)


class VolumeSeen(msgspec.Struct, frozen=True):
    """A volume, and what its next step depends on."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim | None
    """The claim of the name in its claimRef; its uid may be another."""
    taken_by: Key | None
    """The claim whose round is about to take it."""
    claims_due: bool
    """Whether the round of a claim that may want it is due."""
    provisioner: str
    """The provisioner of its class; empty if there is no such class."""
    pods: tuple[str, ...]
    """The pods that use a claim of that name and have not ended."""
    recyclers: tuple[Pod, ...]
    """The pods that have the name of the pod that recycles it."""
    memory: Memory
    monotonic: float
    config: Config

    @property
    def written(self) -> tuple[Key, ...]:
        """The keys of the objects that the round may write to."""
        return (self.volume.key,)


class RecyclerSeen(msgspec.Struct, frozen=True):
    """The pod that recycles a volume which is gone."""

    volume: Key
    pod: Pod
    memory: Memory

    @property
    def written(self) -> tuple[Key, ...]:
        """The keys of the objects that the round may write to."""
        return (self.volume,)


def remind(because: str) -> Wake:
    """The verdict about a volume in a state that an event tells of: in time to tell of it again.

    A claim that waits needs no such verdict, since it is looked at again every few seconds.
    """
    return Wake(timedelta(seconds=REMINDER), because)


async def emit(
    seen: ClaimSeen | VolumeSeen,
    about: Object,
    type_: Literal["Normal", "Warning"],
    reason: str,
    message: str,
) -> None:
    """Emit an event about a state that lasts, unless the last event says the same."""
    # By uid: a round may find another object of the name without having seen the first one go.
    if seen.memory.is_news(about.key, (about.metadata.uid, reason, message), seen.monotonic):
        await Emit(about, type_, reason, message)
