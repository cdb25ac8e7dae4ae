"""What a round sees, and which changes are a reason to look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import field

from steersman.api.kinds import (
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    Deployment,
    Object,
    OwnerReference,
    Pod,
    ReplicaSet,
)
from steersman.api.label_selectors import NOTHING, Selector, compile_selector
from steersman.api.meta import controller_of
from steersman.api.scheme import Key
from steersman.controllers.shared.enqueue_owner import enqueue_owner
from steersman.controllers.shared.indexes import controlled_by, orphans_in
from steersman.intent.controller import Caches, Change

FINAL = ("Succeeded", "Failed")


class Seen(msgspec.Struct, frozen=True):
    """A Deployment and its ReplicaSets at one instant."""

    deployment: Deployment
    owned: tuple[ReplicaSet, ...] = ()
    """The ReplicaSets it controls."""
    orphans: tuple[ReplicaSet, ...] = ()
    """The ReplicaSets that nothing controls and that it selects."""
    running: Mapping[str, int] = field(default_factory=dict)
    """Uid of a ReplicaSet -> its pods that have not ended. Only counted for Recreate."""


def recreates(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "Recreate"


def selector_of(deployment: Deployment) -> Selector:
    """Which ReplicaSets a Deployment may adopt: none, when its selector is nonsense or selects all."""
    try:
        selector = compile_selector(deployment.spec.selector)
    except ValueError:
        return NOTHING
    return NOTHING if selector.empty else selector


def observe(caches: Caches, key: Key) -> Seen | None:
    deployment = caches[DEPLOYMENTS].get(key)
    if deployment is None:
        return None
    cache = caches[REPLICASETS]
    selector = selector_of(deployment)
    owned = tuple(controlled_by(cache, deployment))
    orphans = tuple(rs for rs in orphans_in(cache, key.namespace) if selector.matches(rs.metadata.labels))
    if not recreates(deployment):
        return Seen(deployment, owned, orphans)
    running = {rs.metadata.uid: unfinished(caches, rs) for rs in (*owned, *orphans)}
    return Seen(deployment, owned, orphans, running)


def unfinished(caches: Caches, rs: ReplicaSet) -> int:
    """How many pods of a ReplicaSet may still run. A terminating pod runs until it is gone."""
    return sum(pod.status.phase not in FINAL for pod in controlled_by(caches[PODS], rs))


# -- which Deployments a change concerns ------------------------------------------------------


def resolve(caches: Caches, namespace: str, reference: OwnerReference | None) -> Deployment | None:
    """The Deployment a controller reference means, if there is one."""
    if reference is None or reference.kind != "Deployment":
        return None
    deployment = caches[DEPLOYMENTS].get(Key(namespace, reference.name))
    return deployment if deployment is not None and deployment.metadata.uid == reference.uid else None


def _selects(deployment: Deployment, rs: Object) -> bool:
    return selector_of(deployment).matches(rs.metadata.labels)


of_replicaset = enqueue_owner(DEPLOYMENTS, _selects)


def of_pod(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A Recreate Deployment, once its last pod has ended: it waits for that.

    differs: upstream looks at deleted pods only, and never again when a pod that has ended is left
    over; here a pod that ends counts like one that is deleted.
    """
    pod, old = change.obj, change.old
    if change.new is not None and (pod.status.phase not in FINAL or (old and old.status.phase in FINAL)):
        return ()
    reference = controller_of(pod)
    if reference is None or reference.kind != "ReplicaSet":
        return ()
    namespace = pod.metadata.namespace
    rs = caches[REPLICASETS].get(Key(namespace, reference.name))
    if rs is None or rs.metadata.uid != reference.uid:
        return ()
    deployment = resolve(caches, namespace, controller_of(rs))
    if deployment is None or not recreates(deployment):
        return ()
    if any(unfinished(caches, sibling) for sibling in controlled_by(caches[REPLICASETS], deployment)):
        return ()
    return (deployment.key,)
