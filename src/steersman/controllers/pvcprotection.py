"""persistentvolumeclaim-protection-controller (a dialogue): keeps a claim that is being deleted while a pod uses it.

A round is about all claims of a namespace that need one, so that the pods of the namespace are listed live at most once
for all of them. The list is only asked for where the cache knows no pod that uses a claim, as it may be behind.

With the feature gate PersistentVolumeClaimUnusedSinceTime, a claim that is not being deleted has the condition Unused. A
change of a pod then leads to rounds of single claims, whose keys have a namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.conditions import find_condition, replace_condition
from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Condition, Pod
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim
from steersman.api.meta import truncate_to_seconds
from steersman.api.pods import is_terminated
from steersman.api.scheme import Key
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_keys, claim_names, has_claim
from steersman.controllers.shared.protection import (
    add_finalizer,
    is_deletion_candidate,
    needs_finalizer,
    needs_sync,
    remove_finalizer,
)
from steersman.intent.actions import Action, Batch, Done, Failed, List, Outcome, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

FINALIZER = "kubernetes.io/pvc-protection"
UNUSED = "Unused"
NEEDS_SYNC = "pvc-protection"
"""The index of claims that need a round, by namespace."""
CACHE_LAG = timedelta(seconds=10)
"""The delay of the next round where the cache does not show a pod that the API server lists."""

PodsByClaim: TypeAlias = Mapping[str, Sequence[Pod]]
"""The pods of a namespace by the names of their claims."""


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    unused_condition: bool = False
    """PersistentVolumeClaimUnusedSinceTime"""


class Observation(msgspec.Struct, frozen=True):
    """Claims of a namespace, and the cached pods that have them."""

    namespace: str
    claims: tuple[PersistentVolumeClaim, ...]
    pods: PodsByClaim


def observe(caches: Caches, key: Key) -> Observation | None:
    """The claims of a namespace that need a round; or the one claim of the key."""
    claims: tuple[PersistentVolumeClaim, ...]
    if key.namespace:
        claim = caches[PERSISTENTVOLUMECLAIMS].get(key)
        claims = (claim,) if claim is not None else ()
    else:
        claims = tuple(caches[PERSISTENTVOLUMECLAIMS].by(NEEDS_SYNC, key.name))
    if not claims:
        return None
    pods = {claim.metadata.name: tuple(caches[PODS].by(BY_CLAIM, claim.key)) for claim in claims}
    return Observation(key.namespace or key.name, claims, pods)


# -- use of a claim -------------------------------------------------------------------------------


def is_shut_down(pod: Pod) -> bool:
    """Whether a kubelet is done with a pod, or it was force-deleted: it only waits for its finalizers."""
    return pod.metadata.deletionTimestamp is not None and pod.metadata.deletionGracePeriodSeconds == 0


def blocks_deletion(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod keeps a claim from being deleted: it is scheduled, even if its containers have ended.

    A pod that is not scheduled yet does not: its kubelet will refuse to start it with a claim that is being deleted. The
    claim of an ephemeral volume goes once the pod is shut down, for a finalizer of the pod may wait for that.
    """
    return bool(pod.spec.nodeName) and has_claim(pod, claim, ephemeral=not is_shut_down(pod))


