"""Makes ResourceClaims from the templates that pods and PodGroups name, and records their names in the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import ObjectMeta, OwnerReference, Pod, PodResourceClaim
from steersman.api.kinds.devices import (
    POD_CLAIM_NAME,
    RESOURCECLAIMS,
    NewResourceClaim,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from steersman.api.kinds.podgroups import PodGroup
from steersman.api.resource_claims import (
    ClaimNotCreated,
    Consumer,
    UnsupportedClaim,
    claim_name,
    consumer_of,
    is_pod_group_reference,
    not_made_for,
)
from steersman.api.scheme import kind_of
from steersman.controllers.resourceclaim.metrics import (
    CREATES,
    admin_access_label,
    has_prioritized_list,
    needs_admin_access,
)
from steersman.intent.actions import Create, Emit, Patch, PatchType
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec

FIELD_MANAGER = "ResourceClaimController"
LONGEST_PREFIX = 57
"""Characters of a ``generateName`` that leave room for a hyphen and five random ones in a name of 63."""

_decode = msgspec.json.Decoder(ResourceClaimSpec).decode


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    admin_access: bool = True
    """DRAAdminAccess"""
    prioritized_list: bool = True
    """DRAPrioritizedList"""
    pod_groups: bool = False
    """DRAWorkloadResourceClaims"""


class ConsumerClaims(msgspec.Struct, frozen=True):
    """A pod or PodGroup, and what the caches have of its claims."""

    consumer: Consumer
    claims: Mapping[str, ResourceClaim]
    """The claims that its spec and status name, by name."""
    generated: tuple[ResourceClaim, ...]
    """The claims that it controls."""
    templates: Mapping[str, ResourceClaimTemplate]
    """The templates that its spec names, by name."""
    group: PodGroup | None = None
    """The PodGroup of a pod."""
    missing_group: str = ""
    """The name of the pod's PodGroup, if the cache lacks it."""
    group_claims: tuple[ResourceClaim, ...] = ()
    """The claims that the pod's PodGroup controls."""


async def create_claims(seen: ConsumerClaims, config: Config) -> Mapping[str, str]:
    """Makes the claims that are missing; returns the names of those that the status does not show yet, by the name in
    the spec."""
    names: dict[str, str] = {}
    for claim in seen.consumer.spec.resourceClaims:
        try:
            name = await _create_claim(seen, claim, config)
        except (ApiError, InvalidSpec, UnsupportedClaim, ValueError) as error:
            kind = kind_of(seen.consumer).name
            message = f"{kind}ResourceClaim {claim.name}: {error}"
            await Emit(seen.consumer, "Warning", "FailedResourceClaimCreation", message)
            if isinstance(error, ApiError):
                raise
            raise InvalidSpec(message) from None
        if name is not None:
            names[claim.name] = name
    return names


async def record_names(consumer: Consumer, names: Mapping[str, str]) -> None:
    """Writes the names of claims to the status of their consumer.

    differs: upstream applies the new names alone, which removes those it applied before.
    """
    statuses = {each.name: each.resourceClaimName for each in consumer.status.resourceClaimStatuses}
    statuses.update(names)
    kind, meta = kind_of(consumer), consumer.metadata
    entries = [
        {"name": each.name, "resourceClaimName": statuses[each.name]}
        for each in consumer.spec.resourceClaims
        if statuses.get(each.name) is not None
    ]
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": {"resourceClaimStatuses": entries},
    }
    await Patch(
        consumer, body, PatchType.APPLY, subresource="status", field_manager=FIELD_MANAGER, force=True
    )


async def _create_claim(seen: ConsumerClaims, claim: PodResourceClaim, config: Config) -> str | None:
    """Makes one claim unless there is one; returns its name if the status does not show it yet."""
    consumer = seen.consumer
    try:
        recorded = claim_name(consumer, claim)
    except ClaimNotCreated:
        pass
    except UnsupportedClaim as error:
        raise InvalidSpec(f"checking for claim before creating it: {error}") from None
    else:
        if recorded.name is None:
            return None
        known = seen.claims.get(recorded.name)
        # A claim that was deleted or is another consumer's is made anew.
        # differs: upstream remembers the claims that it made, and takes one that was deleted for there for an hour.
        if known is not None and not (
            recorded.generated and not_made_for(consumer, known, pod_groups=config.pod_groups)
        ):
            return None
    if claim.resourceClaimTemplateName is None:
        return None
    if seen.group is not None and is_pod_group_reference(
        consumer_of(cast("Pod", consumer), seen.group, claim)
    ):
        shared = _generated(seen.group_claims, claim)
        return shared.metadata.name if shared is not None else None
    # A manager that stopped before it wrote the status has left a claim.
    existing = _generated(seen.generated, claim)
    if existing is None:
        template = seen.templates.get(claim.resourceClaimTemplateName)
        if template is None:
            name = claim.resourceClaimTemplateName
            raise NotFound(
                f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
            )
        existing = await _create_from_template(consumer, claim, template, config)
    return existing.metadata.name


def _generated(claims: tuple[ResourceClaim, ...], claim: PodResourceClaim) -> ResourceClaim | None:
    """The claim that was made for a name in the spec."""
    return next(
        (each for each in claims if each.metadata.annotations.get(POD_CLAIM_NAME) == claim.name), None
    )


async def _create_from_template(
    consumer: Consumer, claim: PodResourceClaim, template: ResourceClaimTemplate, config: Config
) -> ResourceClaim:
    spec = spec_of(template)
    if not config.admin_access and needs_admin_access(spec):
        raise InvalidSpec("admin access is requested, but the feature is disabled")
    if not config.prioritized_list and has_prioritized_list(spec):
        raise InvalidSpec("template includes a prioritized list of subrequests, but the feature is disabled")
    admin_access = admin_access_label(spec)
    try:
        body = new_claim(consumer, claim, template)
        created = await Create(RESOURCECLAIMS, consumer.metadata.namespace, body)
    except ApiError as error:
        await Measure(CREATES, labels=("failure", admin_access))
        # The name of a claim that was not created is empty.
        raise type(error)(f"create ResourceClaim : {error}", code=error.code) from error
    await Measure(CREATES, labels=("success", admin_access))
    return created


def spec_of(template: ResourceClaimTemplate) -> ResourceClaimSpec:
    """The spec of a template's claims, to look inside."""
    spec: Any = template.spec.spec
    return _decode(spec) if isinstance(spec, msgspec.Raw) else cast("ResourceClaimSpec", spec)


def new_claim(
    consumer: Consumer, claim: PodResourceClaim, template: ResourceClaimTemplate
) -> NewResourceClaim:
    """A claim made from a template. Its consumer controls it."""
    kind, meta = kind_of(consumer), consumer.metadata
    owner = OwnerReference(
        apiVersion=kind.api_version, kind=kind.name, name=meta.name, uid=meta.uid, controller=True
    )
    return NewResourceClaim(
        metadata=ObjectMeta(
            generateName=name_prefix(meta.name, claim.name),
            ownerReferences=(owner,),
            annotations={**template.spec.metadata.annotations, POD_CLAIM_NAME: claim.name},
            labels=template.spec.metadata.labels,
        ),
        spec=template.spec.spec,
    )


def name_prefix(consumer: str, claim: str) -> str:
    """The ``generateName`` of a claim. Long names are both shortened in proportion to their length, since the server
    would drop the name of the claim first."""
    prefix = f"{consumer}-{claim}-"
    if len(prefix) <= LONGEST_PREFIX:
        return prefix
    kept = [each[: len(each) * LONGEST_PREFIX // len(prefix)] for each in (consumer, claim)]
    return "-".join(kept)
