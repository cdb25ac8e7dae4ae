"""replicaset-controller and replicationcontroller-controller (decisions): keep ``spec.replicas`` pods running.

One control loop serves both kinds. A ReplicationController has a plain map as selector and does not count
terminating pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
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
from steersman.api.meta import controller_of, owner_reference, truncate_to_seconds
from steersman.api.scheme import Key, Kind
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner
from steersman.controllers.shared.indexes import (
    BY_CONTROLLER,
    CONTROLLED,
    controlled_by,
    controller_key,
    orphans_in,
)
from steersman.controllers.shared.pod_control import create_pods, delete_pods, pods_prefix
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.intent.actions import UpdateStatus
from steersman.intent.controller import Caches, Controller, Flag, Settings, Watch
from steersman.intent.metrics import Measure, Metric, exponential
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

BURST = 500
"""The most pods created or deleted in one round; upstream's BurstReplicas."""

COALESCE_WITHIN = 0.5
"""The longest a ReplicaSet waits between two rounds, in seconds: many pods becoming ready are one status write."""

DELETION_COST_GATE = "PodDeletionCost"
REPLICA_FAILURE = "ReplicaFailure"
DELETION_AGE_RATIO = Metric(
    "replicaset_controller_sorting_deletion_age_ratio",
    "The ratio of the age of a deleted pod to the age of the youngest ready pod",
    buckets=exponential(0.25, 2, 6),
)

Owner: TypeAlias = ReplicaSet | ReplicationController
Status: TypeAlias = ReplicaSetStatus | ReplicationControllerStatus


class Seen(msgspec.Struct, frozen=True):
    """A ReplicaSet or ReplicationController and its pods at one instant."""

    owner: Owner
    owned: tuple[Pod, ...]
    """The pods whose controller is the owner."""
    orphans: tuple[Pod, ...]
    """The pods of the namespace that have no controller."""
    related: dict[str, int] | None
    """Node name -> active pods there of the other ReplicaSets with the same controller. None for an owner without a
    controller, and unless scaling down."""


# -- spec -------------------------------------------------------------------------------------


def template_of(owner: Owner) -> PodTemplateSpec:
    """The pod template. Raises `InvalidSpec` where it is missing."""
    if owner.spec.template is None:
        raise InvalidSpec("spec.template is missing")
    return owner.spec.template


def replicas_of(owner: Owner) -> int:
    """The desired number of pods. Raises `InvalidSpec` where it is missing or negative."""
    replicas = owner.spec.replicas
    if replicas is None or replicas < 0:
        raise InvalidSpec(f"spec.replicas is {'missing' if replicas is None else replicas}")
    return replicas


