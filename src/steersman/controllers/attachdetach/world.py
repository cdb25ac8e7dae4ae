"""The world as the attach/detach controller sees it: for one volume, the nodes that want it and those that have it.

The desired state follows from pods on managed nodes. The actual state follows from two objects: the VolumeAttachment
that the CSI driver answers, and the node's ``volumesAttached``, in which this controller tells the kubelet that it may
mount the volume. Neither is kept in memory, so a new process goes on where another one stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from steersman.api.conditions import is_condition_true
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.storage import (
    CSIDRIVERS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    PersistentVolume,
    VolumeAttachment,
)
from steersman.api.pods import is_terminated
from steersman.api.scheme import Key
from steersman.controllers.attachdetach.memory import LastNodeState, Memory, VolumeMemory
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_name, is_made_for
from steersman.controllers.shared.volumes import (
    CSI,
    AttachableVolume,
    attachment_name,
    csi_volume,
    inline_volumes,
    is_bound_to,
    volume_name_of,
    volume_named,
    volume_of,
)
from steersman.intent.controller import Caches, memory_of

MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation of a node whose volumes this controller attaches; its value does not matter."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

BY_VOLUME = "by_volume"
BY_INLINE_VOLUME = "by_inline_volume"
BY_ATTACHED = "by_attached_volume"
BY_SOURCE = "by_source"
BY_NODE = "by_node"


def by_attached(node: Node) -> Iterable[str]:
    """Indexes a node by the volumes that it reports as attached."""
    return [volume.name for volume in node.status.volumesAttached]


def by_source(attachment: VolumeAttachment) -> Iterable[str]:
    """Indexes a VolumeAttachment by its PersistentVolume, or by the unique name of an inline volume."""
    source = attachment.spec.source
    if source.persistentVolumeName is not None:
        return (pv_source(source.persistentVolumeName),)
    if source.inlineVolumeSpec is not None and source.inlineVolumeSpec.csi is not None:
        csi = source.inlineVolumeSpec.csi
        return (csi_volume(csi.driver, csi.volumeHandle, "").name,)
    return ()


def by_attachment_node(attachment: VolumeAttachment) -> Iterable[str]:
    """Indexes a VolumeAttachment by its node."""
    return (attachment.spec.nodeName,)


def pv_source(name: str) -> str:
    """The key of a PersistentVolume in the index of VolumeAttachments."""
    return f"pv/{name}"


class NodeState(msgspec.Struct, frozen=True):
    """A node that wants the volume, or has it."""

    name: str
    volume: AttachableVolume
    node: Node | None = None
    """None: the node is gone."""
    pods: tuple[Pod, ...] = ()
    """The pods on this node that use the volume; without any, it is to be detached."""
    attachment: VolumeAttachment | None = None
    reported: bool = False
    """The node's ``volumesAttached`` has the volume."""
    managed: bool = False
    mounted: bool = False
    """The node's ``volumesInUse`` has the volume."""

    @property
    def desired(self) -> bool:
        return bool(self.pods)

    @property
    def deleting(self) -> bool:
        """The VolumeAttachment is being deleted."""
        return self.attachment is not None and self.attachment.metadata.deletionTimestamp is not None

    @property
    def attached(self) -> bool:
        """The driver says so. Fibre Channel and iSCSI have no driver: there, the report is all there is."""
        if self.volume.plugin != CSI:
            return self.reported
        return self.attachment is not None and self.attachment.status.attached

    @property
    def present(self) -> bool:
        """The volume is attached to the node, or might be."""
        return self.attachment is not None or self.reported

    @property
    def healthy(self) -> bool:
        return self.node is not None and is_condition_true(self.node.status.conditions, "Ready")

    @property
    def out_of_service(self) -> bool:
        return self.node is not None and has_out_of_service_taint(self.node)


class World(msgspec.Struct, frozen=True):
    """One volume: the nodes that want it or have it, by name; or one of these nodes."""

    name: str
    nodes: tuple[NodeState, ...]
    pods_in_use: Counter[tuple[str, str]]
    """The number of pods that use the volume, finished ones among them, by node and by the plugin's name in metrics."""
    claims: frozenset[Key]
    """The claims that are bound to the volume, or were."""
    known_pods: frozenset[str]
    """The uids of the scheduled pods in the cache that name one of the claims, or the inline volume."""
    memory: Memory
    monotonic: float
    only: str = ""
    """The node that it is limited to; empty: it has all."""


