"""persistentvolume-binder-controller (a dialogue): binds claims to volumes, requests volumes for claims, and reclaims volumes.

A binding is a pair of references: the claimRef of the volume and the volumeName of the claim. A claim is one of::

    bind-completed | volumeName | the volume                  | next
    ---------------+------------+-----------------------------+--------------------------------------------------
    no             | -          | one is reserved or free     | bind                                       Bound
    no             | -          | none; no class is asked for | assign the default class, if there is one
    no             | -          | none; the class waits       | WaitForFirstConsumer, until a node is selected
    no             | -          | none; there is a class      | provision                                Pending
    no             | -          | none; there is no class     | FailedBinding                            Pending
    no             | set        | missing                     | wait for it                              Pending
    no             | set        | free, but does not satisfy  | VolumeMismatch                           Pending
    no             | set        | free, or reserved for it    | bind                                       Bound
    no             | set        | another claim's             | FailedBinding                            Pending
    yes            | -          |                             | ClaimLost                                   Lost
    yes            | set        | missing                     | ClaimLost                                   Lost
    yes            | set        | free, or bound to it        | bind again what is missing                 Bound
    yes            | set        | another claim's             | ClaimMisbound                               Lost

And a volume is one of::

    claimRef | its claim                   | next
    ---------+-----------------------------+---------------------------------------------------------------------
    -        |                             |                                                          Available
    no uid   |                             | reserved: the round of the claim binds it                Available
    uid      | gone                        | release, then reclaim: retain, delete or recycle         Released
    uid      | names no volume             | the round of the claim completes the binding
    uid      | names this volume           |                                                              Bound
    uid      | names another volume        | reclaim it if it was provisioned for the claim, else unbind

`claims` and `volumes` hold the rounds. Keys without a namespace are volumes. Several rounds run at a time: no two of them
choose the same volume, because choosing one is a single step (`memory`) and writing its claimRef requires the version that was
chosen. Upstream looks at all claims and volumes every 15 seconds; here a volume that becomes free wakes the claim that has waited
longest for one like it, and only claims that are not bound are looked at again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from steersman.api.pods import is_terminated
from steersman.api.scheme import Key
from steersman.api.volume_binding import (
    BIND_COMPLETED,
    SELECTED_NODE,
    asks_for_class,
    class_of_claim,
    class_of_volume,
)
from steersman.controllers.persistentvolume.binding import AVAILABLE, BOUND, FAILED, RELEASED
from steersman.controllers.persistentvolume.claims import decide_claim, is_delayed
from steersman.controllers.persistentvolume.matching import find_volume, group_of, is_free
from steersman.controllers.persistentvolume.memory import Memory
from steersman.controllers.persistentvolume.metrics import METRICS
from steersman.controllers.persistentvolume.recycle import clean_up, volume_of_recycler
from steersman.controllers.persistentvolume.seen import (
    DYNAMIC_PROVISIONING,
    FLAGS,
    HOST_PATH_PROVISIONER,
    INCREMENT_TIMEOUT_HOST_PATH,
    INCREMENT_TIMEOUT_NFS,
    MINIMUM_TIMEOUT_HOST_PATH,
    MINIMUM_TIMEOUT_NFS,
    POD_TEMPLATE_HOST_PATH,
    POD_TEMPLATE_NFS,
    SYNC_PERIOD,
    ClaimSeen,
    Config,
    Recycler,
    RecyclerSeen,
    VolumeSeen,
)
from steersman.controllers.persistentvolume.volumes import decide_volume
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_keys
from steersman.intent.controller import Cache, Caches, Change, Controller, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Verdict, Wake

WORKERS = 10
"""differs: upstream has one worker for claims and one for volumes."""
NEW_VOLUME_DELAY = 0.2
"""Seconds until a new volume is made available: a claim that is created with it takes it before, which saves a write."""
LOOKED_AT = 100
"""Claims that are looked at for one that may take a new volume."""
BUSY = Wake(timedelta(seconds=0.05), "another round is writing to the claim or the volume")
BY_CLAIM_REF = "claim_ref"
BY_CLASS = "unbound_by_class"
BY_VOLUME = "by_volume"
BY_RECYCLED = "recycled_volume"
DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

Seen = ClaimSeen | VolumeSeen | RecyclerSeen


# -- observe ----------------------------------------------------------------------------------


def observe(caches: Caches, key: Key, config: Config = Config()) -> Seen | None:
    return _observe_claim(caches, key, config) if key.namespace else _observe_volume(caches, key, config)


def _observe_claim(caches: Caches, key: Key, config: Config) -> ClaimSeen | None:
    memory, claim = memory_of(caches, Memory), caches[PERSISTENTVOLUMECLAIMS].get(key)
    memory.stop_waiting(key)
    if claim is None:
        memory.forget(key)
        return None
    class_ = caches[STORAGECLASSES].get(Key("", class_of_claim(claim)))
    volume, default = None, None
    pods: tuple[str, ...] = ()
    if claim.spec.volumeName:
        volume = caches[PERSISTENTVOLUMES].get(Key("", claim.spec.volumeName))
        if volume is not None:
            _check_decoded(volume)
    elif BIND_COMPLETED not in claim.metadata.annotations:
        delayed = is_delayed(class_)
        volume = _find_volume(caches, memory, claim, delayed=delayed)
        if volume is None:
            default = _default_class(caches) if not asks_for_class(claim) else None
            pods = _unscheduled_pods(caches, key) if delayed else ()
    node = claim.metadata.annotations.get(SELECTED_NODE)
    return ClaimSeen(
        claim=claim,
        volume=volume,
        storage_class=class_,
        default_class=default,
        unscheduled_pods=pods,
        node_exists=node is None or caches[NODES].get(Key("", node)) is not None,
        memory=memory,
        monotonic=caches.monotonic(),
        config=config,
    )


def _find_volume(
    caches: Caches, memory: Memory, claim: PersistentVolumeClaim, *, delayed: bool
) -> PersistentVolume | None:
    volumes, claims = caches[PERSISTENTVOLUMES], caches[PERSISTENTVOLUMECLAIMS]

    def free(name: str) -> PersistentVolume | None:
        volume = volumes.get(Key("", name))
        if volume is None or memory.chosen_for(volume, claims) not in (None, claim.key):
            return None
        return volume

    return find_volume(claim, volumes.by(BY_CLAIM_REF, claim.key), memory.free, free, delayed=delayed)


def _default_class(caches: Caches) -> StorageClass | None:
    """The newest of the default classes; of several, the first by name."""
    return min(filter(is_default, caches[STORAGECLASSES].list()), key=_newest_first, default=None)


def _newest_first(class_: StorageClass) -> tuple[float, str]:
    created = class_.metadata.creationTimestamp
    return -created.timestamp() if created is not None else 0.0, class_.metadata.name


def is_default(class_: StorageClass) -> bool:
    return any(class_.metadata.annotations.get(name) == "true" for name in DEFAULT_CLASS)


def _unscheduled_pods(caches: Caches, claim: Key) -> tuple[str, ...]:
    pods = caches[PODS].by(BY_CLAIM, claim)
    return tuple(pod.metadata.name for pod in pods if not is_terminated(pod) and not pod.spec.nodeName)


def _observe_volume(caches: Caches, key: Key, config: Config) -> VolumeSeen | RecyclerSeen | None:
    memory, volume = memory_of(caches, Memory), caches[PERSISTENTVOLUMES].get(key)
    recyclers = tuple(caches[PODS].by(BY_RECYCLED, key.name))
    if volume is None:
        memory.recycle_failures.pop(key.name, None)
        memory.forget(key)
        created = memory.recyclers.get(key.name)
        for pod in recyclers:
            if pod.metadata.uid == created:
                return RecyclerSeen(key, pod, memory)
        memory.recyclers.pop(key.name, None)
        return None
    _check_decoded(volume)
    claims, ref = caches[PERSISTENTVOLUMECLAIMS], volume.spec.claimRef
    claim = None
    pods: list[str] = []
    if ref is not None:
        claim = claims.get(Key(ref.namespace, ref.name))
        if volume.spec.persistentVolumeReclaimPolicy == "Recycle":
            users = caches[PODS].by(BY_CLAIM, Key(ref.namespace, ref.name))
            pods = sorted(str(pod.key) for pod in users if not is_terminated(pod))
    class_ = caches[STORAGECLASSES].get(Key("", class_of_volume(volume)))
    return VolumeSeen(
        volume=volume,
        claim=claim,
        taken_by=memory.chosen_for(volume, claims),
        claims_due=is_free(volume) and not is_delayed(class_) and _claims_due(claims, memory, volume),
        provisioner=class_.provisioner if class_ is not None else "",
        pods=tuple(pods),
        recyclers=recyclers,
        memory=memory,
        monotonic=caches.monotonic(),
        config=config,
    )


def _check_decoded(volume: PersistentVolume) -> None:
    """Raises `InvalidSpec` for a volume of which only the metadata could be decoded: whose it is, is unknown.

    The API requires the capacity that it lacks.
    """
    if not volume.spec.capacity:
        raise InvalidSpec(f"PersistentVolume {volume.metadata.name} cannot be decoded")


def _claims_due(claims: Cache[PersistentVolumeClaim], memory: Memory, volume: PersistentVolume) -> bool:
    """Whether there are claims of a volume's class that have not looked for a volume yet."""
    name = class_of_volume(volume)
    unbound = chain(claims.by(BY_CLASS, name), () if name else claims.by(BY_CLASS, None))
    return any(not memory.is_waiting(claim.key) for claim in islice(unbound, LOOKED_AT))


