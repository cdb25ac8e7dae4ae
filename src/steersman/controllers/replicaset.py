"""replicaset and replicationcontroller (a decision): keep as many pods as were asked for.

One code for both kinds: a ReplicationController differs in how its selector is written and in not
counting terminating pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api import conditions, pods
from steersman.api.errors import ApiError
from steersman.api.kinds import (
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    Condition,
    NewPod,
    ObjectMeta,
    Pod,
    PodTemplateSpec,
    ReplicaSet,
    ReplicaSetStatus,
    ReplicationController,
    ReplicationControllerStatus,
)
from steersman.api.meta import controller_of, owner_reference, truncate
from steersman.api.scheme import Key, Kind
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import concerned
from steersman.controllers.shared.indexes import BY_CONTROLLER, CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.pods import create_pods, delete_pods
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.intent.actions import Measure, UpdateStatus
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch
from steersman.intent.metrics import Metric, exponential
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Nonsense, Rest, Verdict, Wake

BURST = 500
"""The most pods created or deleted in one round; upstream's BurstReplicas."""

PACE = 0.5
"""Seconds between two looks at one set, at most: many pods becoming ready are one status write."""

LONGEST_NAME = 253
COSTS = "PodDeletionCost"
FAILURE = "ReplicaFailure"
AGES = Metric(
    "replicaset_controller_sorting_deletion_age_ratio",
    "The age of a deleted pod in relation to that of the youngest one",
    buckets=exponential(0.25, 2, 6),
)

Owner: TypeAlias = ReplicaSet | ReplicationController
Status: TypeAlias = ReplicaSetStatus | ReplicationControllerStatus


class Seen(msgspec.Struct, frozen=True):
    owner: Owner
    owned: tuple[Pod, ...]
    """The pods whose controller is the owner."""
    orphans: tuple[Pod, ...]
    """The pods of the namespace that have no controller."""
    crowd: dict[str, int]
    """Node -> active pods there of all sets with the same parent. Empty unless pods must go."""


# -- what a set asks for ----------------------------------------------------------------------


def template_of(owner: Owner) -> PodTemplateSpec:
    if owner.spec.template is None:
        raise Nonsense("spec.template is missing")
    return owner.spec.template


def replicas_of(owner: Owner) -> int:
    replicas = owner.spec.replicas
    if replicas is None or replicas < 0:
        raise Nonsense(f"spec.replicas is {'missing' if replicas is None else replicas}")
    return replicas


def new_pod(owner: Owner, kind: Kind[Any], template: PodTemplateSpec) -> NewPod:
    """The pod to create. The template's spec goes along untouched."""
    name = owner.metadata.name
    return NewPod(
        metadata=ObjectMeta(
            # A dash makes a prettier name, where there is room for it.
            generateName=f"{name}-" if len(name) < LONGEST_NAME else name,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers,
            ownerReferences=(owner_reference(owner, kind),),
        ),
        spec=template.spec,
    )


# -- status -----------------------------------------------------------------------------------


def new_status(
    owner: Owner, active: list[Pod], terminating: int | None, failure: Condition | None, now: datetime
) -> Status:
    """What the set's status should say; ``terminating`` is None where that is not counted."""
    template = template_of(owner).metadata.labels.items()
    wanted = owner.spec.minReadySeconds
    ready = [pod for pod in active if pods.is_ready(pod)]
    shown = owner.status.conditions
    if failure is None:
        shown = conditions.drop(shown, FAILURE)
    elif conditions.find(shown, FAILURE) is None:
        # One that is there already stays as it is, whatever the reason now.
        shown = (*shown, failure)
    status: Status = replace(
        owner.status,
        replicas=len(active),
        fullyLabeledReplicas=sum(template <= pod.metadata.labels.items() for pod in active),
        readyReplicas=len(ready),
        availableReplicas=sum(pods.is_available(pod, wanted, now) for pod in ready),
        observedGeneration=owner.metadata.generation,
        conditions=shown,
    )
    return replace(status, terminatingReplicas=terminating) if terminating is not None else status


# -- decide -----------------------------------------------------------------------------------