def new_pod(owner: Owner, kind: Kind[Any], template: PodTemplateSpec) -> NewPod:
    """A pod to create, with the template's spec untouched."""
    return NewPod(
        metadata=ObjectMeta(
            generateName=pods_prefix(owner.metadata.name),
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
    """The status for these active pods; ``terminating`` is None where terminating pods are not counted."""
    template = template_of(owner).metadata.labels.items()
    min_ready_seconds = owner.spec.minReadySeconds
    ready = [pod for pod in active if pods.is_ready(pod)]
    updated = owner.status.conditions
    if failure is None:
        updated = conditions.remove_condition(updated, REPLICA_FAILURE)
    elif conditions.find_condition(updated, REPLICA_FAILURE) is None:
        # An existing condition stays as it is, even where the reason differs now.
        updated = (*updated, failure)
    status: Status = replace(
        owner.status,
        replicas=len(active),
        fullyLabeledReplicas=sum(template <= pod.metadata.labels.items() for pod in active),
        readyReplicas=len(ready),
        availableReplicas=sum(pods.is_available(pod, min_ready_seconds, now) for pod in ready),
        observedGeneration=owner.metadata.generation,
        conditions=updated,
    )
    return replace(status, terminatingReplicas=terminating) if terminating is not None else status


# -- decide -----------------------------------------------------------------------------------


class Config(msgspec.Struct, frozen=True):
    """The kind that is controlled, and the controller's feature gates."""

    kind: Kind[Any]
    count_terminating: bool = True
    """Whether ``status.terminatingReplicas`` is set."""
    deletion_costs: bool = True
    """Whether the pod-deletion-cost annotation is respected when scaling down."""


def observe(caches: Caches, key: Key, config: Config) -> Seen | None:
    owner = caches[config.kind].get(key)
    if owner is None:
        return None
    cache = caches[PODS]
    owned, orphans = controlled_by(cache, owner), orphans_in(cache, key.namespace)
    active = sum(map(pods.is_active, owned)) + sum(map(pods.is_active, orphans))
    related = _related(caches, config.kind, owner) if active > (owner.spec.replicas or 0) > 0 else None
    return Seen(owner, tuple(owned), tuple(orphans), related)


def _related(caches: Caches, kind: Kind[Any], owner: Owner) -> dict[str, int] | None:
    """The number of active pods on each node that belong to the other ReplicaSets with the owner's controller, as
    those of one Deployment."""
    # differs: upstream finds related pods by selector; the lookup by controller finds the same
    # claimed pods without a scan of the namespace.
    parent = controller_of(owner)
    if parent is None:
        return None
    related: dict[str, int] = {}
    for sibling in caches[kind].by(BY_CONTROLLER, controller_key(parent.kind, parent.name, parent.uid)):
        if sibling.metadata.uid != owner.metadata.uid:
            for pod in controlled_by(caches[PODS], sibling):
                if pods.is_active(pod):
                    related[pod.spec.nodeName] = related.get(pod.spec.nodeName, 0) + 1
    return related


async def decide(seen: Seen, now: datetime, config: Config) -> Verdict:
    owner = seen.owner
    try:
        selector = selector_of(owner)
    except ValueError as error:
        return Rest(f"invalid selector: {error}")
    desired = replicas_of(owner)

    def selected(pod: Pod) -> bool:
        return selector.matches(pod.metadata.labels)

    active = await claim(
        owner,
        [pod for pod in seen.owned if pods.is_active(pod)],
        [pod for pod in seen.orphans if pods.is_active(pod)],
        selected,
    )
    terminating = sum(pods.is_terminating(pod) and selected(pod) for pod in seen.owned)

    missing = desired - len(active)
    failure: ApiError | InvalidSpec | None = None
    if owner.metadata.deletionTimestamp is None and missing:
        if missing > 0:
            done, failure = await _create(owner, config.kind, min(missing, BURST))
        else:
            done, failure = await _delete(owner, active, min(-missing, BURST), seen.related, now, config)
        if failure is None and done and abs(missing) <= BURST:
            # differs: upstream writes the status from before the pods changed, and again when it
            # sees the change. The cache shows it in a moment, and the next round writes it once.
            verb = "created" if missing > 0 else "deleted"
            return Rest(f"{verb} {done} pod{'' if done == 1 else 's'} to reach {desired}")
    condition = None
    if failure is not None:
        reason = "FailedCreate" if missing > 0 else "FailedDelete"
        condition = Condition(
            type=REPLICA_FAILURE,
            status="True",
            reason=reason,
            message=str(failure),
            lastTransitionTime=truncate_to_seconds(now),
        )
    status = new_status(owner, active, terminating if config.count_terminating else None, condition, now)
    await UpdateStatus(owner, status)
    if failure is not None:
        raise failure
    if status.readyReplicas != status.availableReplicas:
        min_ready_seconds = owner.spec.minReadySeconds
        wait = pods.next_available(active, min_ready_seconds, now)
        return Wake(
            timedelta(seconds=min_ready_seconds) if wait is None else wait,
            f"{status.availableReplicas} of {desired} replicas available; waiting for minReadySeconds",
        )
    return Rest(f"{status.readyReplicas} of {desired} replicas ready")


async def _create(owner: Owner, kind: Kind[Any], count: int) -> tuple[int, ApiError | InvalidSpec | None]:
    """Creates pods; returns how many, and the first error."""
    template = template_of(owner)
    if not template.metadata.labels:
        return 0, InvalidSpec("unable to create pods, no labels")
    created = await create_pods(owner, (new_pod(owner, kind, template),) * count)
    return len(created.done), created.failure


async def _delete(
    owner: Owner,
    active: list[Pod],
    count: int,
    related: dict[str, int] | None,
    now: datetime,
    config: Config,
) -> tuple[int, ApiError | None]:
    """Deletes the pods ranked first for deletion; returns how many, and the first error."""
    victims = active
    if count < len(active):
        # Pods adopted in this round count, too.
        nodes = Counter(related)
        if related is not None:
            nodes.update(pod.spec.nodeName for pod in active)
        ranks = [nodes[pod.spec.nodeName] for pod in active]
        order = pods.sort_for_deletion(active, ranks, now, costs=config.deletion_costs)
        victims = order[:count]
        for ratio in age_ratios(order, count, now):
            await Measure(DELETION_AGE_RATIO, ratio)
    deleted = await delete_pods(owner, victims)
    return len(deleted.done), deleted.failure


def age_ratios(order: list[Pod], count: int, now: datetime) -> Iterator[float]:
    """The ratio of each ready victim's age to the age of the youngest ready pod."""
    created = [pod.metadata.creationTimestamp for pod in order if pods.is_ready(pod)]
    ages = [now - at for at in created if at is not None]
    youngest = min(ages, default=timedelta())
    if youngest <= timedelta():
        return
    for pod in order[:count]:
        at = pod.metadata.creationTimestamp
        if at is not None and pods.is_ready(pod):
            yield float((now - at) // youngest)


def _controller(
    config: Config,
    *,
    name: str,
    alias: str,
    account: str,
    workers: Flag[int],
    configure: Callable[[Settings], Controller[Seen]],
) -> Controller[Seen]:
    return Controller(
        name=name,
        aliases=(alias,),
        service_account=account,
        watches=(
            Watch(config.kind, indexes=CONTROLLED),
            Watch(PODS, to=enqueue_owner(config.kind, selects), indexes=CONTROLLED),
        ),
        workers=workers,
        observe=partial(observe, config=config),
        decide=partial(decide, config=config),
        configure=configure,
        coalesce_within=COALESCE_WITHIN,
        metrics=(DELETION_AGE_RATIO,),
    )


def configure_replicaset(settings: Settings) -> Controller[Seen]:
    return _controller(
        Config(
            REPLICASETS,
            count_terminating=settings.enabled("DeploymentReplicaSetTerminatingReplicas"),
            deletion_costs=settings.enabled(DELETION_COST_GATE),
        ),
        name="replicaset-controller",
        alias="replicaset",
        account="replicaset-controller",
        workers=Flag("concurrent-replicaset-syncs", 5),
        configure=configure_replicaset,
    )


def configure_replicationcontroller(settings: Settings) -> Controller[Seen]:
    return _controller(
        Config(
            REPLICATIONCONTROLLERS,
            count_terminating=False,
            deletion_costs=settings.enabled(DELETION_COST_GATE),
        ),
        name="replicationcontroller-controller",
        alias="replicationcontroller",
        account="replication-controller",
        workers=Flag("concurrent-rc-syncs", 5),
        configure=configure_replicationcontroller,
    )


replicaset = configure_replicaset(DEFAULTS)
replicationcontroller = configure_replicationcontroller(DEFAULTS)
