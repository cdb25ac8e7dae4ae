"""Volumes of a pod as its kubelet mounts them: which ones containers mount, and why they cannot be mounted yet. Pure functions.

The messages are those of kubelet 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key
from steersman.sim.volume_names import (
    CLAIM_PROTECTION,
    claim_name,
    is_accessible,
    is_for_pod,
    not_for_pod,
    unique_name,
)

if TYPE_CHECKING:
    from steersman.api.generated import storage_v1

TOKEN_VOLUME = "kube-api-access-"
"""Prefix of the volume that admission adds to every pod.

differs: kubelets here do not wait for it, so that pods also run where nothing publishes the certificate of the API server.
"""


class VolumeSource(msgspec.Struct, frozen=True):
    """An object that a volume of a pod is made from."""

    volume: str
    kind: Literal["claim", "configmap", "secret"]
    name: str
    keys: tuple[str, ...] = ()
    """The keys that must exist."""
    optional: bool = False
    ephemeral: bool = False


class VolumeObjects(Protocol):
    """The objects that volumes are made from, as a kubelet knows them."""

    def claim(self, key: Key) -> v1.PersistentVolumeClaim | None: ...
    def volume(self, name: str) -> v1.PersistentVolume | None: ...
    def config_map(self, key: Key) -> v1.ConfigMap | None: ...
    def secret(self, key: Key) -> v1.Secret | None: ...
    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None: ...


def volume_sources(pod: v1.Pod) -> tuple[VolumeSource, ...]:
    """The objects that the mounted volumes of a pod are made from. Volumes that no container mounts do not count."""
    spec = pod.spec
    if not any(_has_source(volume) for volume in spec.volumes):
        return ()
    containers = (*spec.initContainers, *spec.containers)
    mounted = {mount.name for each in containers for mount in each.volumeMounts}
    mounted |= {device.name for each in containers for device in each.volumeDevices}
    return tuple(
        source
        for volume in spec.volumes
        if volume.name in mounted
        for source in _sources(volume, pod.metadata.name)
    )


def _has_source(volume: v1.Volume) -> bool:
    if volume.projected is not None:
        return not volume.name.startswith(TOKEN_VOLUME)
    return (
        volume.persistentVolumeClaim is not None
        or volume.configMap is not None
        or volume.secret is not None
        or volume.ephemeral is not None
    )


def _sources(volume: v1.Volume, pod: str) -> Iterator[VolumeSource]:
    name = volume.name
    if volume.persistentVolumeClaim is not None:
        yield VolumeSource(name, "claim", volume.persistentVolumeClaim.claimName)
    elif volume.ephemeral is not None:
        yield VolumeSource(name, "claim", claim_name(pod, name), ephemeral=True)
    elif volume.configMap is not None:
        yield _config(
            name, "configmap", volume.configMap.name, volume.configMap.items, volume.configMap.optional
        )
    elif volume.secret is not None:
        yield _config(name, "secret", volume.secret.secretName, volume.secret.items, volume.secret.optional)
    elif volume.projected is not None and not name.startswith(TOKEN_VOLUME):
        for each in volume.projected.sources or ():
            if each.configMap is not None:
                yield _config(
                    name, "configmap", each.configMap.name, each.configMap.items, each.configMap.optional
                )
            if each.secret is not None:
                yield _config(name, "secret", each.secret.name, each.secret.items, each.secret.optional)


def _config(
    volume: str,
    kind: Literal["configmap", "secret"],
    name: str,
    items: Iterable[v1.KeyToPath],
    optional: bool | None,
) -> VolumeSource:
    return VolumeSource(volume, kind, name, tuple(item.key for item in items), bool(optional))


# -- why volumes are not mounted --------------------------------------------------------------


class MountState(msgspec.Struct, frozen=True):
    """The volumes of a pod: why some cannot be mounted, and those that have to be attached to the node."""

    errors: tuple[str, ...] = ()
    """The messages of FailedMount events."""
    attachable: tuple[tuple[str, v1.PersistentVolume], ...] = ()
    """Unique names of volumes that have to be attached, and the volumes."""


def mount_state(
    pod: v1.Pod, sources: Iterable[VolumeSource], node: v1.Node | None, objects: VolumeObjects
) -> MountState:
    """The state of a pod's volumes on its node."""
    unprocessed: dict[str, str] = {}
    failed: dict[str, list[str]] = {}
    attachable: dict[str, v1.PersistentVolume] = {}
    for source in sources:
        key = Key(pod.metadata.namespace, source.name)
        if source.kind != "claim":
            if error := _config_error(source, key, objects):
                failed.setdefault(source.volume, []).append(error)
            continue
        found = find_volume(pod, source, key, objects)
        if isinstance(found, str):
            unprocessed[source.volume] = found
        elif node is not None and not is_accessible(found, node.metadata.labels):
            errors = f'MountVolume.NodeAffinity check failed for volume "{found.metadata.name}"'
            unaffine = f"{errors} : no matching NodeSelectorTerms"
            failed.setdefault(source.volume, []).append(unaffine)
        elif name := attachable_name(found, objects):
            attachable[name] = found
    errors_ = [_set_up_error(volume, each) for volume, each in failed.items()]
    if unprocessed:
        names = " ".join(sorted(unprocessed))
        unmounted = " ".join(sorted((*unprocessed, *failed)))
        errors_.append(
            f"Unable to attach or mount volumes: unmounted volumes=[{unmounted}], unattached volumes=[], "
            f"failed to process volumes=[{names}]: {'; '.join(unprocessed.values())}"
        )
    return MountState(tuple(errors_), tuple(attachable.items()))


