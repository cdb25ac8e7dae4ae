"""selinux-warning-controller (a decision): warns of pods that cannot use one volume on the same node.

On nodes with SELinux, a volume may be mounted with a label that only pods of the same label can read. Two pods that mount the same
volume with different labels, or one with a label and one without, get an event each. The controller writes nothing else,
and looks at all pods, wherever they run.

Only volumes of CSI, Fibre Channel and iSCSI can be mounted with a label, those of CSI if their CSIDriver says so. Volumes of
other plugins never conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from steersman.api.go_quote import quote
from steersman.api.kinds import Volume
from steersman.api.kinds.selinux import SELINUX_PODS, SELinuxPod
from steersman.api.kinds.storage import (
    CSIDRIVERS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
)
from steersman.api.scheme import Key
from steersman.controllers.selinuxwarning.conflicts import CONFLICTS, Use, UsedVolumes
from steersman.controllers.selinuxwarning.labels import change_policy, mount_label, mounted_labels
from steersman.controllers.shared.csi_migration import Untranslatable
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_keys, claim_name, is_made_for
from steersman.controllers.shared.volumes import AttachableVolume, inline_volume_of, is_bound_to, volume_of
from steersman.intent.actions import Emit
from steersman.intent.controller import Caches, Change, Controller, Watch, memory_of
from steersman.intent.verdict import Rest, Verdict

NAME = "selinux-warning-controller"
COMPONENT = "selinux_warning"


class Observation(msgspec.Struct, frozen=True):
    """A pod, how it uses its volumes, and the other pods that use them."""

    key: Key
    pod: SELinuxPod | None
    """None: it has ended or is gone."""
    memory: UsedVolumes
    uses: tuple[Use, ...] = ()
    contradictory: tuple[str, ...] = ()
    """Volumes that containers of the pod mount with different labels."""
    unbound: tuple[str, ...] = ()
    """Volumes whose claim is not bound yet."""
    others: tuple[SELinuxPod, ...] = ()


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, UsedVolumes)
    pod = caches[SELINUX_PODS].get(key)
    if pod is None:
        return Observation(key, None, memory) if key in memory else None
    uses: list[Use] = []
    contradictory: list[str] = []
    unbound: list[str] = []
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    for name, labels in mounted_labels(pod).items():
        if name not in volumes:
            continue
        try:
            volume = _resolve(caches, pod, volumes[name])
        except _Unbound:
            unbound.append(name)
            continue
        if len(labels) > 1:
            contradictory.append(name)
        elif volume is not None:
            label, supported = labels[0] if labels else "", _supports_mount(caches, volume)
            used = mount_label(pod, label, mount_supported=supported)
            policy = change_policy(pod, used, mount_supported=supported)
            uses.append(Use(volume.name, used, policy, volume.driver))
    keys = dict.fromkeys(user for use in uses for user in memory.users(use.volume) if user != key)
    others = tuple(other for user in keys if (other := caches[SELINUX_PODS].get(user)) is not None)
    return Observation(key, pod, memory, tuple(uses), tuple(contradictory), tuple(unbound), others)


async def decide(seen: Observation, now: datetime) -> Verdict:
    pod, memory = seen.pod, seen.memory
    if pod is None:
        for change in memory.remove(seen.key):
            await change
        return Rest("pod has ended or is gone")
    # differs: upstream repeats this event with back-off for as long as the pod is there.
    for name in seen.contradictory:
        message = f"Volume {quote(name)} is mounted twice with different SELinux labels inside this pod"
        await Emit(pod, "Warning", "MultipleSELinuxLabels", message)
    pods = {each.key: each for each in (pod, *seen.others)}
    conflicts = 0
    for use in seen.uses:
        found, changes = memory.add(seen.key, use)
        for change in changes:
            await change
        for conflict in found:
            if conflict.pod in pods:
                await Emit(pods[conflict.pod], "Normal", conflict.reason, conflict.message)
                conflicts += 1
    if conflicts:
        return Rest(f"reported {conflicts} conflicts")
    return Rest("waiting for claims to be bound" if seen.unbound else "no new conflict")


# -- volumes --------------------------------------------------------------------------------------


class _Unbound(Exception):
    """A volume that is not known yet, because its claim is not bound."""


def _resolve(caches: Caches, pod: SELinuxPod, volume: Volume) -> AttachableVolume | None:
    """The volume that a pod names; None: of a plugin that cannot mount it with a label. Raises `_Unbound`."""
    name = claim_name(pod, volume)
    try:
        if not name:
            return inline_volume_of(volume, pod.metadata.namespace)
        claim = caches[PERSISTENTVOLUMECLAIMS].get(Key(pod.metadata.namespace, name))
        if claim is None or (volume.ephemeral is not None and not is_made_for(claim, pod)):
            raise _Unbound
        pv = caches[PERSISTENTVOLUMES].get(Key("", claim.spec.volumeName))
        if pv is None or not is_bound_to(claim, pv):
            raise _Unbound
        return volume_of(pv)
    except Untranslatable:
        return None


def _supports_mount(caches: Caches, volume: AttachableVolume) -> bool:
    """Whether a volume can be mounted with a label."""
    return not volume.driver or supports_mount(caches[CSIDRIVERS].get(Key("", volume.driver)))


def supports_mount(driver: CSIDriver | None) -> bool:
    return driver is not None and bool(driver.spec.seLinuxMount)


# -- enqueue --------------------------------------------------------------------------------------


def _enqueue_pod(caches: Caches, change: Change[SELinuxPod]) -> Iterable[Key]:
    """A pod that is new, or gone. What matters of its spec never changes."""
    old, new = change.old, change.new
    unchanged = old is not None and new is not None and old.metadata.uid == new.metadata.uid
    return () if unchanged else (change.obj.key,)


def _enqueue_users(caches: Caches, claim: Key) -> Iterator[Key]:
    for pod in caches[SELINUX_PODS].by(BY_CLAIM, claim):
        yield pod.key


def _enqueue_for_claim(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterable[Key]:
    """The pods of a claim that was bound."""
    old, new = change.old, change.new
    if new is None or not new.spec.volumeName:
        return ()
    if old is not None and _binding(old) == _binding(new):
        return ()
    return _enqueue_users(caches, new.key)


def _binding(claim: PersistentVolumeClaim) -> tuple[str, str]:
    return claim.spec.volumeName, claim.status.phase


def _enqueue_for_volume(caches: Caches, change: Change[PersistentVolume]) -> Iterable[Key]:
    """The pods of a volume that was bound to their claim."""
    old, new = change.old, change.new
    ref = new.spec.claimRef if new is not None else None
    if ref is None or not ref.uid:
        return ()
    if old is not None and old.spec.claimRef is not None and old.spec.claimRef.uid == ref.uid:
        return ()
    return _enqueue_users(caches, Key(ref.namespace, ref.name))


def _enqueue_for_driver(caches: Caches, change: Change[CSIDriver]) -> Iterable[Key]:
    """The pods with volumes of a driver that supports labels now, or no longer does."""
    if supports_mount(change.old) == supports_mount(change.new):
        return ()
    return memory_of(caches, UsedVolumes).users_of_driver(change.obj.metadata.name)


controller = Controller(
    name=NAME,
    event_component=COMPONENT,
    watches=(
        Watch(SELINUX_PODS, to=_enqueue_pod, indexes={BY_CLAIM: claim_keys}),
        Watch(PERSISTENTVOLUMECLAIMS, to=_enqueue_for_claim),
        Watch(PERSISTENTVOLUMES, to=_enqueue_for_volume),
        Watch(CSIDRIVERS, to=_enqueue_for_driver),
    ),
    workers=1,
    observe=observe,
    decide=decide,
    memory=UsedVolumes,
    metrics=(CONFLICTS,),
    feature_gates=("SELinuxChangePolicy",),
    disabled_by_default=True,
)