class Sets:
    """The control loop for one of the two kinds."""

    def __init__(self, kind: Kind[Any], *, counts_terminating: bool, costs: bool = True) -> None:
        """``costs``: whether what pods would cost counts where some are to go."""
        self.kind = kind
        self.counts_terminating = counts_terminating
        self.concerned = concerned(kind, selects)
        self.costs = costs

    def observe(self, caches: Caches, key: Key) -> Seen | None:
        owner = caches[self.kind].get(key)
        if owner is None:
            return None
        cache = caches[PODS]
        owned = controlled_by(cache, owner)
        active = sum(map(pods.is_active, owned))
        crowd = self._crowd(caches, owner) if active > (owner.spec.replicas or 0) > 0 else {}
        return Seen(owner, tuple(owned), tuple(orphans_in(cache, key.namespace)), crowd)

    def _crowd(self, caches: Caches, owner: Owner) -> dict[str, int]:
        """How many active pods of the owner's family stand on each node.

        The family are the sets with the same controller, as the ReplicaSets of one Deployment.
        """
        # differs: upstream finds the family's pods by selector; by controller is the same for
        # every pod that a set has claimed, and needs no walk over the namespace.
        crowd: dict[str, int] = {}
        parent = controller_of(owner)
        if parent is not None:
            for sibling in caches[self.kind].by(BY_CONTROLLER, parent.uid):
                for pod in controlled_by(caches[PODS], sibling):
                    if pods.is_active(pod):
                        crowd[pod.spec.nodeName] = crowd.get(pod.spec.nodeName, 0) + 1
        return crowd

    async def decide(self, seen: Seen, now: datetime) -> Verdict:
        owner = seen.owner
        try:
            selector = selector_of(owner)
        except ValueError as error:
            return Rest(f"cannot act: the selector is not usable: {error}")
        wanted = replicas_of(owner)

        def selected(pod: Pod) -> bool:
            return selector.matches(pod.metadata.labels)

        active = await claim(
            owner,
            [pod for pod in seen.owned if pods.is_active(pod)],
            [pod for pod in seen.orphans if pods.is_active(pod)],
            selected,
        )
        going = sum(pods.is_terminating(pod) and selected(pod) for pod in seen.owned)

        missing = wanted - len(active)
        failure: ApiError | Nonsense | None = None
        if owner.metadata.deletionTimestamp is None and missing:
            if missing > 0:
                done, failure = await self._create(owner, min(missing, BURST))
            else:
                done, failure = await self._delete(owner, active, min(-missing, BURST), seen.crowd, now)
            if failure is None and done and abs(missing) <= BURST:
                # differs: upstream writes the status it had before the pods changed, and again when
                # it sees them. They show in the cache in a moment, and the round that follows
                # writes it once.
                what = f"{done} more" if missing > 0 else f"{done} fewer"
                return Rest(f"asked for {what} to have {wanted}; the next look will count them")
        shown = None
        if failure is not None:
            reason = "FailedCreate" if missing > 0 else "FailedDelete"
            shown = Condition(
                type=FAILURE,
                status="True",
                reason=reason,
                message=str(failure),
                lastTransitionTime=truncate(now),
            )
        status = new_status(owner, active, going if self.counts_terminating else None, shown, now)
        await UpdateStatus(owner, status)
        if failure is not None:
            raise failure
        if status.readyReplicas != status.availableReplicas:
            return Wake(
                self._next_available(owner, active, now),
                f"{status.availableReplicas} of {wanted} available; a ready pod becomes available then",
            )
        return Rest(f"{status.readyReplicas} of {wanted} ready")

    async def _create(self, owner: Owner, count: int) -> tuple[int, ApiError | Nonsense | None]:
        """Create pods slow-start; answers how many, and why not all."""
        template = template_of(owner)
        if not template.metadata.labels:
            return 0, Nonsense("unable to create pods, no labels")
        made = await create_pods(owner, (new_pod(owner, self.kind, template),) * count)
        return len(made.done), made.failure

    async def _delete(
        self, owner: Owner, active: list[Pod], count: int, crowd: dict[str, int], now: datetime
    ) -> tuple[int, ApiError | None]:
        """Delete the pods that will be missed least; answers how many, and why not all."""
        victims = active
        if count < len(active):
            ranks = [crowd.get(pod.spec.nodeName, 0) for pod in active]
            order = pods.victims(active, ranks, now, costs=self.costs)
            victims = order[:count]
            for ratio in age_ratios(order, count, now):
                await Measure(AGES, ratio)
        gone = await delete_pods(owner, victims)
        return len(gone.done), gone.failure

    def _next_available(self, owner: Owner, active: list[Pod], now: datetime) -> timedelta:
        """How long until the next ready pod has been ready for long enough."""
        waits = (pods.available_in(pod, owner.spec.minReadySeconds, now) for pod in active)
        return min(
            (wait for wait in waits if wait is not None),
            default=timedelta(seconds=owner.spec.minReadySeconds),
        )

    def controller(self, name: str, alias: str, account: str, flag: str) -> Controller[Seen]:
        return Controller(
            name=name,
            aliases=(alias,),
            account=account,
            watches=(
                Watch(self.kind, indexes=CONTROLLED),
                Watch(PODS, to=self.concerned, indexes=CONTROLLED),
            ),
            workers=Flag(flag, 5),
            observe=self.observe,
            decide=self.decide,
            pace=PACE,
            metrics=(AGES,),
        )


def age_ratios(order: list[Pod], count: int, now: datetime) -> Iterator[float]:
    """How old each ready victim is beside the youngest ready pod: whether the choice was even."""
    born = [pod.metadata.creationTimestamp for pod in order if pods.is_ready(pod)]
    ages = [now - at for at in born if at is not None]
    youngest = min(ages, default=timedelta())
    if youngest <= timedelta():
        return
    for pod in order[:count]:
        at = pod.metadata.creationTimestamp
        if at is not None and pods.is_ready(pod):
            yield float((now - at) // youngest)


def _replicaset(settings: Settings) -> Controller[Seen]:
    counts, costs = settings.enabled("DeploymentReplicaSetTerminatingReplicas"), settings.enabled(COSTS)
    return Sets(REPLICASETS, counts_terminating=counts, costs=costs).controller(
        "replicaset-controller", "replicaset", "replicaset-controller", "concurrent-replicaset-syncs"
    )


def _replicationcontroller(settings: Settings) -> Controller[Seen]:
    loop = Sets(REPLICATIONCONTROLLERS, counts_terminating=False, costs=settings.enabled(COSTS))
    return loop.controller(
        "replicationcontroller-controller",
        "replicationcontroller",
        "replication-controller",
        "concurrent-rc-syncs",
    )


replicaset = replace(_replicaset(DEFAULTS), configure=_replicaset)
replicationcontroller = replace(_replicationcontroller(DEFAULTS), configure=_replicationcontroller)