async def decide(seen: Seen, now: datetime) -> Verdict:
    memory, keys = seen.memory, seen.written
    if memory.is_written(keys):
        return BUSY
    with memory.write(keys):
        match seen:
            case ClaimSeen():
                return await decide_claim(seen)
            case VolumeSeen():
                return await decide_volume(seen, now)
        return await clean_up(seen)


# -- enqueue ----------------------------------------------------------------------------------


def _claim_changed(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterator[Key]:
    """The claim; volumes that it no longer is, or never will be, the claim of; and those that may be recycled now."""
    old, new = change.old, change.new
    if new is not None:
        if old is new and new.status.phase == BOUND and BIND_COMPLETED in new.metadata.annotations:
            return  # a resync: nothing is due
        yield new.key
        if old is None:
            # Pods that use the name of a released volume's claim use the new claim: they keep the volume no more.
            yield from _volumes_to_recycle(caches, new.key)
    if old is None or old is new or (new is not None and new.spec.volumeName == old.spec.volumeName):
        return
    kept = new.spec.volumeName if new is not None else ""
    for volume in caches[PERSISTENTVOLUMES].by(BY_CLAIM_REF, old.key):
        if volume.metadata.name != kept:
            yield volume.key
    if new is None:
        yield old.key


def _volume_changed(caches: Caches, change: Change[PersistentVolume]) -> Iterator[Key]:
    """The claims of a volume, those that name it, and one that waits for a volume like it."""
    old, new, name = change.old, change.new, change.obj.metadata.name
    memory, claims = memory_of(caches, Memory), caches[PERSISTENTVOLUMECLAIMS]
    before, after = (volume.spec.claimRef if volume is not None else None for volume in (old, new))
    if new is None:
        memory.free.remove(name)
    else:
        memory.free.put(new)
        if name in memory.free:
            key = memory.offer(new, group_of(new), claims)
            if key is not None:
                yield key
    if (
        old is not None
        and new is not None
        and before == after
        and old.spec.accessModes == new.spec.accessModes  # the status of the claim shows them
    ):
        return
    for ref in (before, after):
        if ref is not None:
            yield Key(ref.namespace, ref.name)
    for claim in claims.by(BY_VOLUME, name):
        yield claim.key


def _volume_itself(caches: Caches, change: Change[PersistentVolume]) -> Iterable[Key]:
    return (change.obj.key,)


def _volume_delay(change: Change[PersistentVolume], now: datetime) -> float:
    new = change.new
    is_new = new is not None and change.old is None and new.spec.claimRef is None
    return NEW_VOLUME_DELAY if is_new and new is not None and new.status.phase != AVAILABLE else 0.0


def _class_changed(caches: Caches, change: Change[StorageClass]) -> Iterator[Key]:
    """The claims that wait for a class, or for a default class."""
    class_ = change.new
    if class_ is None:
        return
    waiting = [class_.metadata.name, None] if is_default(class_) else [class_.metadata.name]
    for name in waiting:
        for claim in caches[PERSISTENTVOLUMECLAIMS].by(BY_CLASS, name):
            yield claim.key


def _pod_changed(caches: Caches, change: Change[Pod]) -> Iterator[Key]:
    """The volume that a pod recycles, and the volumes that wait for a pod to end before they are recycled."""
    pod = change.obj
    name = volume_of_recycler(pod)
    if name:
        yield Key("", name)
    if change.new is None or is_terminated(change.new):
        for claim in claim_keys(pod):
            yield from _volumes_to_recycle(caches, claim)


def _volumes_to_recycle(caches: Caches, claim: Key) -> Iterator[Key]:
    """The volumes that a claim of this name has released and that are to be recycled."""
    for volume in caches[PERSISTENTVOLUMES].by(BY_CLAIM_REF, claim):
        released = volume.status.phase in (RELEASED, FAILED)
        if released and volume.spec.persistentVolumeReclaimPolicy == "Recycle":
            yield volume.key


def _nothing(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    return ()


# -- indexes and metrics ----------------------------------------------------------------------


def _by_claim_ref(volume: PersistentVolume) -> Iterable[Hashable]:
    ref = volume.spec.claimRef
    return (Key(ref.namespace, ref.name),) if ref is not None else ()


def _unbound_by_class(claim: PersistentVolumeClaim) -> Iterable[Hashable]:
    """Indexes a claim that has no volume by the class it asks for; by None if it asks for none."""
    if claim.spec.volumeName or BIND_COMPLETED in claim.metadata.annotations:
        return ()
    return (class_of_claim(claim) if asks_for_class(claim) else None,)


def _by_volume(claim: PersistentVolumeClaim) -> Iterable[Hashable]:
    return (claim.spec.volumeName,) if claim.spec.volumeName else ()


def _by_recycled(pod: Pod) -> Iterable[Hashable]:
    name = volume_of_recycler(pod)
    return (name,) if name else ()


def _measure_claim(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterator[Measure]:
    return memory_of(caches, Memory).counts.claim_changed(change)


def _measure_volume(caches: Caches, change: Change[PersistentVolume]) -> Iterator[Measure]:
    memory = memory_of(caches, Memory)
    yield from memory.counts.volume_changed(change)
    if change.new is None:
        yield from memory.succeeded(change.obj.key, caches.monotonic())


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(
        provisions=settings[DYNAMIC_PROVISIONING],
        provisions_host_paths=settings[HOST_PATH_PROVISIONER],
        attributes_classes=settings.enabled("VolumeAttributesClass"),
        sync_period=settings[SYNC_PERIOD],
        nfs=Recycler(
            settings[MINIMUM_TIMEOUT_NFS], settings[INCREMENT_TIMEOUT_NFS], settings[POD_TEMPLATE_NFS]
        ),
        host_path=Recycler(
            settings[MINIMUM_TIMEOUT_HOST_PATH],
            settings[INCREMENT_TIMEOUT_HOST_PATH],
            settings[POD_TEMPLATE_HOST_PATH],
        ),
    )
    return Controller(
        name="persistentvolume-binder-controller",
        aliases=("persistentvolume-binder",),
        service_account="persistent-volume-binder",
        event_component="persistentvolume-controller",
        watches=(
            Watch(
                PERSISTENTVOLUMECLAIMS,
                to=_claim_changed,
                indexes={BY_CLASS: _unbound_by_class, BY_VOLUME: _by_volume},
                measures=_measure_claim,
            ),
            Watch(
                PERSISTENTVOLUMES,
                to=_volume_changed,
                indexes={BY_CLAIM_REF: _by_claim_ref},
                measures=_measure_volume,
            ),
            Watch(PERSISTENTVOLUMES, to=_volume_itself, delay=_volume_delay),
            Watch(STORAGECLASSES, to=_class_changed),
            Watch(PODS, to=_pod_changed, indexes={BY_CLAIM: claim_keys, BY_RECYCLED: _by_recycled}),
            Watch(NODES, to=_nothing),
        ),
        works_on=(PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES),
        workers=WORKERS,
        flags=FLAGS,
        configure=configure,
        observe=partial(observe, config=config),
        decide=decide,
        memory=Memory,
        resync=settings[SYNC_PERIOD],
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