def references(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod makes a claim count as used, scheduled or not."""
    return not is_terminated(pod) and has_claim(pod, claim)


class PodsInUse(msgspec.Struct, frozen=True):
    """The pods that may use claims: those of the cache, and where these are not enough, those of the API server."""

    cached: PodsByClaim
    live: PodsByClaim = msgspec.field(default_factory=dict)

    def any(self, uses: Callable[[Pod, PersistentVolumeClaim], bool], claim: PersistentVolumeClaim) -> bool:
        """Whether one of the pods uses a claim in this sense."""
        name = claim.metadata.name
        return any(uses(pod, claim) for pods in (self.cached, self.live) for pod in pods.get(name, ()))


def by_claim(pods: Iterable[Pod]) -> PodsByClaim:
    """The pods of a namespace by the names of their claims."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        for name in claim_names(pod):
            found.setdefault(name, []).append(pod)
    return found


def unused_condition(claim: PersistentVolumeClaim, used: bool, now: datetime) -> Condition | None:
    """The condition Unused that a claim should get; None where it has it already."""
    present = find_condition(claim.status.conditions, UNUSED)
    if used and (present is None or present.status == "True"):
        status, reason, message = "False", "PodUsingPVC", "A pod is currently referencing this PVC"
    elif not used and (present is None or present.status != "True"):
        status, reason, message = "True", "NoPodsUsingPVC", "No pods are currently referencing this PVC"
    else:
        return None
    return Condition(
        type=UNUSED,
        status=status,
        lastTransitionTime=truncate_to_seconds(now),
        reason=reason,
        message=message,
    )


# -- decision -------------------------------------------------------------------------------------


async def decide(seen: Observation, now: datetime, config: Config = Config()) -> Verdict:
    tracked = [each for each in seen.claims if _is_tracked(each, config)]
    deleted = [each for each in seen.claims if is_deletion_candidate(each, FINALIZER)]
    pods = PodsInUse(seen.pods)
    # A claim that has the condition already needs no live list: its next round is when the cache shows a pod.
    unmarked = [each for each in tracked if unused_condition(each, False, now) is not None]
    free = [each for each in deleted if not pods.any(blocks_deletion, each)]
    if free or not all(pods.any(references, each) for each in unmarked):
        pods = PodsInUse(seen.pods, by_claim(await List(PODS, seen.namespace)))
    conditions = [(each, unused_condition(each, pods.any(references, each), now)) for each in tracked]
    marked = await _all(
        UpdateStatus(
            each, replace(each.status, conditions=replace_condition(each.status.conditions, condition))
        )
        for each, condition in conditions
        if condition is not None
    )
    current = {each.key: each for each in seen.claims} | {
        outcome.value.key: outcome.value for outcome in marked if isinstance(outcome, Done)
    }
    unused = [each for each in free if not pods.any(blocks_deletion, each)]
    finalized = await _all(
        [remove_finalizer(each, FINALIZER) for each in unused]
        + [add_finalizer(each, FINALIZER) for each in current.values() if needs_finalizer(each, FINALIZER)]
    )
    # All writes have been tried by now, so that no claim is held up by another one.
    for outcome in (*marked, *finalized):
        if isinstance(outcome, Failed) and not isinstance(outcome.error, NotFound):
            raise outcome.error
    if len(unused) < len(free):
        # differs: upstream waits for a change of the pod, which a new list of the cache may hide.
        return Wake(CACHE_LAG, "the cache does not show a pod yet that uses a claim")
    return Rest(f"{len(deleted) - len(unused)} claims in use, {len(unused)} released")


def _is_tracked(claim: PersistentVolumeClaim, config: Config) -> bool:
    """Whether a claim has the condition Unused."""
    return config.unused_condition and claim.metadata.deletionTimestamp is None


async def _all(writes: Iterable[Action[Any]]) -> list[Outcome[Any]]:
    """Performs independent writes; returns their outcomes."""
    actions = tuple(writes)
    return await Batch(actions, slow_start=False) if actions else []


# -- enqueue --------------------------------------------------------------------------------------


def _needs_sync(claim: PersistentVolumeClaim, config: Config) -> bool:
    if needs_sync(claim, FINALIZER):
        return True
    return _is_tracked(claim, config) and find_condition(claim.status.conditions, UNUSED) is None


def _by_namespace(claim: PersistentVolumeClaim, config: Config) -> Iterable[str]:
    return (claim.metadata.namespace,) if _needs_sync(claim, config) else ()


def _claim_changed(caches: Caches, change: Change[PersistentVolumeClaim], config: Config) -> Iterable[Key]:
    claim = change.new
    return (Key("", claim.metadata.namespace),) if claim is not None and _needs_sync(claim, config) else ()


def _pod_changed(caches: Caches, change: Change[Pod], config: Config) -> Iterator[Key]:
    """The claims of a pod that may no longer use them. An update may hide that one pod replaced another."""
    old, new = change.old, change.new
    if new is not None and (config.unused_condition or not new.spec.nodeName or is_terminated(new)):
        yield from _claims_to_sync(caches, new, config)
    if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
        yield from _claims_to_sync(caches, old, config)


def _claims_to_sync(caches: Caches, pod: Pod, config: Config) -> Iterator[Key]:
    for key in claim_keys(pod):
        claim = caches[PERSISTENTVOLUMECLAIMS].get(key)
        if claim is None:
            continue
        if is_deletion_candidate(claim, FINALIZER):
            yield Key("", key.namespace)
        elif _is_tracked(claim, config):
            yield key


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(settings.enabled("PersistentVolumeClaimUnusedSinceTime"))
    return Controller(
        name="persistentvolumeclaim-protection-controller",
        aliases=("pvc-protection",),
        service_account="pvc-protection-controller",
        watches=(
            Watch(
                PERSISTENTVOLUMECLAIMS,
                to=partial(_claim_changed, config=config),
                indexes={NEEDS_SYNC: partial(_by_namespace, config=config)},
            ),
            Watch(PODS, to=partial(_pod_changed, config=config), indexes={BY_CLAIM: claim_keys}),
        ),
        works_on=(PERSISTENTVOLUMECLAIMS,),
        workers=1,
        configure=configure,
        observe=observe,
        decide=partial(decide, config=config),
    )


controller = configure(DEFAULTS)
