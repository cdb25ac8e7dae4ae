"""The keys of resourceclaim-controller: which rounds a change of a pod, PodGroup, claim or template leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.api.bounded_cache import BoundedCache
from steersman.api.kinds import PODS, Pod, PodResourceClaim
from steersman.api.kinds.devices import RESOURCECLAIMS, ResourceClaim, ResourceClaimTemplate
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup
from steersman.api.resource_claims import (
    ClaimNotCreated,
    Consumer,
    UnsupportedClaim,
    claim_name,
    claim_names,
    consumer_of,
    is_pod_group_reference,
    pod_group_name,
)
from steersman.api.scheme import Key
from steersman.controllers.resourceclaim.metrics import ClaimCounts
from steersman.controllers.resourceclaim.reservations import is_done, needs_reservation
from steersman.controllers.resourceclaim.templates import Config
from steersman.controllers.shared.indexes import BY_POD_GROUP
from steersman.intent.controller import Caches, Change, memory_of

CLAIM, POD, POD_GROUP = "claim/", "pod/", "podgroup/"
"""The prefixes of keys: a claim, a pod and a PodGroup may have one name."""
REMEMBERED = 500
"""Deleted consumers whose reservations are released without a live read."""
BY_CLAIM, BY_TEMPLATE = "by_resource_claim", "by_resource_claim_template"


class Memory:
    """The consumers that were deleted, by uid, and the number of claims."""

    def __init__(self) -> None:
        self.deleted: BoundedCache[str, bool] = BoundedCache(REMEMBERED)
        self.counts = ClaimCounts()


def pod_group_of(caches: Caches, pod: Pod) -> tuple[PodGroup | None, str]:
    """The PodGroup of a pod, and its name if the cache lacks it."""
    name = pod_group_name(pod)
    if name is None:
        return None, ""
    group = caches[PODGROUPS].get(Key(pod.metadata.namespace, name))
    return group, "" if group is not None else name


def by_claim(consumer: Consumer) -> Iterable[Key]:
    """Indexes a consumer by its claims."""
    if not consumer.spec.resourceClaims:
        return ()
    return {Key(consumer.metadata.namespace, name): None for name in claim_names(consumer)}


def by_template(consumer: Consumer) -> Iterable[Key]:
    """Indexes a consumer by the templates of its claims."""
    claims = consumer.spec.resourceClaims
    if not claims:
        return ()
    names = {each.resourceClaimTemplateName: None for each in claims}
    return [Key(consumer.metadata.namespace, name) for name in names if name is not None]


def pod_needs_work(caches: Caches, pod: Pod, config: Config) -> bool:
    """Whether a claim of a pod has to be made or recorded."""
    # differs: upstream makes the claim that it has deleted after its pod was done anew, an hour later or after a restart.
    if pod.metadata.deletionTimestamp is not None or is_done(pod):
        return False
    for claim in pod.spec.resourceClaims:
        try:
            recorded = claim_name(pod, claim)
        except (ClaimNotCreated, UnsupportedClaim):
            return True
        if recorded.name is None:
            continue
        if (
            claim.resourceClaimTemplateName is not None
            and caches[RESOURCECLAIMS].get(Key(pod.metadata.namespace, recorded.name)) is None
            and _is_to_make(caches, pod, claim, config)
        ):
            return True
    return False


def _is_to_make(caches: Caches, pod: Pod, claim: PodResourceClaim, config: Config) -> bool:
    """Whether a missing claim of a pod is made for the pod, rather than for its PodGroup."""
    group, missing = pod_group_of(caches, pod) if config.pod_groups else (None, "")
    if missing:
        return True
    try:
        return not is_pod_group_reference(consumer_of(pod, group, claim))
    except (UnsupportedClaim, ValueError):
        return False


def group_needs_work(caches: Caches, group: PodGroup) -> bool:
    """Whether a claim of a PodGroup has to be made or recorded."""
    if group.metadata.deletionTimestamp is not None:
        return False
    for claim in group.spec.resourceClaims:
        try:
            recorded = claim_name(group, claim)
        except (ClaimNotCreated, UnsupportedClaim):
            return True
        if recorded.name is None or claim.resourceClaimTemplateName is None:
            continue
        if caches[RESOURCECLAIMS].get(Key(group.metadata.namespace, recorded.name)) is None:
            return True
    return False


def _claims_to_reserve(caches: Caches, pod: Pod, config: Config) -> Iterator[str]:
    """The claims that have to be reserved for a pod."""
    if not pod.spec.nodeName:
        return
    group, missing = pod_group_of(caches, pod) if config.pod_groups else (None, "")
    for name in claim_names(pod):
        claim = caches[RESOURCECLAIMS].get(Key(pod.metadata.namespace, name))
        if (
            claim is not None
            and not missing
            and needs_reservation(pod, group, claim, pod_groups=config.pod_groups) is not None
        ):
            yield name


def enqueue_pod(caches: Caches, pod: Pod, config: Config, *, deleted: bool = False) -> Iterator[Key]:
    """The pod if there is work for it, and those of its claims that are to be reserved, or not needed any more."""
    extended = pod.status.extendedResourceClaimStatus
    if not pod.spec.resourceClaims and extended is None:
        return
    namespace = pod.metadata.namespace
    if deleted or is_done(pod):
        for name in claim_names(pod):
            yield Key(namespace, CLAIM + name)
        if extended is not None:
            yield Key(namespace, CLAIM + extended.resourceClaimName)
        return
    for name in _claims_to_reserve(caches, pod, config):
        yield Key(namespace, CLAIM + name)
    if pod_needs_work(caches, pod, config):
        yield Key(namespace, POD + pod.metadata.name)


def enqueue_group(caches: Caches, group: PodGroup, config: Config, *, deleted: bool = False) -> Iterator[Key]:
    """The PodGroup if there is work for it, its claims if it is deleted, and its pods, which share them."""
    if not group.spec.resourceClaims:
        return
    namespace = group.metadata.namespace
    if deleted:
        for name in claim_names(group):
            yield Key(namespace, CLAIM + name)
    elif group_needs_work(caches, group):
        yield Key(namespace, POD_GROUP + group.metadata.name)
    for pod in caches[PODS].by(BY_POD_GROUP, group.key):
        yield from enqueue_pod(caches, pod, config)


def _enqueue_consumers(caches: Caches, index: str, key: Key, config: Config) -> Iterator[Key]:
    for pod in caches[PODS].by(index, key):
        yield from enqueue_pod(caches, pod, config)
    if config.pod_groups:
        for group in caches[PODGROUPS].by(index, key):
            yield from enqueue_group(caches, group, config)


def pod_changed(caches: Caches, change: Change[Pod], config: Config) -> Iterator[Key]:
    pod, deleted = change.obj, change.new is None
    if deleted and (pod.spec.resourceClaims or pod.status.extendedResourceClaimStatus is not None):
        memory_of(caches, Memory).deleted.put(pod.metadata.uid, True)
    return enqueue_pod(caches, pod, config, deleted=deleted)


def group_changed(caches: Caches, change: Change[PodGroup], config: Config) -> Iterator[Key]:
    group, deleted = change.obj, change.new is None
    if deleted and group.spec.resourceClaims:
        memory_of(caches, Memory).deleted.put(group.metadata.uid, True)
    if change.old is None and not group.spec.resourceClaims:
        # The claims of a pod are not reserved before its PodGroup is known. Upstream tries such pods again and again.
        for pod in caches[PODS].by(BY_POD_GROUP, group.key):
            yield from enqueue_pod(caches, pod, config)
    yield from enqueue_group(caches, group, config, deleted=deleted)


def claim_changed(caches: Caches, change: Change[ResourceClaim], config: Config) -> Iterator[Key]:
    namespace, name = change.obj.key
    if change.new is not None:
        yield Key(namespace, CLAIM + name)
    yield from _enqueue_consumers(caches, BY_CLAIM, change.obj.key, config)


def template_changed(caches: Caches, change: Change[ResourceClaimTemplate], config: Config) -> Iterator[Key]:
    if change.new is not None:
        yield from _enqueue_consumers(caches, BY_TEMPLATE, change.new.key, config)