def _set_up_error(volume: str, errors: list[str]) -> str:
    if errors[0].startswith("MountVolume."):
        return errors[0]
    # Go's form of several errors.
    why = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f'MountVolume.SetUp failed for volume "{volume}" : {why}'


def _config_error(source: VolumeSource, key: Key, objects: VolumeObjects) -> str:
    """Why a volume of a ConfigMap or Secret cannot be set up; empty where it can."""
    present: set[str]
    if source.kind == "configmap":
        config_map = objects.config_map(key)
        if config_map is None:
            return "" if source.optional else f'configmap "{source.name}" not found'
        present = {*config_map.data, *config_map.binaryData}
        missing = next((name for name in source.keys if name not in present), None)
        problem = "configmap references non-existent config key"
    else:
        secret = objects.secret(key)
        if secret is None:
            return "" if source.optional else f'secret "{source.name}" not found'
        present = set(secret.data)
        missing = next((name for name in source.keys if name not in present), None)
        problem = "references non-existent secret key"
    return "" if missing is None or source.optional else f"{problem}: {missing}"


def find_volume(
    pod: v1.Pod, source: VolumeSource, key: Key, objects: VolumeObjects
) -> v1.PersistentVolume | str:
    """The volume behind a claim of a pod, or why there is none."""
    claim = objects.claim(key)
    prefix = f"error processing PVC {key}: "
    if claim is None:
        return (
            f'{prefix}failed to fetch PVC from API server: persistentvolumeclaims "{source.name}" not found'
        )
    meta = claim.metadata
    if meta.deletionTimestamp is not None and CLAIM_PROTECTION not in meta.finalizers:
        return f"{prefix}PVC is being deleted"
    if claim.status.phase != "Bound":
        return f"{prefix}PVC is not bound"
    if source.ephemeral and not is_for_pod(claim, pod.metadata.uid):
        return not_for_pod(claim, pod.key)
    name = claim.spec.volumeName
    if not name:
        return f"{prefix}PVC has empty pvc.Spec.VolumeName"
    volume = objects.volume(name)
    if volume is None:
        return f'{prefix}failed to fetch PV {name} from API server: persistentvolumes "{name}" not found'
    reference = volume.spec.claimRef
    if reference is None:
        return (
            f"{prefix}found PV object {name} but it has a nil pv.Spec.ClaimRef "
            "indicating it is not yet bound to the claim"
        )
    if reference.uid != meta.uid:
        return (
            f"{prefix}found PV object {name} but its pv.Spec.ClaimRef.UID {reference.uid} "
            f"does not point to claim.UID {meta.uid}"
        )
    return volume


def attachable_name(volume: v1.PersistentVolume, objects: VolumeObjects) -> str:
    """The unique name of a volume that has to be attached before it is mounted; empty for all others.

    differs: in-tree volumes, which CSI drivers have replaced, are mounted without being attached.
    """
    csi = volume.spec.csi
    if csi is None:
        return ""
    driver = objects.csi_driver(csi.driver)
    if driver is not None and driver.spec.attachRequired is False:
        return ""
    return unique_name(csi.driver, csi.volumeHandle)


def needs_expansion(claim: v1.PersistentVolumeClaim) -> bool:
    """Whether the file system of a claim's volume is to be expanded on the node."""
    state = claim.status.allocatedResourceStatuses.get("storage", "")
    return state in ("NodeResizePending", "NodeResizeInProgress")