def has_out_of_service_taint(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def is_managed(node: Node | None) -> bool:
    """Whether this controller attaches the volumes of a node."""
    return node is not None and MANAGED in node.metadata.annotations


# -- observe --------------------------------------------------------------------------------------


def observe(caches: Caches, key: Key) -> World | None:
    name = key.name
    only = key.namespace if key.namespace and is_shared(caches, name) else ""
    memory = memory_of(caches, Memory)
    remembered = memory.volumes.get(name) or VolumeMemory()
    pvs = tuple(caches[PERSISTENTVOLUMES].by(BY_VOLUME, name))
    users = [
        (pod, volume)
        for pod, volume in _users(caches, name, pvs, remembered)
        if only in ("", pod.spec.nodeName)
    ]
    in_use: Counter[tuple[str, str]] = Counter()
    wanted: dict[str, list[tuple[Pod, AttachableVolume]]] = {}
    for pod, volume in users:
        in_use[pod.spec.nodeName, volume.qualified_plugin] += 1
        if not is_terminated(pod) and is_attach_required(caches, volume):
            wanted.setdefault(pod.spec.nodeName, []).append((pod, volume))
    known = _known_volume(name, pvs, users)
    if known is None:
        return None
    names = dict.fromkeys((*wanted, *_attached_nodes(caches, name, pvs), *_remembered_nodes(remembered)))
    nodes = tuple(
        _node_state(caches, node, known, wanted.get(node, []), remembered.last_node_states.get(node))
        for node in sorted(names)
        if only in ("", node)
    )
    if not nodes and not in_use and name not in memory.volumes and not memory.counted_nodes(name):
        return None
    claims = frozenset(Key(ref.namespace, ref.name) for pv in pvs if (ref := pv.spec.claimRef) is not None)
    cached = (
        *(pod for claim in claims for pod in caches[PODS].by(BY_CLAIM, claim)),
        *caches[PODS].by(BY_INLINE_VOLUME, name),
    )
    known_pods = frozenset(pod.metadata.uid for pod in cached if pod.spec.nodeName)
    return World(name, nodes, in_use, claims, known_pods, memory, caches.monotonic(), only)


def is_shared(caches: Caches, name: str) -> bool:
    """Whether several nodes may have a volume at once, as far as it is known."""
    known = [volume_of(pv) for pv in caches[PERSISTENTVOLUMES].by(BY_VOLUME, name)]
    for pod in caches[PODS].by(BY_INLINE_VOLUME, name):
        known += [volume for volume in inline_volumes(pod) if volume.name == name]
        break
    remembered = memory_of(caches, Memory).volumes.get(name)
    if remembered is not None:
        known += [user.volume for user in remembered.users.values()]
    return not any(volume is not None and volume.exclusive for volume in known)


def nodes_of_volume(caches: Caches, name: str) -> Iterable[str]:
    """The nodes that have pods with a volume, or that it is attached to, or might be."""
    remembered = memory_of(caches, Memory).volumes.get(name) or VolumeMemory()
    pvs = tuple(caches[PERSISTENTVOLUMES].by(BY_VOLUME, name))
    users = (pod.spec.nodeName for pod, _ in _users(caches, name, pvs, remembered))
    return dict.fromkeys((*users, *_attached_nodes(caches, name, pvs), *_remembered_nodes(remembered)))


def _remembered_nodes(remembered: VolumeMemory) -> Iterable[str]:
    return (*remembered.operations, *remembered.last_node_states)


def _users(
    caches: Caches, name: str, pvs: Iterable[PersistentVolume], remembered: VolumeMemory
) -> Iterator[tuple[Pod, AttachableVolume]]:
    """The scheduled pods that use a volume, each once, and the volume as each knows it."""
    seen: set[str] = set()
    for pv in pvs:
        volume = volume_of(pv)
        claim_ref = pv.spec.claimRef
        if volume is None or claim_ref is None:
            continue
        claim = caches[PERSISTENTVOLUMECLAIMS].get(Key(claim_ref.namespace, claim_ref.name))
        if claim is None or not is_bound_to(claim, pv):
            continue
        for pod in caches[PODS].by(BY_CLAIM, claim.key):
            owned = any(
                each.ephemeral is None or is_made_for(claim, pod)
                for each in pod.spec.volumes
                if claim_name(pod, each) == claim.metadata.name
            )
            if pod.spec.nodeName and owned and pod.metadata.uid not in seen:
                seen.add(pod.metadata.uid)
                yield pod, volume
    for pod in caches[PODS].by(BY_INLINE_VOLUME, name):
        if pod.spec.nodeName and pod.metadata.uid not in seen:
            seen.add(pod.metadata.uid)
            yield pod, next(volume for volume in inline_volumes(pod) if volume.name == name)
    for uid, user in remembered.users.items():
        if uid in seen:
            continue
        found = caches[PODS].get(user.pod)
        if found is not None and found.metadata.uid == uid:
            yield found, user.volume


def _known_volume(
    name: str, pvs: Iterable[PersistentVolume], users: Iterable[tuple[Pod, AttachableVolume]]
) -> AttachableVolume | None:
    """A volume as its pods know it, or its PersistentVolume, or only its name; None: it is not attachable."""
    for _, volume in users:
        return volume
    for pv in pvs:
        return volume_of(pv)
    return volume_named(name)


def is_attach_required(caches: Caches, volume: AttachableVolume) -> bool:
    """Whether a volume's driver needs it to be attached. A driver without a CSIDriver does."""
    driver = caches[CSIDRIVERS].get(Key("", volume.driver)) if volume.driver else None
    return driver is None or driver.spec.attachRequired is not False


def _attached_nodes(caches: Caches, name: str, pvs: Iterable[PersistentVolume]) -> Iterator[str]:
    """The nodes that a volume is attached to, or might be."""
    attachments = caches[VOLUMEATTACHMENTS]
    for source in (*(pv_source(pv.metadata.name) for pv in pvs), name):
        for attachment in attachments.by(BY_SOURCE, source):
            yield attachment.spec.nodeName
    for node in caches[NODES].by(BY_ATTACHED, name):
        yield node.metadata.name


def _node_state(
    caches: Caches,
    name: str,
    known: AttachableVolume,
    wanted: list[tuple[Pod, AttachableVolume]],
    last: LastNodeState | None,
) -> NodeState:
    volume = wanted[0][1] if wanted else known
    node = caches[NODES].get(Key("", name))
    attachment = (
        caches[VOLUMEATTACHMENTS].get(Key("", attachment_name(volume, name))) if volume.driver else None
    )
    managed = is_managed(node) or (last is not None and last.managed)
    # As upstream, a volume on an unknown node counts as mounted until the time is over.
    unknown = last is None or last.mounted
    mounted = volume.name in node.status.volumesInUse if node is not None else unknown
    pods = sorted((pod for pod, _ in wanted), key=lambda pod: pod.key) if managed else ()
    return NodeState(
        name,
        volume,
        node,
        tuple(pods),
        attachment,
        node is not None and any(each.name == volume.name for each in node.status.volumesAttached),
        managed,
        mounted,
    )


# -- the volumes of objects -----------------------------------------------------------------------


def volumes_of_pod(caches: Caches, pod: Pod) -> Iterator[str]:
    """The unique names of the volumes that a pod uses, as far as they are bound."""
    for each in pod.spec.volumes:
        name = claim_name(pod, each)
        if name:
            yield from volumes_of_claim(caches, Key(pod.metadata.namespace, name))
    for volume in inline_volumes(pod):
        yield volume.name


def volumes_of_claim(caches: Caches, key: Key) -> Iterator[str]:
    """The unique name of the volume that a claim names, if it is attachable."""
    claim = caches[PERSISTENTVOLUMECLAIMS].get(key)
    if claim is not None and claim.spec.volumeName:
        yield from volumes_of_pv(caches, claim.spec.volumeName)


def volumes_of_pv(caches: Caches, name: str) -> Iterator[str]:
    """The unique name of a PersistentVolume, if it is attachable."""
    pv = caches[PERSISTENTVOLUMES].get(Key("", name))
    unique = volume_name_of(pv) if pv is not None else ""
    if unique:
        yield unique


def volumes_of_attachment(caches: Caches, attachment: VolumeAttachment) -> Iterator[str]:
    """The unique name of the volume of a VolumeAttachment, if it is known."""
    pv = attachment.spec.source.persistentVolumeName
    names = list(volumes_of_pv(caches, pv)) if pv is not None else list(by_source(attachment))
    remembered = memory_of(caches, Memory).attachments.get(attachment.metadata.name)
    yield from dict.fromkeys((*names, remembered) if remembered is not None else names)
