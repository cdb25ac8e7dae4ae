"""resourceclaim-controller (a dialogue): makes ResourceClaims from templates, and releases those that are not in use.

A round is about a pod, a PodGroup or a claim:

- A pod or PodGroup gets the claims that it names by a template; its status shows their names.
- A claim loses the reservations of consumers that are gone, and gets those of pods that were bound without the
  scheduler. The last one that goes deallocates the claim; a claim that was made for a pod is then deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, cast

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.devices import (
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from steersman.api.kinds.podgroups import PODGROUPS
from steersman.api.resource_claims import Consumer, claim_names
from steersman.api.scheme import Key, kind_of
from steersman.controllers.resourceclaim.enqueue import (
    BY_CLAIM,
    BY_TEMPLATE,
    Memory,
    by_claim,
    by_template,
    claim_changed,
    group_changed,
    pod_changed,
    pod_group_of,
    template_changed,
)
from steersman.controllers.resourceclaim.metrics import METRICS
from steersman.controllers.resourceclaim.reservations import (
    ReservedClaim,
    is_done,
    needs_reservation,
    owning_pod,
    sync_reservations,
)
from steersman.controllers.resourceclaim.templates import Config, ConsumerClaims, create_claims, record_names
from steersman.controllers.shared.indexes import (
    BY_CONTROLLER,
    BY_POD_GROUP,
    by_controller,
    by_pod_group,
    controlled_by,
)
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict

WORKERS = Flag("concurrent-resourceclaim-syncs", 50)

Observation: TypeAlias = ConsumerClaims | ReservedClaim


# -- observe ----------------------------------------------------------------------------------------


def observe(caches: Caches, key: Key, config: Config = Config()) -> Observation | None:
    kind, _, name = key.name.partition("/")
    at = Key(key.namespace, name)
    if kind == "claim":
        claim = caches[RESOURCECLAIMS].get(at)
        return observe_claim(caches, claim, config) if claim is not None else None
    consumer: Consumer | None = caches[PODS].get(at) if kind == "pod" else caches[PODGROUPS].get(at)
    return observe_consumer(caches, consumer, config) if consumer is not None else None


def observe_claim(caches: Caches, claim: ResourceClaim, config: Config) -> ReservedClaim:
    namespace, memory = claim.metadata.namespace, memory_of(caches, Memory)
    names = [each.name for each in claim.status.reservedFor]
    pods = {each: caches[PODS].get(Key(namespace, each)) for each in names}
    groups = {each: caches[PODGROUPS].get(Key(namespace, each)) for each in names if config.pod_groups}
    deleted = [each.uid for each in claim.status.reservedFor if memory.deleted.get(each.uid)]
    owner = owning_pod(claim)
    return ReservedClaim(
        claim,
        {name: pod for name, pod in pods.items() if pod is not None},
        {name: group for name, group in groups.items() if group is not None},
        frozenset(deleted),
        caches[PODS].get(Key(namespace, owner.name)) if owner is not None else None,
        tuple(_unreserved(caches, claim, config)),
    )


def _unreserved(
    caches: Caches, claim: ResourceClaim, config: Config
) -> Iterable[ResourceClaimConsumerReference]:
    """The consumers of the pods that a claim has to be reserved for, each once."""
    found: dict[str, ResourceClaimConsumerReference] = {}
    for pod in caches[PODS].by(BY_CLAIM, claim.key):
        group, missing = pod_group_of(caches, pod) if config.pod_groups else (None, "")
        if missing:
            continue
        consumer = needs_reservation(pod, group, claim, pod_groups=config.pod_groups)
        if consumer is not None:
            found[consumer.uid] = consumer
    return found.values()


def observe_consumer(caches: Caches, consumer: Consumer, config: Config) -> ConsumerClaims:
    namespace, claims = consumer.metadata.namespace, caches[RESOURCECLAIMS]
    named = {name: claims.get(Key(namespace, name)) for name in claim_names(consumer)}
    templates = {
        each.resourceClaimTemplateName: caches[RESOURCECLAIMTEMPLATES].get(
            Key(namespace, each.resourceClaimTemplateName)
        )
        for each in consumer.spec.resourceClaims
        if each.resourceClaimTemplateName is not None
    }
    group, missing = None, ""
    if config.pod_groups and kind_of(consumer).name == PODS.name:
        group, missing = pod_group_of(caches, cast("Pod", consumer))
    return ConsumerClaims(
        consumer,
        {name: claim for name, claim in named.items() if claim is not None},
        tuple(controlled_by(claims, consumer)),
        {name: template for name, template in templates.items() if template is not None},
        group,
        missing,
        tuple(controlled_by(claims, group)) if group is not None else (),
    )


# -- decide -----------------------------------------------------------------------------------------


async def decide(seen: Observation, now: datetime, config: Config = Config()) -> Verdict:
    if isinstance(seen, ReservedClaim):
        return await sync_reservations(seen, config)
    consumer = seen.consumer
    if consumer.metadata.deletionTimestamp is not None:
        return Rest("being deleted")
    pod = cast("Pod", consumer) if kind_of(consumer).name == PODS.name else None
    if pod is not None and is_done(pod):
        return Rest("the pod is done")
    if seen.missing_group:
        raise NotFound(
            f"get PodGroup for Pod {consumer.key}: "
            f'podgroup.scheduling.k8s.io "{seen.missing_group}" not found'
        )
    names = await create_claims(seen, config)
    if names:
        await record_names(consumer, names)
        return Rest(f"claims {', '.join(names.values())} are in the status")
    return Rest("all claims are there")


# -- declaration ------------------------------------------------------------------------------------


def _measure_claims(caches: Caches, change: Change[ResourceClaim]) -> Iterable[Measure]:
    return memory_of(caches, Memory).counts.measure(change)


def configure(settings: Settings) -> Controller[Observation]:
    config = Config(
        admin_access=settings.enabled("DRAAdminAccess"),
        prioritized_list=settings.enabled("DRAPrioritizedList"),
        pod_groups=settings.enabled("DRAWorkloadResourceClaims"),
    )
    indexes = {BY_CLAIM: by_claim, BY_TEMPLATE: by_template}
    watches: tuple[Watch[Any], ...] = (
        Watch(
            PODS,
            to=partial(pod_changed, config=config),
            indexes={**indexes, BY_POD_GROUP: by_pod_group} if config.pod_groups else indexes,
        ),
        Watch(
            RESOURCECLAIMS,
            to=partial(claim_changed, config=config),
            indexes={BY_CONTROLLER: by_controller},
            measures=_measure_claims,
        ),
        Watch(RESOURCECLAIMTEMPLATES, to=partial(template_changed, config=config)),
    )
    if config.pod_groups:
        watches += (Watch(PODGROUPS, to=partial(group_changed, config=config), indexes=indexes),)
    return Controller(
        name="resourceclaim-controller",
        aliases=("resource-claim-controller",),
        service_account="resource-claim-controller",
        event_component="resource_claim",
        feature_gates=("DynamicResourceAllocation",),
        watches=watches,
        workers=WORKERS,
        configure=configure,
        observe=partial(observe, config=config),
        decide=partial(decide, config=config),
        memory=Memory,
        metrics=METRICS,
        required_kinds=(PODGROUPS,) if config.pod_groups else (),
    )


controller = configure(DEFAULTS)
